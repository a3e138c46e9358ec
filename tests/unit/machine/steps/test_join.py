"""Steps that begin when enough of what they need has completed, and what becomes of the rest."""

from __future__ import annotations

import pytest
from tests.unit.machine.machine_harness import MachineHarness

from trunkline.machine.events import StepCancelled, StepSkipped


def three(join: str, more: str = "", branch: str = "") -> MachineHarness:
    """Three branches of one step each, and a step that joins them."""
    branches = "\n".join(f"  {name}: {{agent: {name.upper()}{branch}}}" for name in "abc")
    play = MachineHarness(
        f"name: w\nsteps:\n{branches}\n  last: {{agent: Z, needs: [a, b, c], join: {join}{more}}}"
    )
    play.start()
    return play


def failure_of(play: MachineHarness, step: str = "last") -> str:
    error = play.step(step).error
    assert error is not None
    return error.code


@pytest.mark.parametrize(
    ("join", "enough"), [("any", 1), ("majority", 2), ("{at_least: 2}", 2), ("{at_least: 3}", 3), ("all", 3)]
)
def test_a_join_begins_as_soon_as_enough_have_completed(join: str, enough: int) -> None:
    play = three(join)
    for done, name in enumerate("bca"[:enough], start=1):
        play.succeed(name)
        assert (play.statuses["last"] == "RUNNING") == (done == enough)


def test_the_rest_is_stopped_and_its_answers_change_nothing() -> None:
    play = three("any")
    late = play.task("a")
    play.succeed("b")
    assert play.statuses == {"a": "CANCELLED", "b": "COMPLETED", "c": "CANCELLED", "last": "RUNNING"}
    assert [stop.task_id for stop in play.stops] == [play.task("a").task_id, play.task("c").task_id]
    reasons = [event.reason for event in play.events if isinstance(event, StepCancelled)]
    assert reasons == ["The join of last was decided without this step."] * 2
    assert play.answer(late, "success").events == []
    play.succeed("last", "won")
    assert (play.state.status, play.output) == ("COMPLETED", "won")


def test_the_rest_goes_on_where_the_join_says_so() -> None:
    play = three("{policy: any, cancel_rest: false}")
    play.succeed("b")
    play.succeed("last")
    assert (play.stops, play.state.status) == ([], "RUNNING")
    play.succeed("a")
    play.succeed("c")
    assert play.state.status == "COMPLETED"


def test_a_join_reads_its_branches_without_waiting_for_them() -> None:
    play = three("any", ', input: "${ steps.a.status } ${ steps.b.output }"')
    play.succeed("b", "first")
    assert play.task("last").input_data == "CANCELLED first"


def test_a_join_also_waits_for_steps_that_it_reads_outside_its_branches() -> None:
    play = MachineHarness(
        "{name: w, steps: {a: {agent: A}, b: {agent: A}, x: {agent: X},"
        " last: {agent: Z, needs: [a, b], join: any, input: '${ steps.x.output }'}}}"
    )
    play.start()
    play.succeed("a")
    assert play.statuses == {"a": "COMPLETED", "b": "CANCELLED", "x": "RUNNING", "last": "PENDING"}
    play.succeed("x", 1)
    assert play.statuses["last"] == "RUNNING"


def test_a_failed_branch_does_not_fail_a_run_whose_join_can_still_be_met() -> None:
    play = three("any", branch=", retry: {max_attempts: 1}")
    play.fail("a")
    play.fail("b")
    assert (play.state.status, play.statuses["last"]) == ("RUNNING", "PENDING")
    play.succeed("c")
    play.succeed("last")
    assert play.state.status == "COMPLETED"


def test_a_join_that_cannot_be_met_any_more_fails_at_once_and_says_why() -> None:
    play = three("majority", branch=", retry: {max_attempts: 1}")
    play.fail("a")
    play.fail("b")
    assert (play.state.status, play.statuses["c"], failure_of(play)) == ("FAILED", "CANCELLED", "join_failed")
    assert play.state.error is not None
    assert "2 of 3" in play.state.error.message
    assert "a is FAILED, b is FAILED" in play.state.error.message


def test_skipped_branches_do_not_count_as_completed() -> None:
    play = three("any", branch=", when: 'false'")
    assert (play.state.status, failure_of(play)) == ("FAILED", "join_failed")


def test_the_run_goes_on_after_a_failed_join_where_its_on_error_says_so() -> None:
    play = three("any", ", on_error: continue", branch=", retry: {max_attempts: 1}")
    for name in "abc":
        play.fail(name)
    assert (play.state.status, play.statuses["last"]) == ("COMPLETED", "FAILED")


LONG_BRANCHES = """
name: w
steps:
  top: {agent: T}
  a1: {agent: A, needs: [top], retry: {max_attempts: 1}}
  a2: {agent: A, needs: [a1]}
  b1: {agent: B, needs: [top]}
  b2: {agent: B, needs: [b1]}
  last: {agent: Z, needs: [a2, b2], join: any}
"""


def test_all_of_a_losing_branch_is_dropped() -> None:
    play = MachineHarness(LONG_BRANCHES)
    play.start()
    play.succeed("top")
    play.succeed("b1")
    play.succeed("b2")
    assert [play.statuses[name] for name in ("a1", "a2", "last")] == ["CANCELLED", "SKIPPED", "RUNNING"]
    assert [stop.task_id for stop in play.stops] == [play.task("a1").task_id]


def test_a_failure_ends_its_branch_and_not_the_run() -> None:
    play = MachineHarness(LONG_BRANCHES)
    play.start()
    play.succeed("top")
    play.fail("a1")
    assert [play.statuses[name] for name in ("a1", "a2", "last")] == ["FAILED", "CANCELLED", "PENDING"]
    play.succeed("b1")
    play.succeed("b2")
    play.succeed("last")
    assert play.state.status == "COMPLETED"


SHARED = """
name: w
steps:
  a: {agent: A, retry: {max_attempts: 1}}
  b: {agent: B}
  last: {agent: Z, needs: [a, b], join: any}
  other: {agent: Y, needs: [a]}
"""


def test_a_branch_that_another_step_needs_goes_on() -> None:
    play = MachineHarness(SHARED)
    play.start()
    play.succeed("b")
    assert (play.statuses["a"], play.statuses["last"]) == ("RUNNING", "RUNNING")
    play.succeed("a")
    assert play.statuses["other"] == "RUNNING"


def test_the_failure_of_a_branch_that_another_step_needs_fails_the_run() -> None:
    play = MachineHarness(SHARED)
    play.start()
    play.fail("a")
    play.succeed("b")
    assert (play.state.status, failure_of(play, "a")) == ("FAILED", "agent_task_failed")


def test_a_branch_that_waits_for_its_next_attempt_or_for_a_person_is_dropped_with_its_timer() -> None:
    play = three("any", branch=", reply_timeout: 1m")
    play.fail("a", "agent_timeout")
    play.ask("b")
    assert sorted(play.timers) == ["reply/b/1/0", "retry/a/1"]
    play.succeed("c")
    assert (play.timers, play.statuses["last"]) == ({}, "RUNNING")


def test_losers_make_room_for_the_join() -> None:
    play = MachineHarness(
        "{name: w, max_parallel: 2, steps: {a: {agent: A}, b: {agent: B}, c: {agent: C},"
        " last: {agent: Z, needs: [a, b, c], join: any}}}"
    )
    play.start()
    assert play.statuses["c"] == "PENDING"
    play.succeed("a")
    assert play.statuses == {"a": "COMPLETED", "b": "CANCELLED", "c": "SKIPPED", "last": "RUNNING"}
    assert [event.step for event in play.events if isinstance(event, StepSkipped)] == ["c"]


def test_losers_are_stopped_while_the_run_is_paused() -> None:
    play = three("any")
    play.pause()
    play.succeed("b")
    assert play.statuses == {"a": "CANCELLED", "b": "COMPLETED", "c": "CANCELLED", "last": "PENDING"}
    play.resume()
    assert play.statuses["last"] == "RUNNING"


def test_a_retried_run_does_not_call_the_losers_again() -> None:
    play = three("any", branch="")
    again = MachineHarness(play.state.workflow)
    again.start(b="kept")
    assert again.statuses == {"a": "SKIPPED", "b": "COMPLETED", "c": "SKIPPED", "last": "RUNNING"}
    assert [task.step for task in again.tasks] == ["last"]
