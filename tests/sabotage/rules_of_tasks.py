"""Rules that the two stores keep about tasks: who may have them, and whose answer counts."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_TASKS = "tests/contract/test_store_tasks.py"
_LEASES = "tests/contract/test_store_leases.py"
_RINGS = "tests/contract/test_store_rings.py"
_OUTBOX = "tests/contract/test_store_outbox.py"
_POSTGRES = "tests/contract/test_postgres_tasks.py"
_BROKER = "tests/contract/test_broker.py"

TASKS: Sequence[Rule] = (
    Rule(
        name="epoch-sqlite",
        breaks="A zombie's answer to a task that somebody else has claimed since counts.",
        file="stores/sqlite/tables/tasks.py",
        old=" AND epoch = ? AND owner = ?",
        new=" AND epoch < ? + 1000 AND owner = ?",
        caught_by=(
            f"{_TASKS}::test_the_answer_of_a_zombie_writes_nothing[sqlite-old epoch]",
            f"{_TASKS}::test_the_answer_of_a_zombie_writes_nothing[sqlite-future epoch]",
        ),
    ),
    Rule(
        name="epoch-postgres",
        breaks="A zombie's answer to a task that somebody else has claimed since counts.",
        file="stores/postgres/tables/tasks.py",
        old=" AND tasks.epoch = new.epoch",
        new="",
        caught_by=(
            f"{_TASKS}::test_the_answer_of_a_zombie_writes_nothing[postgres-old epoch]",
            f"{_TASKS}::test_the_answer_of_a_zombie_writes_nothing[postgres-future epoch]",
        ),
    ),
    Rule(
        name="owner-sqlite",
        breaks="Anybody can answer a task that another process holds.",
        file="stores/sqlite/tables/tasks.py",
        old=" AND epoch = ? AND owner = ? AND",
        new=" AND epoch = ? AND ? <> '' AND",
        caught_by=(f"{_TASKS}::test_the_answer_of_a_zombie_writes_nothing[sqlite-other owner]",),
    ),
    Rule(
        name="owner-postgres",
        breaks="Anybody can answer a task that another process holds.",
        file="stores/postgres/tables/tasks.py",
        old="AND tasks.owner = $1 AND tasks.status IN",
        new="AND $1::text <> '' AND tasks.status IN",
        caught_by=(f"{_TASKS}::test_the_answer_of_a_zombie_writes_nothing[postgres-other owner]",),
    ),
    Rule(
        name="one-answer-sqlite",
        breaks="A second answer to a task that has ended begins it anew.",
        file="stores/sqlite/tables/tasks.py",
        old=" AND status IN ('claimed', 'in_doubt')\",",
        new='",',
        caught_by=(f"{_TASKS}::test_a_second_answer_to_the_same_claim_writes_nothing[sqlite]",),
    ),
    Rule(
        name="one-answer-postgres",
        breaks="A second answer to a task that has ended begins it anew.",
        file="stores/postgres/tables/tasks.py",
        old=" AND tasks.status IN ('claimed', 'in_doubt')",
        new="",
        caught_by=(f"{_TASKS}::test_a_second_answer_to_the_same_claim_writes_nothing[postgres]",),
    ),
    Rule(
        name="late-answer-resolves-the-doubt-sqlite",
        breaks="The answer to a call that was given up for lost is thrown away.",
        file="stores/sqlite/tables/tasks.py",
        old="status IN ('claimed', 'in_doubt')\",",
        new="status = 'claimed'\",",
        caught_by=(f"{_LEASES}::test_the_late_answer_to_a_task_in_doubt_counts_once[sqlite]",),
    ),
    Rule(
        name="late-answer-resolves-the-doubt-postgres",
        breaks="The answer to a call that was given up for lost is thrown away.",
        file="stores/postgres/tables/tasks.py",
        old="tasks.status IN ('claimed', 'in_doubt')",
        new="tasks.status = 'claimed'",
        caught_by=(f"{_LEASES}::test_the_late_answer_to_a_task_in_doubt_counts_once[postgres]",),
    ),
    Rule(
        name="known-task-stays-sqlite",
        breaks="A task that is delivered twice is called twice.",
        file="stores/sqlite/tables/tasks.py",
        old="'queued', ?, ?) ON CONFLICT(task_id, attempt) DO NOTHING",
        new="'queued', ?, ?) ON CONFLICT(task_id, attempt) DO UPDATE SET status = 'queued'",
        caught_by=(f"{_TASKS}::test_a_task_that_is_known_stays_as_it_is[sqlite]",),
    ),
    Rule(
        name="known-task-stays-postgres",
        breaks="A task that is delivered twice is called twice.",
        file="stores/postgres/tables/tasks.py",
        old="AND runs.status NOT IN {FINAL}\n    ON CONFLICT (task_id, attempt) DO NOTHING",
        new="AND runs.status NOT IN {FINAL}\n    ON CONFLICT (task_id, attempt) DO UPDATE SET status = 'queued'",
        caught_by=(f"{_OUTBOX}::test_whoever_sends_a_task_again_gets_the_result_that_is_kept[postgres]",),
    ),
    Rule(
        name="no-task-of-an-ended-run-sqlite",
        breaks="A task that is sent late calls an agent for a run that is over.",
        file="stores/sqlite/transaction.py",
        old="            others = [item for item in others if item.task.run_id in going_on]\n",
        new="            del going_on\n",
        caught_by=(f"{_OUTBOX}::test_a_task_of_a_run_that_has_ended_or_is_gone_is_dropped[sqlite]",),
    ),
    Rule(
        name="no-task-of-an-ended-run-postgres",
        breaks="A task that is sent late calls an agent for a run that is over.",
        file="stores/postgres/tables/tasks.py",
        old="JOIN runs ON runs.id = new.run_id AND runs.status NOT IN {FINAL}",
        new="JOIN runs ON runs.id = new.run_id",
        caught_by=(f"{_OUTBOX}::test_a_task_of_a_run_that_has_ended_or_is_gone_is_dropped[postgres]",),
    ),
    Rule(
        name="tombstone-sqlite",
        breaks="A stop that overtakes its task is forgotten, and the agent is called all the same.",
        file="stores/sqlite/tables/tasks.py",
        old="    if row is None:\n        execute(",
        new="    if row is None:\n        return None\n        execute(",
        caught_by=(
            f"{_TASKS}::test_a_stop_that_comes_before_its_task_leaves_a_tombstone[sqlite]",
            f"{_BROKER}::test_a_stop_that_overtakes_its_task_stops_it_all_the_same[sqlite-memory]",
        ),
    ),
    Rule(
        name="tombstone-postgres",
        breaks="A stop that overtakes its task is forgotten, and the agent is called all the same.",
        file="stores/postgres/tables/tasks.py",
        old="AS new(task_id, attempt, run_id) JOIN runs ON runs.id = new.run_id\n",
        new="AS new(task_id, attempt, run_id) JOIN runs ON runs.id = new.run_id AND new.attempt < 0\n",
        caught_by=(f"{_TASKS}::test_a_stop_that_comes_before_its_task_leaves_a_tombstone[postgres]",),
    ),
    Rule(
        name="stop-outlives-the-caller-sqlite",
        breaks="A task that was to end is called again after its caller has died.",
        file="stores/sqlite/tables/tasks.py",
        old='"UPDATE tasks SET stopping = 1 WHERE',
        new='"UPDATE tasks SET stopping = 0 WHERE',
        caught_by=(f"{_TASKS}::test_that_a_task_is_to_end_is_remembered_over_a_crash[sqlite]",),
    ),
    Rule(
        name="stop-outlives-the-caller-postgres",
        breaks="A task that was to end is called again after its caller has died.",
        file="stores/postgres/tables/tasks.py",
        old="stopping = CASE status WHEN 'queued' THEN 0 ELSE 1 END",
        new="stopping = 0",
        caught_by=(f"{_TASKS}::test_that_a_task_is_to_end_is_remembered_over_a_crash[postgres]",),
    ),
    Rule(
        name="at-most-once-sqlite",
        breaks="A call that must not be made twice is made twice when its caller dies.",
        file="stores/sqlite/tables/tasks.py",
        old="AND at_most_once = 1 RETURNING",
        new="AND at_most_once = 2 RETURNING",
        caught_by=(
            f"{_TASKS}::test_an_at_most_once_task_of_a_dead_process_is_in_doubt_and_never_called_again[sqlite]",
        ),
    ),
    Rule(
        name="at-most-once-postgres",
        breaks="A call that must not be made twice is made twice when its caller dies.",
        file="stores/postgres/tables/task_claims.py",
        old="            WHEN at_most_once = 1 THEN 'in_doubt'\n",
        new="",
        caught_by=(
            f"{_TASKS}::test_an_at_most_once_task_of_a_dead_process_is_in_doubt_and_never_called_again[postgres]",
            f"{_POSTGRES}::test_tasks_of_a_bridge_whose_lease_has_passed_are_taken_by_one_of_the_others",
        ),
    ),
    Rule(
        name="remote-task-asked-for-sqlite",
        breaks="What an agent works on when its caller dies is given up for lost instead of being asked for.",
        file="stores/sqlite/tables/tasks.py",
        old="    execute(db, _ASK_AGAIN, (owner, now))\n",
        new="    del now\n",
        caught_by=(f"{_TASKS}::test_what_the_agent_has_taken_goes_on_being_asked_for[sqlite-True]",),
    ),
    Rule(
        name="remote-task-asked-for-postgres",
        breaks="What an agent works on when its caller dies is given up for lost instead of being asked for.",
        file="stores/postgres/tables/task_claims.py",
        old="            WHEN remote_task_id IS NOT NULL THEN 'remote'\n",
        new="",
        caught_by=(f"{_TASKS}::test_what_the_agent_has_taken_goes_on_being_asked_for[postgres-True]",),
    ),
    Rule(
        name="reclaim-waits-for-the-lease",
        breaks="A bridge that lives has its calls taken away, and they are made twice.",
        file="stores/postgres/tables/task_claims.py",
        old="WHERE until <= $2 AND owner <> $1",
        new="WHERE until <= $2::bigint + 60000000 AND owner <> $1",
        caught_by=(
            f"{_LEASES}::test_what_a_living_process_has_claimed_is_not_taken_from_it[postgres]",
            f"{_LEASES}::test_a_lease_that_is_renewed_lasts[postgres]",
        ),
    ),
    Rule(
        name="claim-needs-a-lease",
        breaks="A bridge that counts as dead claims tasks, which the others take from it at once.",
        file="stores/postgres/tables/task_claims.py",
        old="WHERE owner = $1 AND until > $2)",
        new="WHERE owner = $1 AND $2::bigint > 0)",
        caught_by=(
            f"{_LEASES}::test_whoever_has_lost_its_lease_claims_nothing[postgres]",
            f"{_POSTGRES}::test_a_claim_needs_a_lease_that_lasts",
        ),
    ),
    Rule(
        name="grace-after-a-restart-of-the-database",
        breaks="After the database was away every bridge takes the others for dead, and calls are made twice.",
        file="stores/postgres/tables/task_claims.py",
        old="if not grace or await _has_been_up(db, grace):",
        new="if not grace or await _has_been_up(db, grace * 0):",
        caught_by=(f"{_POSTGRES}::test_nothing_is_reclaimed_while_the_database_has_not_been_up_for_long",),
    ),
    Rule(
        name="slots-sqlite",
        breaks="An agent gets more calls at a time than it allows.",
        file="stores/sqlite/tables/tasks.py",
        old="limit if most is None else most - busy,",
        new="limit if most is None else most,",
        caught_by=(f"{_TASKS}::test_an_agent_is_called_by_no_more_tasks_at_a_time_than_it_allows[sqlite]",),
    ),
    Rule(
        name="slots-of-new-tasks-sqlite",
        breaks="An agent gets more calls at a time than it allows, when tasks are claimed in the turn that made them.",
        file="stores/sqlite/tables/held_tasks.py",
        old="(claimable if free[agent] >= 0 else left).append(item)",
        new="claimable.append(item)",
        caught_by=(
            f"{_TASKS}::test_tasks_that_are_made_and_claimed_in_one_transaction_keep_to_the_slots_too[sqlite]",
        ),
    ),
    Rule(
        name="slots-postgres",
        breaks="An agent gets more calls at a time than it allows.",
        file="stores/postgres/tables/task_claims.py",
        old="share.slots - coalesce(busy.number, 0)",
        new="share.slots",
        caught_by=(f"{_TASKS}::test_an_agent_is_called_by_no_more_tasks_at_a_time_than_it_allows[postgres]",),
    ),
    Rule(
        name="slots-over-all-bridges",
        breaks="Two bridges give the same slot of an agent away.",
        file="stores/postgres/tables/task_claims.py",
        old=" ORDER BY name FOR NO KEY UPDATE SKIP LOCKED",
        new=" ORDER BY name",
        caught_by=(f"{_POSTGRES}::test_a_bridge_that_finds_an_agent_locked_looks_again_at_once",),
    ),
    Rule(
        name="early-ring-kept-sqlite",
        breaks="An agent that rings before its task is known to be its own is asked much later.",
        file="stores/sqlite/tables/tasks.py",
        old="AND attempt = ?3 AND status IN ('claimed', 'remote')",
        new="AND attempt = ?3 AND status = 'remote'",
        caught_by=(f"{_RINGS}::test_a_ring_before_the_agents_own_task_is_known_is_not_lost[sqlite]",),
    ),
    Rule(
        name="early-ring-kept-postgres",
        breaks="An agent that rings before its task is known to be its own is asked much later.",
        file="stores/postgres/tables/tasks.py",
        old="AND attempt = $2 AND status IN ('claimed', 'remote')",
        new="AND attempt = $2 AND status = 'remote'",
        caught_by=(f"{_RINGS}::test_a_ring_before_the_agents_own_task_is_known_is_not_lost[postgres]",),
    ),
    Rule(
        name="ring-heard-while-asking",
        breaks="A task that moves on while its agent is asked is asked for much later.",
        file="stores/postgres/tables/tasks.py",
        old="THEN least(new.poll_at, tasks.poll_at)",
        new="THEN new.poll_at",
        caught_by=(f"{_RINGS}::test_a_ring_while_the_agent_is_asked_lets_it_be_asked_once_more[postgres]",),
    ),
)
