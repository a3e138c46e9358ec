"""Steps that do something without a call: they compute values and sleep."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.unit.machine.machine_harness import START, MachineHarness

from trunkline.clock import after, rfc3339
from trunkline.jsontypes import Json
from trunkline.machine.decide import MAX_DONE_PER_TURN
from trunkline.machine.inputs import RunRequested, TurnContinued, WaitDue, decode_input, encode_input

SET = "{name: w, steps: {sum: {set: {total: '${ input.price * input.amount }', note: fixed}}}}"
SLEEP = "{name: w, steps: {pause: {sleep: 2h}, after: {agent: A, needs: [pause]}}}"
UNTIL = "{name: w, steps: {pause: {sleep: {until: '${ input }'}}}}"
TWO_HOURS = timedelta(hours=2)


def started(workflow: str, run_input: Json = None) -> MachineHarness:
    play = MachineHarness(workflow, run_input)
    play.start()
    return play


def test_values_are_computed_at_once() -> None:
    play = started(SET, {"price": 2.5, "amount": 4.0})
    assert (play.state.status, play.output) == ("COMPLETED", {"total": 10.0, "note": "fixed"})
    assert play.history == ["RunStarted", "StepBegan", "StepCompleted", "RunCompleted"]
    step = play.step("sum")
    assert (step.attempts, step.started_at, step.finished_at) == (1, START, START)


def test_a_value_that_cannot_be_computed_fails_the_step() -> None:
    play = started(SET, {"price": "much"})
    assert (play.state.status, play.state.failure and play.state.failure.code) == (
        "FAILED",
        "expression_failed",
    )


def test_a_step_sleeps_for_its_duration_and_never_shorter() -> None:
    play = started(SLEEP)
    waiting = play.step("pause").waiting_for
    assert waiting is not None
    assert (waiting.kind, waiting.until) == ("time", after(START, TWO_HOURS))
    assert play.state.status == "RUNNING"
    play.pass_time(TWO_HOURS - timedelta(microseconds=1))
    assert play.statuses == {"pause": "WAITING", "after": "PENDING"}
    play.pass_time(timedelta(microseconds=1))
    assert play.statuses == {"pause": "COMPLETED", "after": "RUNNING"}
    assert play.step("pause").output == b"null"


@pytest.mark.parametrize("zone", ["Z", "+00:00", "+01:00", "-05:30"])
def test_a_step_sleeps_until_a_time_in_any_zone(zone: str) -> None:
    text = f"2026-12-24T08:00:00{zone}"
    play = started(UNTIL, text)
    offset = timedelta() if zone == "Z" else timedelta(hours=int(zone[:3]), minutes=int(zone[0] + zone[4:]))
    waiting = play.step("pause").waiting_for
    assert waiting is not None
    assert waiting.until is not None
    assert rfc3339(after(waiting.until, offset)) == "2026-12-24T08:00:00.000000Z"


@pytest.mark.parametrize("time", [rfc3339(START), "1969-12-31T23:59:59Z"])
def test_a_time_that_has_passed_ends_the_sleep_at_once(time: str) -> None:
    play = started(UNTIL, time)
    assert (play.state.status, play.output, play.timers) == ("COMPLETED", None, {})


@pytest.mark.parametrize("time", ["tomorrow", "2026-12-24T08:00:00", 5, None, {}])
def test_a_time_that_is_none_fails_the_step(time: Json) -> None:
    play = started(UNTIL, time)
    failure = play.step("pause").error
    assert failure is not None
    assert (failure.code, play.state.status) == ("expression_failed", "FAILED")
    assert "The step cannot sleep" in failure.message


def test_a_sleep_ends_during_a_pause_but_nothing_begins() -> None:
    play = started(SLEEP)
    play.pause()
    play.pass_time(TWO_HOURS)
    assert play.statuses == {"pause": "COMPLETED", "after": "PENDING"}
    play.resume()
    assert play.statuses["after"] == "RUNNING"


def test_the_end_of_the_run_ends_the_sleep_and_its_timer() -> None:
    play = started(SLEEP)
    play.cancel()
    assert (play.state.status, play.statuses["pause"], play.timers) == ("CANCELLED", "CANCELLED", {})


def test_a_failed_step_ends_the_sleeps_of_the_run() -> None:
    play = started("{name: w, steps: {pause: {sleep: 2h}, work: {agent: A, retry: {max_attempts: 1}}}}")
    play.fail("work")
    assert (play.state.status, play.statuses["pause"], play.timers) == ("FAILED", "CANCELLED", {})


def test_the_deadline_of_a_step_ends_its_sleep() -> None:
    play = started("{name: w, steps: {pause: {sleep: 2h, deadline: 1h}}}")
    play.pass_time(TWO_HOURS)
    failure = play.step("pause").error
    assert failure is not None
    assert (failure.code, play.timers) == ("deadline_exceeded", {})


def test_a_join_that_is_decided_ends_the_sleep() -> None:
    play = started(
        "{name: w, steps: {a: {agent: A}, pause: {sleep: 2h}, j: {set: {x: 1}, needs: [a, pause], join: any}}}"
    )
    play.succeed("a")
    assert (play.state.status, play.statuses["pause"], play.timers) == ("COMPLETED", "CANCELLED", {})


def test_a_timer_of_another_attempt_does_not_end_the_sleep() -> None:
    play = started(SLEEP)
    play.take(WaitDue("pause", 2), WaitDue("after", 1))
    assert play.statuses == {"pause": "WAITING", "after": "PENDING"}


def test_items_sleep_and_compute_like_steps() -> None:
    play = started("""
name: w
steps:
  each: {for_each: [1, 2, 3], set: {doubled: "${ item * 2 }"}}
  pauses: {for_each: {items: [1h, 2h], limit: 2}, sleep: "${ item }"}
""")
    assert play.statuses == {"each": "COMPLETED", "pauses": "RUNNING"}
    play.pass_time(timedelta(hours=1))
    assert (play.step("pauses[0]").status, play.step("pauses[1]").status) == ("COMPLETED", "WAITING")
    play.pass_time(timedelta(hours=1))
    assert play.output == {"each": [{"doubled": 2}, {"doubled": 4}, {"doubled": 6}], "pauses": [None, None]}


def test_a_run_with_a_question_and_a_sleep_waits_for_a_person_only_after_the_sleep() -> None:
    play = started("{name: w, steps: {pause: {sleep: 2h}, work: {agent: A}}}")
    play.ask("work")
    assert play.state.status == "RUNNING"
    play.pass_time(TWO_HOURS)
    assert play.state.status == "WAITING"


def test_a_turn_computes_a_bounded_number_of_values_and_goes_on_in_the_next_one() -> None:
    items: list[Json] = list(range(2 * MAX_DONE_PER_TURN + 1))
    play = MachineHarness("{name: w, steps: {each: {for_each: '${ input }', set: {n: '${ item }'}}}}", items)
    first = play.take(RunRequested())
    assert sum(step.status == "COMPLETED" for step in play.state.steps.values()) == MAX_DONE_PER_TURN
    (timer,) = play.timers.values()
    assert (timer.due, timer.item) == (first.now, TurnContinued())
    for _ in range(2):
        play.pass_time(timedelta())
    assert (play.state.status, play.output) == ("COMPLETED", [{"n": item} for item in items])


def test_the_inputs_of_actions_survive_the_queue() -> None:
    for item in (WaitDue("pause", 2), TurnContinued()):
        assert decode_input(encode_input(item)) == item


def test_a_step_input_given_by_a_person_is_checked_like_one_of_the_workflow() -> None:
    play = MachineHarness(SLEEP)
    play.take(RunRequested(inputs={"pause": msgspec.Raw(b'{"until":"soon"}')}))
    failure = play.step("pause").error
    assert failure is not None
    assert failure.code == "expression_failed"
