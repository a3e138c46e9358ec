"""Rules of runs in both stores: versions, input queues, timers, and durability."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_RUNS = "tests/contract/stores/test_runs.py"
_INBOX = "tests/contract/stores/test_input_queue_and_timers.py"
_SQLITE = "tests/contract/stores/test_sqlite_file.py"
_POSTGRES = "tests/contract/postgres/test_concurrent_runs.py"
_OUTAGES = "tests/contract/postgres/test_outages.py"
_RACES = "tests/contract/postgres/test_races.py"
_DURABILITY = "tests/contract/postgres/test_durability.py"
_DRIVER = "tests/unit/executor/test_driver.py"
_STATES = "tests/unit/executor/test_run_state_cache.py"
_STEERING = "tests/unit/machine/test_run_control.py"
_DEADLINES = "tests/unit/machine/steps/test_reply_deadlines.py"
_WAITING = "tests/contract/stores/test_waiting_steps.py"

TRANSITIONS: Sequence[Rule] = (
    Rule(
        name="version-compare-sqlite",
        breaks="Two processes that advance the same run both write, and one transition is lost.",
        symbol="trunkline.stores.sqlite.tables.runs:_UPDATE_RUN",
        change=ReplaceText("AND version = ?2", "AND ?2 >= 0"),
        caught_by=(f"{_RUNS}::test_a_run_that_has_moved_is_returned_and_nothing_of_it_is_written[sqlite]",),
    ),
    Rule(
        name="version-compare-postgres",
        breaks="Two processes that advance the same run both write, and one transition is lost.",
        symbol="trunkline.stores.postgres.tables.transitions:_UPDATE_RUNS",
        change=ReplaceText("new.id AND runs.version = new.expected", "new.id"),
        caught_by=(f"{_RUNS}::test_a_run_that_has_moved_is_returned_and_nothing_of_it_is_written[postgres]",),
    ),
    Rule(
        name="cached-state-matches-its-version",
        breaks="An executor decides from a cached state that another executor has already advanced.",
        symbol="trunkline.executor.run_state_cache:RunStateCache.load",
        change=Drop("operand", 2, of=2),
        caught_by=(
            f"{_DRIVER}::test_a_state_kept_at_an_older_version_is_read_again",
            f"{_STATES}::test_a_kept_state_is_used_at_its_own_version_only_and_by_one_at_a_time",
        ),
    ),
    Rule(
        name="run-locked-during-its-turn",
        breaks="Two executors decide the same inputs of a run; one wastes its work, or dispatches everything twice.",
        symbol="trunkline.stores.postgres.tables.input_queue:_LOCK",
        change=ReplaceText("$2 FOR NO KEY UPDATE OF runs SKIP LOCKED", "$2"),
        caught_by=(f"{_POSTGRES}::test_a_run_that_one_executor_has_claimed_is_left_out_by_the_other",),
    ),
    Rule(
        name="input-queue-read-after-the-lock",
        breaks="Inputs that another executor applied just before the lock was granted are applied a second time.",
        symbol="trunkline.stores.postgres.tables.input_queue:_READ",
        change=ReplaceText("applied = 0 AND id", "id"),
        caught_by=(
            f"{_RACES}::test_what_is_applied_while_a_run_is_being_locked_is_not_applied_again",
            f"{_POSTGRES}::test_what_was_applied_just_before_a_run_is_claimed_is_not_applied_again",
        ),
    ),
    Rule(
        name="input-queue-key-once-sqlite",
        breaks="An input that arrives twice is accepted twice.",
        symbol="trunkline.stores.sqlite.tables.input_queue:SqliteInputQueue.put_now",
        change=ReplaceText("NOTHING", "UPDATE SET applied = 0"),
        caught_by=(f"{_INBOX}::test_a_key_that_was_applied_is_remembered_for_as_long_as_its_run[sqlite]",),
    ),
    Rule(
        name="input-queue-key-once-postgres",
        breaks="An input that arrives twice is accepted twice.",
        symbol="trunkline.stores.postgres.tables.input_queue:_PUT",
        change=ReplaceText("NOTHING", "UPDATE SET applied = 0, payload = excluded.payload"),
        caught_by=(f"{_INBOX}::test_a_key_that_was_applied_is_remembered_for_as_long_as_its_run[postgres]",),
    ),
    Rule(
        name="input-queue-applied-sqlite",
        breaks="An input is applied again in every turn.",
        symbol="trunkline.stores.sqlite.tables.input_queue:SqliteInputQueue.apply",
        change=ReplaceText("applied = 1", "applied = 0"),
        caught_by=(
            f"{_INBOX}::test_an_item_is_there_until_the_transition_that_applied_it_is_committed[sqlite]",
        ),
    ),
    Rule(
        name="input-queue-applied-postgres",
        breaks="An input is applied again in every turn.",
        symbol="trunkline.stores.postgres.tables.transitions:_APPLY_INPUTS",
        change=ReplaceText("applied = 1", "applied = 0"),
        caught_by=(
            f"{_INBOX}::test_an_item_is_there_until_the_transition_that_applied_it_is_committed[postgres]",
        ),
    ),
    Rule(
        name="input-queue-left-over-sqlite",
        breaks="An input that its own turn did not apply is lost.",
        symbol="trunkline.stores.sqlite.tables.input_queue:SqliteInputQueue.write_held",
        change=ReplaceText("applied = 0", "applied = 1"),
        caught_by=(
            f"{_INBOX}::test_an_item_that_is_woken_where_it_was_put_and_not_applied_is_woken_in_the_next[sqlite]",
        ),
    ),
    Rule(
        name="input-queue-left-over-once",
        breaks="A result or a start that its own turn did not apply is lost.",
        symbol="trunkline.stores.sqlite.tables.input_queue:SqliteInputQueue.write_held",
        change=Drop("call statement", 2, of=3),
        caught_by=(
            f"{_INBOX}::test_an_item_that_comes_only_once_waits_in_its_place_if_it_is_not_applied[sqlite]",
        ),
    ),
    Rule(
        name="input-queue-left-over-postgres",
        breaks="An input that its own turn did not apply is lost.",
        symbol="trunkline.stores.postgres.tables.input_queue:_PUT_BACK",
        change=ReplaceText("applied = 0", "applied = 1"),
        caught_by=(
            f"{_INBOX}::test_an_item_that_is_woken_where_it_was_put_and_not_applied_is_woken_in_the_next[postgres]",
        ),
    ),
    Rule(
        name="timer-dropped-sqlite",
        breaks="A cancelled timer still fires: a call is repeated although its answer has arrived.",
        symbol="trunkline.stores.sqlite.tables.runs:_DROP_TIMER",
        change=ReplaceText("key = ?", "key = ? AND due < 0"),
        caught_by=(f"{_INBOX}::test_a_dropped_timer_never_fires_and_its_namesakes_do[sqlite]",),
    ),
    Rule(
        name="timer-dropped-postgres",
        breaks="A cancelled timer still fires: a call is repeated although its answer has arrived.",
        symbol="trunkline.stores.postgres.tables.transitions:_DROP_TIMERS",
        change=ReplaceText("WHERE timers.run_id", "WHERE due < 0 AND timers.run_id"),
        caught_by=(f"{_INBOX}::test_a_dropped_timer_never_fires_and_its_namesakes_do[postgres]",),
    ),
    Rule(
        name="timer-set-again-sqlite",
        breaks="A timer that is set again keeps its old time.",
        symbol="trunkline.stores.sqlite.tables.runs:_SET_TIMER",
        change=ReplaceText("UPDATE SET due = excluded.due, payload = excluded.payload", "NOTHING"),
        caught_by=(f"{_INBOX}::test_a_timer_that_is_set_again_has_its_new_time[sqlite]",),
    ),
    Rule(
        name="timer-set-again-postgres",
        breaks="A timer that is set again keeps its old time.",
        symbol="trunkline.stores.postgres.tables.transitions:_UPSERT_TIMERS",
        change=ReplaceText("UPDATE SET due = excluded.due, payload = excluded.payload", "NOTHING"),
        caught_by=(f"{_INBOX}::test_a_timer_that_is_set_again_has_its_new_time[postgres]",),
    ),
    Rule(
        name="commit-waits-for-the-disk-sqlite",
        breaks="Acknowledged work is lost in a power failure.",
        symbol="trunkline.stores.sqlite.database.connection:connect",
        change=ReplaceText("FULL", "OFF"),
        caught_by=(f"{_SQLITE}::test_every_commit_waits_for_the_disk",),
    ),
    Rule(
        name="commit-waits-for-the-disk-postgres",
        breaks="Acknowledged work is lost when the database crashes.",
        symbol="trunkline.stores.postgres.store:PostgresStore.transaction",
        change=Change("ternary", becomes="it.orelse"),
        caught_by=(f"{_DURABILITY}::test_what_was_committed_is_there_after_the_server_has_crashed",),
    ),
    Rule(
        name="commit-that-rolled-back",
        breaks="A transaction that PostgreSQL rolled back is treated as committed.",
        symbol="trunkline.stores.postgres.store:_commit",
        change=Change("condition", becomes="it.left == ''"),
        caught_by=(f"{_OUTAGES}::test_a_failure_that_the_caller_hides_does_not_pass_for_a_commit",),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="paused-executor-releases-its-runs",
        breaks="Runs that a paused process has locked stay locked as long as it is paused.",
        symbol="trunkline.stores.postgres.database.connection:_SETTINGS",
        change=ReplaceText("10s", "0"),
        caught_by=(
            f"{_DURABILITY}::test_every_session_has_what_the_promise_rests_on[idle_in_transaction_session_timeout-10s]",
        ),
    ),
    Rule(
        name="one-process-owns-the-file",
        breaks="Two processes work on one SQLite file, and each assumes that the other is dead.",
        symbol="trunkline.stores.sqlite.database.connection:owned",
        change=Change("argument", 7, of=17, becomes="it.left.value.LOCK_SH | it.right"),
        caught_by=(
            f"{_SQLITE}::test_a_file_that_another_process_uses_is_refused_until_that_process_is_gone",
            f"{_SQLITE}::test_a_file_that_this_process_has_open_is_refused_too",
        ),
        shows="DID NOT RAISE",
    ),
    Rule(
        name="final-states-are-final",
        breaks="A finished run continues.",
        symbol="trunkline.machine.decide:decide",
        change=Change("condition", 1, of=6, becomes="True"),
        caught_by=(f"{_STEERING}::test_final_states_are_final",),
    ),
    Rule(
        name="deadline-of-its-question",
        breaks="The deadline of an answered question fails the step at its next question.",
        symbol="trunkline.machine.decide:_apply",
        change=Drop("operand", 2, of=2),
        caught_by=(f"{_DEADLINES}::test_the_deadline_of_an_answered_question_says_nothing_to_the_next",),
    ),
    Rule(
        name="deadline-ends-with-its-question",
        breaks="An answered question leaves its timer behind.",
        symbol="trunkline.machine.decide:_apply",
        change=Drop("call statement", 23, of=32),
        caught_by=(f"{_DEADLINES}::test_a_question_waits_to_the_last_moment",),
    ),
    Rule(
        name="answered-step-leaves-the-inbox-sqlite",
        breaks="The inbox sorts a step by the time of an earlier question.",
        symbol="trunkline.stores.sqlite.tables.runs:_UPSERT_STEP",
        change=ReplaceText("waiting_since = excluded.waiting_since, waiting_workflow", "waiting_workflow"),
        caught_by=(f"{_WAITING}::test_a_step_that_was_answered_waits_no_more[sqlite]",),
    ),
    Rule(
        name="answered-step-leaves-the-inbox-postgres",
        breaks="The inbox sorts a step by the time of an earlier question.",
        symbol="trunkline.stores.postgres.tables.transitions:_UPSERT_STEPS",
        change=ReplaceText(" waiting_since = excluded.waiting_since,", ""),
        caught_by=(f"{_WAITING}::test_a_step_that_was_answered_waits_no_more[postgres]",),
    ),
)
