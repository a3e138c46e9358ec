"""Rules that the two stores keep about runs: versions, inboxes, timers, and what is durable."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.rule import Rule

_RUNS = "tests/contract/test_store_runs.py"
_INBOX = "tests/contract/test_store_inbox_timers.py"
_SQLITE = "tests/contract/test_sqlite.py"
_POSTGRES = "tests/contract/test_postgres_runs.py"
_TROUBLE = "tests/contract/test_postgres_trouble.py"
_RACES = "tests/contract/test_postgres_races.py"
_DURABILITY = "tests/contract/test_postgres_durability.py"
_DRIVER = "tests/unit/executor/test_driver.py"
_STATES = "tests/unit/executor/test_run_state_cache.py"
_STEERING = "tests/unit/machine/test_steering.py"
_DEADLINES = "tests/unit/machine/test_reply_deadlines.py"
_WAITING = "tests/contract/test_store_waiting.py"

RUNS: Sequence[Rule] = (
    Rule(
        name="version-compare-sqlite",
        breaks="Two who moved the same run both write: a transition is lost.",
        file="stores/sqlite/tables/runs.py",
        old="WHERE id = ? AND version = ?",
        new="WHERE id = ? AND ? >= 0",
        caught_by=(f"{_RUNS}::test_a_run_that_has_moved_is_returned_and_nothing_of_it_is_written[sqlite]",),
    ),
    Rule(
        name="version-compare-postgres",
        breaks="Two who moved the same run both write: a transition is lost.",
        file="stores/postgres/tables/transitions.py",
        old=" AND runs.version = new.expected",
        new="",
        caught_by=(f"{_RUNS}::test_a_run_that_has_moved_is_returned_and_nothing_of_it_is_written[postgres]",),
    ),
    Rule(
        name="kept-state-at-its-version",
        breaks="An executor decides from a state that another one has moved on since.",
        file="executor/run_state_cache.py",
        old="if state is not None and state.version == run.version:",
        new="if state is not None:",
        caught_by=(
            f"{_DRIVER}::test_a_state_kept_at_an_older_version_is_read_again",
            f"{_STATES}::test_a_kept_state_is_used_at_its_own_version_only_and_by_one_at_a_time",
        ),
    ),
    Rule(
        name="run-locked-while-it-moves",
        breaks="Two executors decide the same inputs of a run; one has worked in vain, or doubled what it sends.",
        file="stores/postgres/tables/input_queue.py",
        old=" FOR NO KEY UPDATE OF runs SKIP LOCKED",
        new="",
        caught_by=(f"{_POSTGRES}::test_a_run_that_one_executor_has_claimed_is_left_out_by_the_other",),
    ),
    Rule(
        name="inbox-read-after-the-lock",
        breaks="What another executor has applied just before the lock was given is applied once more.",
        file="stores/postgres/tables/input_queue.py",
        old="    WHERE applied = 0 AND id <= $2 AND",
        new="    WHERE id <= $2 AND",
        caught_by=(
            f"{_RACES}::test_what_is_applied_while_a_run_is_being_locked_is_not_applied_again",
            f"{_POSTGRES}::test_what_was_applied_just_before_a_run_is_claimed_is_not_applied_again",
        ),
    ),
    Rule(
        name="inbox-key-once-sqlite",
        breaks="An input that comes a second time is taken in a second time.",
        file="stores/sqlite/tables/input_queue.py",
        old='" ON CONFLICT(run_id, key) DO NOTHING",',
        new='" ON CONFLICT(run_id, key) DO UPDATE SET applied = 0",',
        caught_by=(f"{_INBOX}::test_a_key_that_was_applied_is_remembered_for_as_long_as_its_run[sqlite]",),
    ),
    Rule(
        name="inbox-key-once-postgres",
        breaks="An input that comes a second time is taken in a second time.",
        file="stores/postgres/tables/input_queue.py",
        old="    ON CONFLICT (run_id, key) DO NOTHING\n",
        new="    ON CONFLICT (run_id, key) DO UPDATE SET applied = 0, payload = excluded.payload\n",
        caught_by=(f"{_INBOX}::test_a_key_that_was_applied_is_remembered_for_as_long_as_its_run[postgres]",),
    ),
    Rule(
        name="inbox-applied-sqlite",
        breaks="An input is applied in every turn again.",
        file="stores/sqlite/tables/input_queue.py",
        old="UPDATE inbox SET applied = 1, payload = x''",
        new="UPDATE inbox SET applied = 0, payload = x''",
        caught_by=(
            f"{_INBOX}::test_an_item_is_there_until_the_transition_that_applied_it_is_committed[sqlite]",
        ),
    ),
    Rule(
        name="inbox-applied-postgres",
        breaks="An input is applied in every turn again.",
        file="stores/postgres/tables/transitions.py",
        old="UPDATE inbox SET applied = 1, payload = ''",
        new="UPDATE inbox SET applied = 0, payload = ''",
        caught_by=(
            f"{_INBOX}::test_an_item_is_there_until_the_transition_that_applied_it_is_committed[postgres]",
        ),
    ),
    Rule(
        name="inbox-left-over-sqlite",
        breaks="An input that was not taken in by the turn that brought it is lost.",
        file="stores/sqlite/tables/input_queue.py",
        old="UPDATE inbox SET applied = 0, payload = ? WHERE",
        new="UPDATE inbox SET applied = 1, payload = ? WHERE",
        caught_by=(
            f"{_INBOX}::test_an_item_that_is_woken_where_it_was_put_and_not_applied_is_woken_in_the_next[sqlite]",
        ),
    ),
    Rule(
        name="inbox-left-over-postgres",
        breaks="An input that was not taken in by the turn that brought it is lost.",
        file="stores/postgres/tables/input_queue.py",
        old="UPDATE inbox SET applied = 0, payload = kept.payload",
        new="UPDATE inbox SET applied = 1, payload = kept.payload",
        caught_by=(
            f"{_INBOX}::test_an_item_that_is_woken_where_it_was_put_and_not_applied_is_woken_in_the_next[postgres]",
        ),
    ),
    Rule(
        name="timer-dropped-sqlite",
        breaks="A timer that is not wanted any more rings: a call is made again though its answer is here.",
        file="stores/sqlite/tables/runs.py",
        old='"DELETE FROM timers WHERE run_id = ? AND key = ?",',
        new='"DELETE FROM timers WHERE run_id = ? AND key = ? AND due < 0",',
        caught_by=(f"{_INBOX}::test_a_dropped_timer_never_rings_and_its_namesakes_do[sqlite]",),
    ),
    Rule(
        name="timer-dropped-postgres",
        breaks="A timer that is not wanted any more rings: a call is made again though its answer is here.",
        file="stores/postgres/tables/transitions.py",
        old="WHERE timers.run_id = dropped.run_id AND",
        new="WHERE due < 0 AND timers.run_id = dropped.run_id AND",
        caught_by=(f"{_INBOX}::test_a_dropped_timer_never_rings_and_its_namesakes_do[postgres]",),
    ),
    Rule(
        name="timer-set-again-sqlite",
        breaks="A timer that is set again keeps its old time.",
        file="stores/sqlite/tables/runs.py",
        old="DO UPDATE SET due = excluded.due, payload = excluded.payload",
        new="DO NOTHING",
        caught_by=(f"{_INBOX}::test_a_timer_that_is_set_again_has_its_new_time[sqlite]",),
    ),
    Rule(
        name="timer-set-again-postgres",
        breaks="A timer that is set again keeps its old time.",
        file="stores/postgres/tables/transitions.py",
        old="DO UPDATE SET due = excluded.due, payload = excluded.payload",
        new="DO NOTHING",
        caught_by=(f"{_INBOX}::test_a_timer_that_is_set_again_has_its_new_time[postgres]",),
    ),
    Rule(
        name="commit-waits-for-the-disk-sqlite",
        breaks="What was answered is gone after a power cut.",
        file="stores/sqlite/database/connection.py",
        old='"PRAGMA synchronous=FULL"',
        new='"PRAGMA synchronous=OFF"',
        caught_by=(f"{_SQLITE}::test_every_commit_waits_for_the_disk",),
    ),
    Rule(
        name="commit-waits-for-the-disk-postgres",
        breaks="What was answered is gone after the database has crashed.",
        file="stores/postgres/store.py",
        old="_BEGIN if durable else _BEGIN_UNHURRIED",
        new="_BEGIN_UNHURRIED",
        caught_by=(f"{_DURABILITY}::test_what_was_committed_is_there_after_the_server_has_crashed",),
    ),
    Rule(
        name="commit-that-was-none",
        breaks="A transaction that PostgreSQL has rolled back passes for a commit.",
        file="stores/postgres/store.py",
        old='if await db.command("COMMIT") != "COMMIT":',
        new='if await db.command("COMMIT") == "":',
        caught_by=(f"{_TROUBLE}::test_a_failure_that_the_caller_hides_does_not_pass_for_a_commit",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="paused-executor-gives-its-runs-back",
        breaks="Runs that a paused process has locked stay locked for as long as it is paused.",
        file="stores/postgres/database/connection.py",
        old='"idle_in_transaction_session_timeout": "10s"',
        new='"idle_in_transaction_session_timeout": "0"',
        caught_by=(
            f"{_DURABILITY}::test_every_session_has_what_the_promise_rests_on[idle_in_transaction_session_timeout-10s]",
        ),
    ),
    Rule(
        name="one-process-owns-the-file",
        breaks="Two processes work on one SQLite file, and take one another for dead.",
        file="stores/sqlite/database/connection.py",
        old="fcntl.LOCK_EX | fcntl.LOCK_NB",
        new="fcntl.LOCK_SH | fcntl.LOCK_NB",
        caught_by=(
            f"{_SQLITE}::test_a_file_that_another_process_uses_is_refused_until_that_process_is_gone",
            f"{_SQLITE}::test_a_file_that_this_process_has_open_is_refused_too",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="final-states-are-final",
        breaks="A run that is over goes on.",
        file="machine/decide.py",
        old="        if not state.is_final:\n",
        new="        if state.id:\n",
        caught_by=(f"{_STEERING}::test_final_states_are_final",),
    ),
    Rule(
        name="deadline-of-its-question",
        breaks="The deadline of a question that was answered fails the step at the next one.",
        file="machine/decide.py",
        old=" and (step.attempts, step.replies) == (attempt, replies):",
        new=":",
        caught_by=(f"{_DEADLINES}::test_the_deadline_of_an_answered_question_says_nothing_to_the_next",),
    ),
    Rule(
        name="deadline-ends-with-its-question",
        breaks="A question that was answered leaves its timer behind.",
        file="machine/decide.py",
        old="                agent.cancel_wait_timer(turn, step)\n                turn.record(StepReplied",
        new="                turn.record(StepReplied",
        caught_by=(f"{_DEADLINES}::test_a_question_waits_to_the_last_moment",),
    ),
    Rule(
        name="answered-step-leaves-the-inbox-sqlite",
        breaks="The inbox shows a step by the time of a question that it asked before.",
        file="stores/sqlite/tables/runs.py",
        old="waiting_since = excluded.waiting_since, ",
        new="",
        caught_by=(f"{_WAITING}::test_a_step_that_was_answered_waits_no_more[sqlite]",),
    ),
    Rule(
        name="answered-step-leaves-the-inbox-postgres",
        breaks="The inbox shows a step by the time of a question that it asked before.",
        file="stores/postgres/tables/transitions.py",
        old=", waiting_since = excluded.waiting_since",
        new="",
        caught_by=(f"{_WAITING}::test_a_step_that_was_answered_waits_no_more[postgres]",),
    ),
)
