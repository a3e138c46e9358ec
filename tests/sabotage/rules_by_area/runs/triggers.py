"""Rules of triggers: each scheduled instant starts one run, none is lost, and none waits forever."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_EXECUTOR = "tests/unit/executor/test_schedules.py"
_LISTENING = "tests/unit/executor/test_event_triggers.py"
_GATES = "tests/unit/executor/test_start_gates.py"
_FLOW = "tests/unit/triggers/test_flow_control.py"
_START_QUEUE = "tests/contract/stores/test_start_queue.py"
_DUE = "tests/unit/triggers/test_due.py"
_CRON = "tests/unit/triggers/test_cron.py"
_SIGNATURES = "tests/unit/triggers/test_signatures.py"
_WEBHOOKS = "tests/scenarios/test_webhooks.py"
_STORE = "tests/contract/stores/test_triggers.py"

TRIGGERS: Sequence[Rule] = (
    Rule(
        name="webhook-is-signed",
        breaks="Anyone who knows the URL of a webhook starts runs without its secret.",
        symbol="trunkline.triggers.signatures:_any_equal",
        change=Change("return value", becomes="True"),
        caught_by=(f"{_SIGNATURES}::test_a_delivery_with_a_wrong_signature_is_refused[github]",),
    ),
    Rule(
        name="webhook-is-recent",
        breaks="A recorded delivery can be sent again, years later.",
        symbol="trunkline.triggers.signatures:_is_recent",
        change=Change("return value", 2, of=2, becomes="True"),
        caught_by=(f"{_SIGNATURES}::test_an_outdated_delivery_is_refused[301-stripe]",),
    ),
    Rule(
        name="delivery-has-a-key",
        breaks="A delivery that its sender repeats starts a second run.",
        symbol="trunkline.triggers.signatures:default_key",
        change=Change("return value", 2, of=5, becomes="None"),
        caught_by=(f"{_WEBHOOKS}::test_a_signed_delivery_starts_one_run_however_often_it_comes[embedded]",),
    ),
    Rule(
        name="scheduled-instant-has-a-key",
        breaks="A scheduled time that was filled by hand starts a second run.",
        symbol="trunkline.executor.schedules:Schedules._prepare",
        change=Change("keyword", 3, of=6, becomes="None"),
        caught_by=(f"{_EXECUTOR}::test_an_instant_that_has_started_its_run_before_starts_no_second_one",),
    ),
    Rule(
        name="nothing-fires-early",
        breaks="A trigger fires before its time.",
        symbol="trunkline.triggers.due:take_due",
        change=Drop("operand", 7, of=7),
        caught_by=(f"{_DUE}::test_nothing_fires_before_its_time",),
    ),
    Rule(
        name="end-of-a-run-starts-what-is-queued",
        breaks="A queued firing waits until the trigger fires again, perhaps forever.",
        symbol="trunkline.executor.driver:RunDriver._note_ends",
        change=Change("condition", 2, of=5, becomes="False"),
        caught_by=(f"{_EXECUTOR}::test_queued_firings_start_one_after_the_other_when_runs_end",),
    ),
    Rule(
        name="failed-firing-starts-the-next-queued-one",
        breaks="Firings that are queued behind one that cannot start wait forever.",
        symbol="trunkline.executor.schedules:_TriggerTurn.settled",
        change=Change("condition", 3, of=3, becomes="False"),
        caught_by=(f"{_EXECUTOR}::test_a_queued_firing_that_cannot_start_lets_the_next_one_go_on",),
    ),
    Rule(
        name="queue-of-a-trigger-is-bounded",
        breaks="A trigger whose runs take too long fills the store with queued firings.",
        symbol="trunkline.executor.schedules:_TriggerTurn._queue_if_busy",
        change=Change("condition", 2, of=2, becomes="True"),
        caught_by=(f"{_EXECUTOR}::test_the_queue_of_a_trigger_has_a_limit",),
    ),
    Rule(
        name="skipped-hour-fires",
        breaks="A time of day that the clocks skip does not fire on that day.",
        symbol="trunkline.triggers.cron:CronOccurrences._instant",
        change=Change("condition", 2, of=2, becomes="False"),
        caught_by=(f"{_CRON}::test_a_time_that_the_clocks_skip_fires_once_when_they_have_been_set_forward",),
    ),
    Rule(
        name="repeated-hour-fires-once",
        breaks="A time of day that the clocks show twice fires twice.",
        symbol="trunkline.triggers.cron:CronOccurrences.__init__",
        change=Change("assigned value", 4, of=4, becomes="True"),
        caught_by=(f"{_CRON}::test_a_time_that_the_clocks_show_twice_fires_once",),
    ),
    Rule(
        name="missed-firings-have-a-window",
        breaks="After a long downtime, firings of weeks ago start runs.",
        symbol="trunkline.triggers.due:_first_to_start",
        change=Change("ternary", becomes="expected"),
        caught_by=(f"{_DUE}::test_what_is_older_than_the_window_is_missed[all-started1]",),
    ),
    Rule(
        name="run-ends-while-a-firing-is-decided",
        breaks="A firing is queued behind a run whose end was reported just before, and waits forever.",
        symbol="trunkline.stores.postgres.tables.automation.triggers:_RUNS_ENDED",
        change=ReplaceText("AND awaits_runs = 1", "AND awaits_runs = 1 AND due IS NULL"),
        caught_by=(f"{_STORE}::test_a_trigger_is_left_alone_while_another_process_ends_its_run",),
    ),
    Rule(
        name="trigger-is-claimed-once",
        breaks="Executors wait for one another to fire the same trigger.",
        symbol="trunkline.stores.postgres.tables.automation.triggers:PostgresTriggerWrites.claim_due",
        change=Change("f-string", becomes="f'{_TRIGGERS} WHERE due <= $1 ORDER BY due LIMIT $2'"),
        caught_by=(f"{_STORE}::test_a_trigger_is_claimed_by_one_process_at_a_time",),
    ),
    Rule(
        name="event-fires-triggers",
        breaks="An event is stored, and the triggers that listen to it never fire.",
        symbol="trunkline.stores.sqlite.tables.automation.received_events:SqliteReceivedEventWrites.put",
        change=Drop("call statement", 2, of=2),
        caught_by=(f"{_LISTENING}::test_an_event_of_the_type_starts_a_run_with_what_it_carries",),
    ),
    Rule(
        name="pending-firing-is-taken-once",
        breaks="A pending firing stays, and its trigger takes it again forever.",
        symbol="trunkline.stores.sqlite.tables.automation.triggers:SqliteTriggerWrites.take_pending",
        change=Drop("call statement", 1, of=1),
        caught_by=(f"{_STORE}::test_an_event_fires_the_triggers_that_listen_to_its_type[sqlite]",),
    ),
    Rule(
        name="event-waits-for-its-firing",
        breaks="An event is deleted before the trigger that listens to it has taken it.",
        symbol="trunkline.stores.sqlite.tables.automation.received_events:_DELETE",
        change=ReplaceText("event_number = received_events.number", "0"),
        caught_by=(f"{_LISTENING}::test_an_event_is_kept_until_its_firing_is_taken",),
    ),
    Rule(
        name="pending-firing-is-taken-by-one-process",
        breaks="Executors wait for one another to take pending firings.",
        symbol="trunkline.stores.postgres.tables.automation.triggers:_TAKE_PENDING",
        change=ReplaceText(" FOR UPDATE SKIP LOCKED", " FOR UPDATE"),
        caught_by=(f"{_STORE}::test_a_pending_firing_is_taken_by_one_process",),
        shows="lock timeout",
    ),
    Rule(
        name="end-of-a-run-fires-triggers",
        breaks="A run ends, and the triggers that listen to it never fire.",
        symbol="trunkline.executor.driver:RunDriver._note_ends",
        change=Change("condition", 4, of=5, becomes="False"),
        caught_by=(f"{_LISTENING}::test_the_end_of_a_run_starts_another",),
    ),
    Rule(
        name="chain-of-runs-ends",
        breaks="Runs that start one another go on forever.",
        symbol="trunkline.executor.event_triggers:EventTriggers._run_or_reason",
        change=Change("condition", 2, of=6, becomes="False"),
        caught_by=(f"{_LISTENING}::test_a_chain_of_runs_that_start_one_another_ends",),
    ),
    Rule(
        name="firings-left-over-are-taken",
        breaks="Pending firings that one turn leaves over wait for a second.",
        symbol="trunkline.executor.event_triggers:EventTriggers.work",
        change=Change("ternary", becomes="after(tx.now, _LOOK_EVERY)"),
        caught_by=(f"{_LISTENING}::test_more_pending_firings_than_a_turn_takes_are_all_taken",),
    ),
    Rule(
        name="end-of-a-run-opens-its-gate",
        breaks="Runs that wait for the end of another one wait forever.",
        symbol="trunkline.executor.driver:RunDriver._note_ends",
        change=Change("condition", 5, of=5, becomes="False"),
        caught_by=(f"{_GATES}::test_a_run_waits_until_one_with_the_same_key_ends",),
    ),
    Rule(
        name="held-back-run-waits",
        breaks="A run that flow control should hold back starts at once.",
        symbol="trunkline.executor.start_gates:StartGates.begin",
        change=Change("condition", 1, of=5, becomes="True"),
        caught_by=(f"{_GATES}::test_a_run_waits_until_one_with_the_same_key_ends",),
    ),
    Rule(
        name="end-of-a-requested-run-opens-its-gate",
        breaks="Runs that wait for a limit of their workflow wait forever.",
        symbol="trunkline.executor.start_gates:StartGates.runs_ended",
        change=Drop("operand", 2, of=4),
        caught_by=(f"{_GATES}::test_a_run_of_a_request_waits_until_one_of_the_same_workflow_ends",),
    ),
    Rule(
        name="requested-run-is-held-back",
        breaks="A run that a request starts passes the limits of its workflow.",
        symbol="trunkline.services.runs.queued_starts:start_behind_workflow_gate",
        change=Change("condition", 1, of=1, becomes="True"),
        caught_by=(
            "tests/scenarios/test_flow_control.py::test_only_the_last_of_several_requests_starts[embedded]",
        ),
    ),
    Rule(
        name="queue-of-a-gate-is-bounded",
        breaks="A trigger whose runs take too long fills the store with runs that wait.",
        symbol="trunkline.triggers.flow_control:_not_superseded",
        change=Change("return value", becomes="waiting"),
        caught_by=(f"{_FLOW}::test_the_number_of_those_that_wait_is_limited",),
    ),
    Rule(
        name="throttled-runs-are-looked-at",
        breaks="A run that a throttle holds back never starts.",
        symbol="trunkline.triggers.flow_control:_tokens",
        change=Drop("assignment", 8, of=8),
        caught_by=(f"{_FLOW}::test_a_rate_lets_its_burst_start_and_then_one_at_a_time",),
    ),
    Rule(
        name="gate-is-decided-about-by-one-process",
        breaks="Two processes let a run start for the same free place.",
        symbol="trunkline.stores.postgres.tables.automation.start_queue:_CLAIM",
        change=ReplaceText(
            "WHERE pg_try_advisory_xact_lock(hashtextextended('trunkline gate ' || gate, 0)) ", ""
        ),
        caught_by=(f"{_START_QUEUE}::test_a_gate_is_decided_about_by_one_process_while_runs_come_and_end",),
    ),
    Rule(
        name="ended-run-leaves-its-gate",
        breaks="A run that ended before it could start takes a place forever.",
        symbol="trunkline.stores.postgres.tables.automation.start_queue:_ADMIT",
        change=ReplaceText(" AND state = $3", " AND $3::smallint IS NOT NULL"),
        caught_by=(f"{_START_QUEUE}::test_a_gate_is_decided_about_by_one_process_while_runs_come_and_end",),
    ),
)
