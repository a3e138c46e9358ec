"""Pause, resume, cancel, the deadline, and the end that is final."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.machine.machine_harness import START, MachineHarness, error

from trunkline.clock import after
from trunkline.machine.decide import CANCEL_TIMEOUT
from trunkline.machine.inputs import CancelOverdue, DeadlinePassed, ReplyOverdue, RetryDue

CHAIN = "{name: w, steps: {a: {agent: A}, b: {agent: B, needs: [a]}}}"
PAIR = "{name: w, steps: {a: {agent: A}, b: {agent: B}}}"
DEADLINE = "{name: w, deadline: 10s, steps: {a: {agent: A}, b: {agent: B, needs: [a]}}}"
ONCE = "{name: w, steps: {a: {agent: A, delivery: at_most_once}}}"


def test_a_paused_run_records_results_and_starts_nothing() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.pause()
    assert play.state.status == "PAUSED"
    play.succeed("a", "kept")
    assert (play.statuses, play.state.status) == ({"a": "COMPLETED", "b": "PENDING"}, "PAUSED")
    play.resume()
    assert (play.statuses["b"], play.state.status) == ("RUNNING", "RUNNING")


def test_a_retry_that_comes_due_in_a_paused_run_is_made_after_it() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.fail("a", "agent_timeout")
    play.pause()
    play.pass_time(timedelta(minutes=1))
    assert (play.statuses["a"], len(play.calls("a"))) == ("PENDING", 1)
    play.resume()
    assert (play.task("a").attempt, play.task("a").task_id) == (2, f"{play.state.id}/a/0")


def test_a_retry_that_is_not_due_yet_survives_a_pause() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.fail("a", "agent_timeout")
    play.pause()
    play.resume()
    assert play.statuses["a"] == "WAITING"
    play.pass_time(timedelta(seconds=1))
    assert len(play.calls("a")) == 2


def test_a_run_whose_last_step_ends_while_it_is_paused_is_complete_when_it_is_resumed() -> None:
    play = MachineHarness("{name: w, steps: {a: {agent: A}}}")
    play.start()
    play.pause()
    play.succeed("a", 1)
    assert play.state.status == "PAUSED"
    play.resume()
    assert (play.state.status, play.output) == ("COMPLETED", 1)


def test_a_run_that_fails_while_it_is_paused_has_failed_when_it_is_resumed() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.pause()
    play.fail("a")
    assert play.state.status == "PAUSED"
    play.resume()
    assert play.state.status == "FAILED"


def test_a_waiting_run_can_be_paused_and_waits_again_afterwards() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.ask("a")
    play.pause()
    assert play.state.status == "PAUSED"
    play.resume()
    assert play.state.status == "WAITING"


def test_pausing_twice_and_resuming_what_is_not_paused_change_nothing() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    assert play.resume().events == []
    play.pause()
    assert play.pause().events == []


def test_a_run_that_has_not_started_is_cancelled_at_once() -> None:
    play = MachineHarness(CHAIN)
    play.cancel()
    assert (play.state.status, play.tasks, play.timers) == ("CANCELLED", [], {})
    assert play.start().events == []


def test_cancelling_stops_the_calls_in_flight_and_waits_for_them() -> None:
    play = MachineHarness(PAIR)
    play.start()
    play.cancel()
    assert [(stop.task_id, stop.attempt) for stop in play.stops] == [
        (task.task_id, task.attempt) for task in play.tasks
    ]
    assert (play.state.status, play.state.cancel_requested_at) == ("RUNNING", play.now)
    play.answer(play.task("a"), "cancelled")
    assert play.state.status == "RUNNING"
    play.answer(play.task("b"), "cancelled")
    assert (play.state.status, play.timers) == ("CANCELLED", {})
    assert play.statuses == {"a": "CANCELLED", "b": "CANCELLED"}


def test_an_agent_that_does_not_confirm_in_time_is_left_alone() -> None:
    play = MachineHarness(PAIR)
    play.start()
    play.cancel()
    play.pass_time(CANCEL_TIMEOUT)
    assert (play.state.status, play.statuses["a"]) == ("CANCELLED", "CANCELLED")
    assert timedelta(seconds=10) > CANCEL_TIMEOUT


def test_a_result_that_comes_before_the_stop_is_kept_and_the_run_is_cancelled_all_the_same() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.cancel()
    play.succeed("a", "just in time")
    assert (play.state.status, play.statuses) == ("CANCELLED", {"a": "COMPLETED", "b": "PENDING"})


@pytest.mark.parametrize("code", ["agent_timeout", "agent_task_failed"])
def test_a_call_that_fails_while_its_run_is_cancelled_is_not_retried(code: str) -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.cancel()
    play.fail("a", code)
    assert (play.state.status, play.statuses["a"], len(play.tasks)) == ("CANCELLED", "FAILED", 1)


def test_cancelling_ends_a_retry_that_waits() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.fail("a", "agent_timeout")
    play.cancel()
    assert (play.state.status, play.statuses["a"]) == ("CANCELLED", "CANCELLED")
    assert (play.timers, play.stops) == ({}, [])


def test_cancelling_tells_an_agent_that_waits_for_a_reply() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.ask("a")
    play.cancel()
    assert play.state.status == "CANCELLED"
    assert [(stop.task_id, stop.attempt) for stop in play.stops] == [(play.task("a").task_id, 1)]


def test_cancelling_tells_an_agent_whose_reply_is_still_queued() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.ask("a")
    play.pause()
    play.reply("a", "Yes.")
    play.cancel()
    assert play.state.status == "CANCELLED"
    assert [(stop.task_id, stop.attempt) for stop in play.stops] == [(play.task("a").task_id, 1)]


def test_cancelling_ends_a_step_in_doubt() -> None:
    play = MachineHarness(ONCE)
    play.start()
    play.fail("a", "agent_timeout")
    play.cancel()
    assert (play.state.status, play.statuses["a"]) == ("CANCELLED", "CANCELLED")


def test_cancelling_ends_a_retry_that_came_due_during_a_pause() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.fail("a", "agent_timeout")
    play.pause()
    play.pass_time(timedelta(minutes=1))
    play.cancel()
    assert (play.state.status, play.statuses, play.stops) == (
        "CANCELLED", {"a": "CANCELLED", "b": "PENDING"}, [],
    )  # fmt: skip


def test_a_paused_run_can_be_cancelled() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.pause()
    play.cancel()
    assert play.state.status == "RUNNING"
    play.answer(play.task("a"), "cancelled")
    assert play.state.status == "CANCELLED"


def test_a_run_that_is_being_cancelled_cannot_be_paused_or_cancelled_again() -> None:
    play = MachineHarness(CHAIN)
    play.start()
    play.cancel()
    assert play.pause().events == []
    assert play.cancel().events == []
    assert len(play.stops) == 1


def test_the_deadline_counts_from_the_runs_creation() -> None:
    play = MachineHarness(DEADLINE)
    play.now = after(START, timedelta(seconds=3))
    play.start()
    assert play.timers["deadline"].due == after(START, timedelta(seconds=10))


def test_the_deadline_stops_what_runs_and_fails_the_run() -> None:
    play = MachineHarness(DEADLINE)
    play.start()
    play.pass_time(timedelta(seconds=10))
    assert (play.state.status, play.statuses) == ("FAILED", {"a": "CANCELLED", "b": "PENDING"})
    assert play.state.error is not None
    assert play.state.error.code == "deadline_exceeded"
    assert [stop.task_id for stop in play.stops] == [play.task("a").task_id]


def test_the_deadline_ends_a_paused_run_and_one_that_waits() -> None:
    for hold in ("pause", "ask", "back off"):
        play = MachineHarness(DEADLINE)
        play.start()
        match hold:
            case "pause":
                play.pause()
            case "ask":
                play.ask("a")
            case _:
                play.fail("a", "agent_http_error", http_status=503, retry_after_ms=60_000)
        play.pass_time(timedelta(seconds=10))
        assert (play.state.status, play.timers) == ("FAILED", {}), hold


def test_a_run_that_ends_in_time_drops_its_deadline() -> None:
    play = MachineHarness(DEADLINE)
    play.start()
    play.succeed("a")
    play.succeed("b")
    assert (play.state.status, play.timers) == ("COMPLETED", {})


@pytest.mark.parametrize("end", ["COMPLETED", "FAILED", "CANCELLED"])
def test_final_states_are_final(end: str) -> None:
    play = MachineHarness("{name: w, steps: {a: {agent: A}}}")
    play.start()
    match end:
        case "COMPLETED":
            play.succeed("a", 1)
        case "FAILED":
            play.fail("a")
        case _:
            play.cancel()
            play.answer(play.task("a"), "cancelled")
    assert play.state.status == end
    for turn in (
        play.start(),
        play.succeed("a", 2),
        play.fail("a", "agent_timeout"),
        play.answer(play.task("a"), "unknown", error=error("agent_timeout")),
        play.ask("a"),
        play.reply("a", "Yes."),
        play.resolve("a", "call_again"),
        play.take(RetryDue("a", 1), ReplyOverdue("a", 1, 0), DeadlinePassed(), CancelOverdue()),
        play.pause(),
        play.resume(),
        play.cancel(),
    ):
        assert (turn.events, turn.effects, turn.changed) == ([], [], {})
    assert play.state.status == end
