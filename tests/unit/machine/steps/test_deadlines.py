"""How long a step may take, all its attempts together."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.machine.machine_harness import MachineHarness

from trunkline.machine.inputs import StepDeadlinePassed, decode_input, encode_input

WITH_DEADLINE = (
    "{name: w, steps: {s: {agent: A, deadline: 1m, retry: {max_attempts: 9, on: [any], first_delay: 25s,\
 backoff: fixed, jitter: false}}}}"
)
ONCE = "{name: w, steps: {s: {agent: A, deadline: 1m, delivery: at_most_once}}}"
MINUTE = timedelta(minutes=1)


def started(workflow: str = WITH_DEADLINE) -> MachineHarness:
    play = MachineHarness(workflow)
    play.start()
    return play


def failure_of(play: MachineHarness) -> str:
    error = play.step("s").error
    assert error is not None
    return error.code


def test_the_deadline_stops_the_call_and_fails_the_step_whatever_its_retries() -> None:
    play = started()
    play.pass_time(MINUTE)
    assert (play.state.status, failure_of(play)) == ("FAILED", "deadline_exceeded")
    assert [stop.task_id for stop in play.stops] == [play.task("s").task_id]
    assert play.step("s").error is not None
    assert "1m" in str(play.step("s").error)


def test_the_deadline_counts_from_the_first_attempt() -> None:
    play = started()
    for _ in range(2):
        play.fail("s", "agent_timeout")
        play.pass_time(timedelta(seconds=25))
    assert (play.step("s").attempts, play.statuses["s"]) == (3, "RUNNING")
    play.fail("s", "agent_timeout")
    play.pass_time(timedelta(seconds=10))
    assert (play.statuses["s"], play.timers, play.stops) == ("FAILED", {}, [])


def test_a_step_that_ends_in_time_leaves_no_timer() -> None:
    play = started()
    assert list(play.timers) == ["deadline/s"]
    play.succeed("s")
    assert (play.state.status, play.timers) == ("COMPLETED", {})


def test_on_error_decides_what_a_passed_deadline_means() -> None:
    play = started("{name: w, steps: {s: {agent: A, deadline: 1m, on_error: continue}}}")
    play.pass_time(MINUTE)
    assert (play.state.status, play.statuses) == ("COMPLETED", {"s": "FAILED"})


def test_a_question_does_not_outlast_the_deadline() -> None:
    play = started()
    play.ask("s")
    play.pass_time(MINUTE)
    assert (play.state.status, len(play.stops)) == ("FAILED", 1)


def test_what_must_not_be_called_twice_waits_for_a_person_when_its_deadline_has_passed() -> None:
    play = started(ONCE)
    play.pass_time(MINUTE)
    assert (play.state.status, play.statuses["s"]) == ("WAITING", "OUTCOME_UNKNOWN")
    play.resolve("s", "succeeded", 1)
    assert play.state.status == "COMPLETED"


def test_a_deadline_survives_its_way_through_the_store() -> None:
    item = StepDeadlinePassed("s")
    assert decode_input(encode_input(item)) == item
