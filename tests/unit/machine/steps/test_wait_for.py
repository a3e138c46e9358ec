"""Steps that wait for events: which events they take, and what ends the wait."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.unit.machine.machine_harness import START, MachineHarness

from trunkline.clock import Instant, rfc3339
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.machine.effects import AwaitEvents, StopAwaitingEvents
from trunkline.machine.inputs import (
    EventArrived,
    EventsRead,
    ReceivedEvent,
    RunRequested,
    decode_input,
    encode_input,
)
from trunkline.machine.state import WaitingFor
from trunkline.machine.turn import Turn

PAID = "{name: w, steps: {pay: {wait_for: {event: paid, key: '${ input.order }', timeout: 1h}}}}"
FREE = "{name: w, steps: {pay: {wait_for: {event: paid, timeout: 1h, on_timeout: continue}}}}"
MATCHED = "{name: w, steps: {pay: {wait_for: {event: paid, match: event.data.amount >= input.amount}}}}"
THREE = "{name: w, steps: {pay: {wait_for: {event: paid, count: 3, timeout: 1h}}}}"
TWO = "{name: w, steps: {a: {wait_for: {event: paid, count: 2}}, b: {wait_for: {event: paid}}}}"
AGAIN = """
name: w
steps:
  pay:
    wait_for: {event: paid, count: 2, timeout: 1h}
    retry: {max_attempts: 2, on: [wait_timeout], first_delay: 1s, jitter: false}
"""
HOUR = timedelta(hours=1)


def started(workflow: str, run_input: Json = None) -> MachineHarness:
    play = MachineHarness(workflow, run_input)
    play.start()
    return play


def event(number: int, data: Json = None, **fields: str) -> ReceivedEvent:
    return ReceivedEvent(
        fields.get("id", f"e{number}"), "paid", Instant(START + number), "42", msgspec.Raw(encode(data))
    )


def arrive(
    play: MachineHarness, number: int, data: Json = None, *, step: str = "pay", attempt: int = 1
) -> Turn:
    return play.take(EventArrived(step, attempt, event(number, data)))


def output_of(number: int, data: Json = None) -> JsonObject:
    at = rfc3339(Instant(START + number))
    return {"type": "paid", "key": "42", "data": data, "id": f"e{number}", "at": at}


def waiting_of(play: MachineHarness, step: str = "pay") -> WaitingFor:
    waiting = play.step(step).waiting_for
    assert waiting is not None
    return waiting


def test_a_step_waits_for_an_event_and_puts_it_out() -> None:
    play = MachineHarness(PAID, {"order": 42})
    turn = play.start()
    waiting = waiting_of(play)
    assert (waiting.kind, waiting.events, waiting.key, waiting.signal) == ("event", ("paid",), "42", False)
    assert AwaitEvents("pay", 1, ("paid",), "42", is_signal=False) in turn.effects
    assert play.state.status == "RUNNING"
    turn = arrive(play, 1, {"amount": 7})
    assert (play.state.status, play.output) == ("COMPLETED", output_of(1, {"amount": 7}))
    assert StopAwaitingEvents("pay") in turn.effects
    assert play.timers == {}


@pytest.mark.parametrize(
    ("what", "types"), [("any: [paid, cancelled]", ("paid", "cancelled")), ("signal: go", ("go",))]
)
def test_a_step_waits_for_any_of_several_types_or_for_a_signal(what: str, types: tuple[str, ...]) -> None:
    play = MachineHarness(f"{{name: w, steps: {{pay: {{wait_for: {{{what}}}}}}}}}")
    turn = play.start()
    assert AwaitEvents("pay", 1, types, None, is_signal="signal" in what) in turn.effects
    assert (waiting_of(play).events, waiting_of(play).until) == (types, None)


@pytest.mark.parametrize("key", [None, True, 1.5, "", [], {}])
def test_a_key_that_is_none_fails_the_step(key: Json) -> None:
    play = started(PAID, {"order": key})
    failure = play.step("pay").error
    assert failure is not None
    assert (failure.code, play.state.status) == ("expression_failed", "FAILED")
    assert "'key' must be a string" in failure.message


def test_only_an_event_that_matches_is_taken() -> None:
    play = started(MATCHED, {"amount": 10})
    unfit: list[Json] = [{"amount": 9}, {"amount": "much"}, {}, None, [1]]
    for data in unfit:
        arrive(play, 1, data)
        assert play.statuses == {"pay": "WAITING"}
    arrive(play, 2, {"amount": 10})
    assert play.output == output_of(2, {"amount": 10})


def test_the_condition_reads_all_of_the_event_and_the_item() -> None:
    play = started(
        "{name: w, steps: {pay: {for_each: [1, 2], wait_for: {event: paid, "
        "match: 'event.data == item && event.type == \"paid\"'}}}}"
    )
    arrive(play, 1, 2, step="pay[0]")
    arrive(play, 2, 2, step="pay[1]")
    assert (play.step("pay[0]").status, play.step("pay[1]").status) == ("WAITING", "COMPLETED")


def test_a_timeout_fails_the_step_or_completes_it_with_null() -> None:
    play = started(PAID, {"order": "42"})
    play.pass_time(HOUR)
    failure = play.step("pay").error
    assert failure is not None
    assert (failure.code, play.state.status, play.timers) == ("wait_timeout", "FAILED", {})
    assert failure.message == "The event paid did not arrive within 1h."
    play = started(FREE)
    turn = play.take(*(timer.item for timer in play.timers.values()))
    assert (play.state.status, play.output) == ("COMPLETED", None)
    assert StopAwaitingEvents("pay") in turn.effects


def test_a_step_collects_several_events() -> None:
    play = started(THREE)
    for number in (1, 2):
        arrive(play, number)
    assert waiting_of(play).data == [output_of(1), output_of(2)]
    assert play.history[-2:] == ["StepEventTaken", "StepEventTaken"]
    arrive(play, 3)
    assert play.output == [output_of(1), output_of(2), output_of(3)]


def test_an_event_is_taken_by_one_step_of_a_run() -> None:
    play = started(TWO)
    for number in (1, 2):
        for step in ("a", "b"):
            arrive(play, number, step=step)
    assert play.statuses == {"a": "COMPLETED", "b": "WAITING"}
    arrive(play, 3, step="b")
    assert play.output == {"a": [output_of(1), output_of(2)], "b": output_of(3)}


def test_events_of_two_sources_with_one_id_are_two() -> None:
    play = started(TWO)
    play.take(EventArrived("a", 1, event(1, id="same")), EventArrived("a", 1, event(2, id="same")))
    assert play.statuses["a"] == "COMPLETED"


def test_the_next_attempt_takes_the_events_that_the_last_one_had_received() -> None:
    play = started(AGAIN)
    arrive(play, 1)
    play.pass_time(HOUR)
    play.pass_time(timedelta(seconds=1))
    assert (play.step("pay").attempts, play.statuses) == (2, {"pay": "WAITING"})
    arrive(play, 2, attempt=1)
    assert waiting_of(play).data is None
    for number in (1, 2):
        arrive(play, number, attempt=2)
    assert play.output == [output_of(1), output_of(2)]


def test_the_events_of_a_cancelled_branch_are_free_for_others() -> None:
    play = started("""
name: w
steps:
  a: {wait_for: {event: paid, count: 2}}
  go: {agent: A}
  j: {set: {x: 1}, needs: [a, go], join: any}
  b: {wait_for: {event: paid}, needs: [j]}
""")
    arrive(play, 1, step="a")
    play.succeed("go")
    arrive(play, 1, step="b")
    assert (play.statuses["a"], play.statuses["b"]) == ("CANCELLED", "COMPLETED")


def test_reading_goes_on_while_the_step_waits() -> None:
    play = started(PAID, {"order": "42"})
    turn = play.take(EventsRead("pay", 1, 17))
    assert turn.effects == [AwaitEvents("pay", 1, ("paid",), "42", is_signal=False, last=17)]
    assert play.take(EventsRead("pay", 2, 18)).effects == []
    arrive(play, 1)
    assert play.take(EventsRead("pay", 1, 19)).effects == []


@pytest.mark.parametrize("end", ["cancel", "deadline", "failure"])
def test_whatever_ends_the_wait_no_more_events_come(end: str) -> None:
    play = started("{name: w, steps: {pay: {wait_for: {event: paid}, deadline: 1h}, work: {agent: A}}}")
    match end:
        case "cancel":
            turn = play.cancel()
        case "deadline":
            turn = play.take(*(timer.item for timer in play.timers.values()))
        case _:
            turn = play.fail("work")
    assert StopAwaitingEvents("pay") in turn.effects
    assert play.step("pay").is_final
    arrive(play, 1)
    assert play.step("pay").output is None


def test_an_event_during_a_pause_counts() -> None:
    play = started("{name: w, steps: {pay: {wait_for: {event: paid}}, after: {agent: A, needs: [pay]}}}")
    play.pause()
    arrive(play, 1)
    assert play.statuses == {"pay": "COMPLETED", "after": "PENDING"}
    play.resume()
    assert play.statuses["after"] == "RUNNING"


@pytest.mark.parametrize("given", [b"5", b'{"event":5}', b'{"any":[]}', b'{"event":"x","timeout":"soon"}'])
def test_a_step_input_given_by_a_person_is_checked(given: bytes) -> None:
    play = MachineHarness(PAID, {"order": "42"})
    play.take(RunRequested(inputs={"pay": msgspec.Raw(given)}))
    failure = play.step("pay").error
    assert failure is not None
    assert failure.code == "expression_failed"


def test_the_inputs_survive_the_queue() -> None:
    for item in (EventArrived("pay", 2, event(1, {"x": [1]})), EventsRead("pay", 1, 7)):
        assert decode_input(encode_input(item)) == item
