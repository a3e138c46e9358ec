"""Rules of claims in both stores: which process may hold a task, and whose answer counts."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_TASKS = "tests/contract/stores/test_tasks.py"
_LEASES = "tests/contract/stores/test_leases.py"
_PUSH_NOTIFICATIONS = "tests/contract/stores/test_push_notifications.py"
_OUTBOX = "tests/contract/stores/test_outbox.py"
_POSTGRES = "tests/contract/postgres/test_concurrent_tasks.py"
_BROKER = "tests/contract/test_broker.py"

CLAIMS: Sequence[Rule] = (
    Rule(
        name="epoch-sqlite",
        breaks="The answer of a bridge that has lost its claim is accepted, although another bridge has claimed the "
        "task.",
        symbol="trunkline.stores.sqlite.tables.tasks:_ANSWER",
        change=ReplaceText("epoch = ?3", "epoch < ?3 + 1000"),
        caught_by=(
            f"{_TASKS}::test_the_answer_of_a_zombie_writes_nothing[sqlite-old epoch]",
            f"{_TASKS}::test_the_answer_of_a_zombie_writes_nothing[sqlite-future epoch]",
        ),
    ),
    Rule(
        name="epoch-postgres",
        breaks="The answer of a bridge that has lost its claim is accepted, although another bridge has claimed the "
        "task.",
        symbol="trunkline.stores.postgres.tables.tasks:_ANSWER",
        change=ReplaceText("new.attempt AND tasks.epoch = new.epoch", "new.attempt"),
        caught_by=(
            f"{_TASKS}::test_the_answer_of_a_zombie_writes_nothing[postgres-old epoch]",
            f"{_TASKS}::test_the_answer_of_a_zombie_writes_nothing[postgres-future epoch]",
        ),
    ),
    Rule(
        name="owner-sqlite",
        breaks="Any process can answer a task that another one holds.",
        symbol="trunkline.stores.sqlite.tables.tasks:_ANSWER",
        change=ReplaceText("owner = ?16", "?16 <> ''"),
        caught_by=(f"{_TASKS}::test_the_answer_of_a_zombie_writes_nothing[sqlite-other owner]",),
    ),
    Rule(
        name="owner-postgres",
        breaks="Any process can answer a task that another one holds.",
        symbol="trunkline.stores.postgres.tables.tasks:_ANSWER",
        change=ReplaceText("tasks.owner = $1", "$1::text <> ''"),
        caught_by=(f"{_TASKS}::test_the_answer_of_a_zombie_writes_nothing[postgres-other owner]",),
    ),
    Rule(
        name="one-answer-sqlite",
        breaks="A second answer to a finished task starts it again.",
        symbol="trunkline.stores.sqlite.tables.tasks:_ANSWER",
        change=ReplaceText("?16 AND status IN ('claimed', 'in_doubt')", "?16"),
        caught_by=(f"{_TASKS}::test_a_second_answer_to_the_same_claim_writes_nothing[sqlite]",),
    ),
    Rule(
        name="one-answer-postgres",
        breaks="A second answer to a finished task starts it again.",
        symbol="trunkline.stores.postgres.tables.tasks:_ANSWER",
        change=ReplaceText("$1 AND tasks.status IN ('claimed', 'in_doubt')", "$1"),
        caught_by=(f"{_TASKS}::test_a_second_answer_to_the_same_claim_writes_nothing[postgres]",),
    ),
    Rule(
        name="late-answer-resolves-an-unknown-outcome-sqlite",
        breaks="The late answer to a call with an unknown outcome is discarded.",
        symbol="trunkline.stores.sqlite.tables.tasks:_ANSWER",
        change=ReplaceText("IN ('claimed', 'in_doubt')", "= 'claimed'"),
        caught_by=(f"{_LEASES}::test_the_late_answer_to_a_task_in_doubt_counts_once[sqlite]",),
    ),
    Rule(
        name="late-answer-resolves-an-unknown-outcome-postgres",
        breaks="The late answer to a call with an unknown outcome is discarded.",
        symbol="trunkline.stores.postgres.tables.tasks:_ANSWER",
        change=ReplaceText("IN ('claimed', 'in_doubt')", "= 'claimed'"),
        caught_by=(f"{_LEASES}::test_the_late_answer_to_a_task_in_doubt_counts_once[postgres]",),
    ),
    Rule(
        name="known-task-stays-sqlite",
        breaks="A task that is delivered twice is called twice.",
        symbol="trunkline.stores.sqlite.tables.deferred_tasks:_PUT",
        change=ReplaceText("NOTHING", "UPDATE SET status = 'queued'"),
        caught_by=(f"{_TASKS}::test_a_task_that_is_known_stays_as_it_is[sqlite]",),
    ),
    Rule(
        name="known-task-stays-postgres",
        breaks="A task that is delivered twice is called twice.",
        symbol="trunkline.stores.postgres.tables.tasks:_PUT",
        change=ReplaceText("NOTHING", "UPDATE SET status = 'queued'"),
        caught_by=(f"{_OUTBOX}::test_a_repeated_task_gets_the_stored_result[postgres]",),
    ),
    Rule(
        name="no-task-of-an-ended-run-sqlite",
        breaks="A late task calls an agent for a run that has ended.",
        symbol="trunkline.stores.sqlite.tables.tasks:SqliteTaskWrites.put",
        change=Drop("assignment", 6, of=7),
        caught_by=(f"{_OUTBOX}::test_a_task_of_a_run_that_has_ended_or_is_gone_is_dropped[sqlite]",),
    ),
    Rule(
        name="no-task-of-an-ended-run-postgres",
        breaks="A late task calls an agent for a run that has ended.",
        symbol="trunkline.stores.postgres.tables.tasks:_PUT",
        change=ReplaceText("runs.status NOT IN", "'' NOT IN"),
        caught_by=(f"{_OUTBOX}::test_a_task_of_a_run_that_has_ended_or_is_gone_is_dropped[postgres]",),
    ),
    Rule(
        name="tombstone-sqlite",
        breaks="A stop that overtakes its task is forgotten, and the agent is called anyway.",
        symbol="trunkline.stores.sqlite.tables.tasks:SqliteTaskWrites._stop",
        change=Drop("call statement", 1, of=4),
        caught_by=(
            f"{_TASKS}::test_a_stop_that_comes_before_its_task_leaves_a_tombstone[sqlite]",
            f"{_BROKER}::test_a_stop_that_overtakes_its_task_stops_it_all_the_same[sqlite-memory]",
        ),
    ),
    Rule(
        name="tombstone-postgres",
        breaks="A stop that overtakes its task is forgotten, and the agent is called anyway.",
        symbol="trunkline.stores.postgres.tables.tasks:_TOMBSTONES",
        change=ReplaceText("= new.run_id", "= new.run_id AND new.attempt < 0"),
        caught_by=(f"{_TASKS}::test_a_stop_that_comes_before_its_task_leaves_a_tombstone[postgres]",),
    ),
    Rule(
        name="stop-outlives-the-caller-sqlite",
        breaks="A task that was stopped is called again after its bridge dies.",
        symbol="trunkline.stores.sqlite.tables.tasks:_END_CLAIMED",
        change=ReplaceText("SET stopping = 1", "SET stopping = 0"),
        caught_by=(f"{_TASKS}::test_that_a_task_is_to_end_is_remembered_over_a_crash[sqlite]",),
    ),
    Rule(
        name="stop-outlives-the-caller-postgres",
        breaks="A task that was stopped is called again after its bridge dies.",
        symbol="trunkline.stores.postgres.tables.tasks:_STOP",
        change=ReplaceText("CASE status WHEN 'queued' THEN 0 ELSE 1 END", "0"),
        caught_by=(f"{_TASKS}::test_that_a_task_is_to_end_is_remembered_over_a_crash[postgres]",),
    ),
    Rule(
        name="at-most-once-sqlite",
        breaks="A call that must not be repeated is repeated when its bridge dies.",
        symbol="trunkline.stores.sqlite.tables.tasks:_IN_DOUBT",
        change=ReplaceText("at_most_once = 1", "at_most_once = 2"),
        caught_by=(
            f"{_TASKS}::test_an_at_most_once_task_of_a_dead_process_is_in_doubt_and_never_called_again[sqlite]",
        ),
    ),
    Rule(
        name="at-most-once-postgres",
        breaks="A call that must not be repeated is repeated when its bridge dies.",
        symbol="trunkline.stores.postgres.tables.task_claims:_RECLAIM",
        change=ReplaceText("WHEN at_most_once = 1 THEN 'in_doubt'\n            ELSE", "ELSE"),
        caught_by=(
            f"{_TASKS}::test_an_at_most_once_task_of_a_dead_process_is_in_doubt_and_never_called_again[postgres]",
            f"{_POSTGRES}::test_tasks_of_a_bridge_whose_lease_has_passed_are_taken_by_one_of_the_others",
        ),
    ),
    Rule(
        name="remote-task-is-polled-sqlite",
        breaks="When a bridge dies, its remote tasks end as outcome unknown instead of being polled.",
        symbol="trunkline.stores.sqlite.tables.tasks:SqliteTaskWrites.reclaim",
        change=Drop("call statement", 2, of=3),
        caught_by=(f"{_TASKS}::test_what_the_agent_has_taken_goes_on_being_asked_for[sqlite-True]",),
    ),
    Rule(
        name="remote-task-is-polled-postgres",
        breaks="When a bridge dies, its remote tasks end as outcome unknown instead of being polled.",
        symbol="trunkline.stores.postgres.tables.task_claims:_RECLAIM",
        change=ReplaceText(
            "remote_task_id IS NOT NULL THEN 'remote'\n            WHEN at_most_once", "at_most_once"
        ),
        caught_by=(f"{_TASKS}::test_what_the_agent_has_taken_goes_on_being_asked_for[postgres-True]",),
    ),
    Rule(
        name="reclaim-waits-for-the-lease",
        breaks="A live bridge loses its claims, and the calls are made twice.",
        symbol="trunkline.stores.postgres.tables.task_claims:_DELETE_PASSED_LEASES",
        change=ReplaceText("until <= $2", "until <= $2::bigint + 60000000"),
        caught_by=(
            f"{_LEASES}::test_what_a_living_process_has_claimed_is_not_taken_from_it[postgres]",
            f"{_LEASES}::test_a_lease_that_is_renewed_lasts[postgres]",
        ),
    ),
    Rule(
        name="claim-needs-a-lease",
        breaks="A bridge without a lease claims tasks, and the other bridges take them away at once.",
        symbol="trunkline.stores.postgres.tables.task_claims:_HAS_LEASE",
        change=ReplaceText("until > $2", "$2::bigint > 0"),
        caught_by=(
            f"{_LEASES}::test_a_bridge_that_has_lost_its_lease_claims_nothing[postgres]",
            f"{_POSTGRES}::test_a_claim_needs_a_lease_that_lasts",
        ),
    ),
    Rule(
        name="grace-after-a-restart-of-the-database",
        breaks="After a database outage every bridge assumes that the others are dead, and calls are made twice.",
        symbol="trunkline.stores.postgres.tables.task_claims:PostgresTaskClaims.reclaim",
        change=Change("argument", 2, of=15, becomes="it * 0"),
        caught_by=(f"{_POSTGRES}::test_nothing_is_reclaimed_while_the_database_has_not_been_up_for_long",),
    ),
    Rule(
        name="slots-sqlite",
        breaks="An agent gets more concurrent calls than its limit allows.",
        symbol="trunkline.stores.sqlite.tables.tasks:SqliteTaskWrites._claim_queued",
        change=Change("ternary", 1, of=2, becomes="it.body if it.test else it.test.left"),
        caught_by=(f"{_TASKS}::test_an_agent_is_called_by_no_more_tasks_at_a_time_than_it_allows[sqlite]",),
    ),
    Rule(
        name="slots-of-new-tasks-sqlite",
        breaks="An agent gets more concurrent calls than its limit allows when tasks are claimed in the turn that "
        "created them.",
        symbol="trunkline.stores.sqlite.tables.deferred_tasks:DeferredTasks._within_slots",
        change=Change("ternary", becomes="it.body"),
        caught_by=(
            f"{_TASKS}::test_tasks_that_are_made_and_claimed_in_one_transaction_keep_to_the_slots_too[sqlite]",
        ),
    ),
    Rule(
        name="slots-postgres",
        breaks="An agent gets more concurrent calls than its limit allows.",
        symbol="trunkline.stores.postgres.tables.task_claims:_CLAIM_QUEUED",
        change=ReplaceText("least(share.number, share.slots - busy.number)", "share.number"),
        caught_by=(f"{_TASKS}::test_an_agent_is_called_by_no_more_tasks_at_a_time_than_it_allows[postgres]",),
    ),
    Rule(
        name="slots-over-all-bridges",
        breaks="Two bridges use the same slot of an agent.",
        symbol="trunkline.stores.postgres.tables.task_claims:_LOOK",
        change=ReplaceText("ELSE pg_try_advisory_xact_lock(", "ELSE pg_try_advisory_xact_lock_shared("),
        caught_by=(f"{_POSTGRES}::test_a_bridge_that_finds_an_agent_locked_looks_again_at_once",),
    ),
    Rule(
        name="last-slots-for-one-bridge",
        breaks="A bridge gives away the last slots of an agent while another one is claiming from it.",
        symbol="trunkline.stores.postgres.tables.task_claims:_LOOK",
        change=ReplaceText(
            "THEN pg_try_advisory_xact_lock_shared(", "THEN pg_try_advisory_xact_lock_shared(1 + "
        ),
        caught_by=(f"{_POSTGRES}::test_the_last_slots_are_for_one_bridge_alone",),
    ),
    Rule(
        name="early-push-notification-kept-sqlite",
        breaks="A push notification that arrives before its remote task is stored is lost, and the task is polled "
        "much later.",
        symbol="trunkline.stores.sqlite.tables.tasks:_POLL_SOON",
        change=ReplaceText("IN ('claimed', 'remote')", "= 'remote'"),
        caught_by=(
            f"{_PUSH_NOTIFICATIONS}::test_a_push_before_the_remote_task_is_known_is_not_lost[sqlite]",
        ),
    ),
    Rule(
        name="early-push-notification-kept-postgres",
        breaks="A push notification that arrives before its remote task is stored is lost, and the task is polled "
        "much later.",
        symbol="trunkline.stores.postgres.tables.tasks:_POLL_SOON",
        change=ReplaceText("IN ('claimed', 'remote')", "= 'remote'"),
        caught_by=(
            f"{_PUSH_NOTIFICATIONS}::test_a_push_before_the_remote_task_is_known_is_not_lost[postgres]",
        ),
    ),
    Rule(
        name="push-notification-during-a-poll",
        breaks="A task that changes while it is being polled is polled again much later.",
        symbol="trunkline.stores.postgres.tables.tasks:_ANSWER",
        change=ReplaceText("least(new.poll_at, tasks.poll_at)", "new.poll_at"),
        caught_by=(f"{_PUSH_NOTIFICATIONS}::test_a_push_during_a_poll_causes_one_more_poll[postgres]",),
    ),
)
