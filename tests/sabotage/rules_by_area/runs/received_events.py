"""Rules of events and the steps that wait for them: none is lost in between, and none counts twice."""

from __future__ import annotations

from collections.abc import Sequence

from tests.sabotage.mutation import Change, Drop, ReplaceText
from tests.sabotage.rule import Rule

_MACHINE = "tests/unit/machine/steps/test_wait_for.py"
_STORE = "tests/contract/stores/test_received_events.py"

_SOURCES = "tests/unit/services/messaging/test_event_deliveries.py"

RECEIVED_EVENTS: Sequence[Rule] = (
    Rule(
        name="record-of-a-source-counts-once",
        breaks="A record that Kafka delivers again, after a crash, is a second event.",
        symbol="trunkline.services.events.sources:_default_id",
        change=Change("return value", becomes="None"),
        caught_by=(f"{_SOURCES}::test_a_record_that_comes_twice_is_one_event",),
    ),
    Rule(
        name="large-records-are-refused",
        breaks="A record of another system fills the database and the memory.",
        symbol="trunkline.services.events.sources:EventSource.read",
        change=Change("condition", 1, of=8, becomes="False"),
        caught_by=(f"{_SOURCES}::test_the_value_of_a_record_that_is_too_large_is_not_kept",),
    ),
    Rule(
        name="dead-letters-of-sources-are-limited",
        breaks="A topic of another system fills the database with dead letters.",
        symbol="trunkline.services.messaging.deliveries:Deliveries._has_no_room",
        change=Change("return value", becomes="False"),
        caught_by=(f"{_SOURCES}::test_records_wait_while_there_are_too_many_dead_letters",),
    ),
    Rule(
        name="a-turn-reads-a-limited-size",
        breaks="Large records of a topic keep the commit loop from everything else.",
        symbol="trunkline.services.messaging.deliveries:Deliveries._read",
        change=Change("condition", 1, of=6, becomes="False"),
        caught_by=(f"{_SOURCES}::test_large_records_are_for_several_turns",),
    ),
    Rule(
        name="event-is-taken-once",
        breaks="One event completes two steps of a run.",
        symbol="trunkline.machine.steps.wait_for:apply_event",
        change=Drop("operand", 4, of=5),
        caught_by=(f"{_MACHINE}::test_an_event_is_taken_by_one_step_of_a_run",),
    ),
    Rule(
        name="unfit-event-does-not-match",
        breaks="Anybody who may send events can fail runs with an event whose data a condition cannot read.",
        symbol="trunkline.machine.steps.wait_for:_is_meant",
        change=Change("return value", 3, of=3, becomes="True"),
        caught_by=(f"{_MACHINE}::test_only_an_event_that_matches_is_taken",),
    ),
    Rule(
        name="end-of-a-wait-is-noted",
        breaks="Events are brought forever to steps that wait no more.",
        symbol="trunkline.machine.steps.timers:cancel_wait_timer",
        change=Drop("call statement", 2, of=8),
        caught_by=(f"{_MACHINE}::test_whatever_ends_the_wait_no_more_events_come[cancel]",),
    ),
    Rule(
        name="events-before-the-run-do-not-count",
        breaks="A run takes an event that had arrived before the run was accepted, and that another run is about.",
        symbol="trunkline.stores.sqlite.tables.automation.received_events:_SINCE_ACCEPTED",
        change=ReplaceText("(SELECT events_seen FROM runs WHERE id = ?2)", "CAST(?2 IS NULL AS INTEGER)"),
        caught_by=(
            f"{_STORE}::test_a_wait_finds_the_events_that_have_arrived_since_its_run_was_accepted[sqlite]",
        ),
    ),
    Rule(
        name="steps-of-an-event-are-left-over",
        breaks="Of thousands of steps that wait for an event, those that do not fit into one transaction wait forever.",
        symbol="trunkline.stores.sqlite.tables.automation.received_events:SqliteReceivedEventWrites._match",
        change=Change("condition", 2, of=4, becomes="False"),
        caught_by=(
            f"{_STORE}::test_events_with_many_waiting_steps_are_brought_to_all_of_them_in_parts[sqlite]",
        ),
    ),
    Rule(
        name="first-page-of-events-is-not-the-last",
        breaks="An event that arrived behind many others before its step began to wait is lost.",
        symbol="trunkline.machine.steps.wait_for:read_on",
        change=Change("condition", becomes="False"),
        caught_by=(f"{_MACHINE}::test_reading_goes_on_while_the_step_waits",),
    ),
)
