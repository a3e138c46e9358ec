"""Steps that must not be called twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.machine.machine_harness import MachineHarness, error

ONCE = "{name: w, steps: {s: {agent: A, delivery: at_most_once, retry: {on: [any]}}}}"


def in_doubt() -> MachineHarness:
    play = MachineHarness(ONCE)
    play.start()
    play.fail("s", "agent_timeout")
    return play


def test_the_task_says_that_it_must_not_be_sent_twice() -> None:
    play = MachineHarness(ONCE)
    play.start()
    assert play.task("s").at_most_once


def test_a_sent_call_without_an_answer_stops_in_doubt_and_is_never_made_again() -> None:
    play = in_doubt()
    step = play.step("s")
    assert (step.status, play.state.status) == ("OUTCOME_UNKNOWN", "WAITING")
    assert step.waiting_for is not None
    assert step.error is not None
    assert (step.waiting_for.kind, step.error.code, step.error.attempt) == ("outcome", "outcome_unknown", 1)
    play.pass_time(timedelta(days=1))
    assert len(play.calls("s")) == 1


def test_a_call_whose_caller_died_stops_in_doubt() -> None:
    play = MachineHarness(ONCE)
    play.start()
    play.answer(play.task("s"), "unknown")
    assert play.step("s").status == "OUTCOME_UNKNOWN"


def test_a_call_that_was_certainly_not_sent_is_made_again() -> None:
    play = MachineHarness(ONCE)
    play.start()
    play.fail("s", "agent_unreachable")
    play.pass_time(timedelta(seconds=1))
    assert [task.attempt for task in play.calls("s")] == [1, 2]


def test_an_answered_failure_is_the_end_whatever_the_policy_says() -> None:
    play = MachineHarness(ONCE)
    play.start()
    play.fail("s", "agent_http_error", http_status=503)
    assert (play.step("s").status, play.state.status) == ("FAILED", "FAILED")


def test_a_late_answer_resolves_the_doubt() -> None:
    play = in_doubt()
    play.succeed("s", "done after all")
    assert (play.state.status, play.output) == ("COMPLETED", "done after all")


def test_a_late_failure_in_the_agents_own_words_resolves_the_doubt() -> None:
    play = in_doubt()
    play.fail("s", "agent_task_failed")
    assert (play.step("s").status, play.state.status) == ("FAILED", "FAILED")


@pytest.mark.parametrize("code", ["agent_timeout", "agent_unreachable"])
def test_another_lost_answer_leaves_the_doubt_as_it_is(code: str) -> None:
    play = in_doubt()
    assert play.answer(play.task("s"), "error", error=error(code)).events == []
    assert play.answer(play.task("s"), "unknown").events == []
    assert play.step("s").status == "OUTCOME_UNKNOWN"


def test_a_person_can_say_that_it_succeeded_and_with_what() -> None:
    play = in_doubt()
    play.resolve("s", "succeeded", {"text": "I looked."})
    assert (play.state.status, play.output) == ("COMPLETED", {"text": "I looked."})


def test_a_person_can_say_that_it_failed() -> None:
    play = in_doubt()
    play.resolve("s", "failed")
    assert play.state.status == "FAILED"
    assert play.state.error is not None
    assert play.state.error.message == "A person reported that the agent failed."


def test_a_person_can_have_it_called_again_under_the_same_task_id() -> None:
    play = in_doubt()
    play.resolve("s", "call_again")
    first, second = play.calls("s")
    assert (second.task_id, second.attempt) == (first.task_id, 2)
    assert (play.step("s").status, play.state.status) == ("RUNNING", "RUNNING")
    play.fail("s", "agent_connection_lost")
    assert play.step("s").status == "OUTCOME_UNKNOWN"


def test_only_a_step_in_doubt_can_be_resolved() -> None:
    play = MachineHarness(ONCE)
    play.start()
    assert play.resolve("s", "succeeded", 1).events == []
    assert play.step("s").status == "RUNNING"


def test_what_is_to_be_called_again_waits_while_the_run_is_paused() -> None:
    play = in_doubt()
    play.pause()
    play.resolve("s", "call_again")
    assert len(play.calls("s")) == 1
    play.resume()
    assert len(play.calls("s")) == 2
