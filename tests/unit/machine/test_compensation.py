"""Undoing the work of a run: what is compensated, in which order, and what a person decides."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from tests.unit.machine.machine_harness import MachineHarness

from trunkline.jsontypes import Json
from trunkline.machine.decide import abandon
from trunkline.machine.events import RunCompensating, StepBegan, StepSkipped, StepStarted
from trunkline.machine.evolve import restore
from trunkline.machine.inputs import (
    CancelOverdue,
    CompensateRequested,
    CompensationDecided,
    CompensationDecision,
    DeadlinePassed,
)
from trunkline.machine.state import RunState
from trunkline.messages import StepError

TRAVEL = """
name: travel
{top}
steps:
  flight:
    agent: Flights
    compensate:
      agent: Flights
      input: {{cancel: "${{ steps.flight.output.id }}", why: "${{ failure.code }} in ${{ failure.step }}"}}
      retry: {{max_attempts: 2}}
      {more}
  car:
    agent: Cars
    needs: [flight]
    compensate: {{agent: Cars, input: {{cancel: "${{ steps.car.output.id }}"}}}}
  hotel: {{agent: Hotels, needs: [car], retry: {{max_attempts: 1}}}}
"""


def travel(top: str = "", more: str = "") -> MachineHarness:
    play = MachineHarness(TRAVEL.format(top=top, more=more))
    play.start()
    return play


def booked(top: str = "", more: str = "") -> MachineHarness:
    """The flight and the car are booked, and the hotel is being booked."""
    play = travel(top, more)
    play.succeed("flight", {"id": 1})
    play.succeed("car", {"id": 2})
    return play


def compensated(play: MachineHarness) -> list[str]:
    """The compensations that were called, in order."""
    return [task.step for task in play.tasks if task.step.startswith("compensate:")]


def decided(play: MachineHarness, step: str, decision: CompensationDecision) -> None:
    play.take(CompensationDecided(step, decision))


def reload(play: MachineHarness) -> None:
    """As another process reads it: what is stored, and nothing that was derived from it."""
    state = play.state
    play.state = RunState(
        id=state.id,
        workflow=state.workflow,
        correlation_id=state.correlation_id,
        input=state.input,
        created_at=state.created_at,
        status=state.status,
        version=state.version,
        seq=state.seq,
        output=state.output,
        error=state.error,
        paused=state.paused,
        cancel_requested_at=state.cancel_requested_at,
        started_at=state.started_at,
        finished_at=state.finished_at,
        contexts=state.contexts,
        compensation=state.compensation,
    )
    restore(play.state, list(state.steps.values()))


@pytest.mark.parametrize("restarts", [False, True])
def test_compensations_run_one_after_another_in_the_reverse_order(restarts: bool) -> None:
    play = booked()
    play.fail("hotel")
    assert (play.state.status, compensated(play)) == ("COMPENSATING", ["compensate:car"])
    assert play.state.error is not None
    assert play.task("compensate:car").input_data == {"cancel": 2}
    if restarts:
        reload(play)
    play.succeed("compensate:car")
    assert compensated(play) == ["compensate:car", "compensate:flight"]
    assert play.task("compensate:flight").input_data == {"cancel": 1, "why": "agent_task_failed in hotel"}
    if restarts:
        reload(play)
    assert play.state.status == "COMPENSATING"
    play.succeed("compensate:flight")
    assert (play.state.status, play.state.error.code) == ("FAILED", "agent_task_failed")
    assert play.state.compensation is not None
    assert play.state.compensation.status == "COMPLETED"
    assert play.history[-3:] == ["StepCompleted", "RunCompensated", "RunFailed"]


def test_a_run_that_completes_or_has_nothing_to_undo_is_not_compensated() -> None:
    play = booked()
    play.succeed("hotel")
    assert (play.state.status, play.state.compensation) == ("COMPLETED", None)
    play = travel()
    play.fail("flight")
    assert (play.state.status, play.state.compensation) == ("FAILED", None)
    assert play.history[-1] == "RunFailed"


def test_calls_in_flight_end_first_and_are_undone_if_they_complete() -> None:
    play = MachineHarness(
        "{name: w, steps: {a: {agent: A, compensate: {agent: X}}, b: {agent: B, compensate: {agent: X}},"
        " c: {agent: C}}}"
    )
    play.start()
    play.succeed("a")
    play.fail("c")
    assert (play.state.status, compensated(play)) == ("RUNNING", [])
    play.succeed("b")
    play.succeed("compensate:b")
    play.succeed("compensate:a")
    assert (compensated(play), play.state.status) == (["compensate:b", "compensate:a"], "FAILED")


@pytest.mark.parametrize(
    ("ends", "status"),
    [("[failed]", None), ("[cancelled]", "COMPLETED"), ("[failed, cancelled]", "COMPLETED")],
)
def test_the_workflow_says_after_which_ends_its_work_is_undone(ends: str, status: str | None) -> None:
    play = booked(f"compensate_on: {ends}")
    play.cancel()
    play.answer(play.task("hotel"), "cancelled")
    while play.state.status == "COMPENSATING":
        play.succeed(f"compensate:{play.state.to_compensate[0]}")
    assert play.state.status == "CANCELLED"
    assert (None if play.state.compensation is None else play.state.compensation.status) == status


def test_the_failure_of_a_cancelled_run_says_so() -> None:
    play = MachineHarness(
        "{name: w, compensate_on: [cancelled], steps: {a: {agent: A, compensate: {agent: X, input: '${ failure }'}},"
        " b: {agent: B, needs: [a]}}}"
    )
    play.start()
    play.succeed("a")
    play.cancel()
    play.take(CancelOverdue())
    assert play.task("compensate:a").input_data == {
        "code": "cancelled",
        "message": "The run was cancelled.",
        "step": None,
    }
    play.take(CancelOverdue())
    play.cancel()
    assert play.state.status == "COMPENSATING"
    play.succeed("compensate:a")
    assert play.history[-2:] == ["RunCompensated", "RunCancelled"]


def test_a_compensation_is_retried_like_any_other_step() -> None:
    play = booked()
    play.fail("hotel")
    play.succeed("compensate:car")
    play.fail("compensate:flight", "agent_timeout")
    assert play.step("compensate:flight").status == "WAITING"
    reload(play)
    play.pass_time(timedelta(minutes=1))
    assert [task.attempt for task in play.calls("compensate:flight")] == [1, 2]
    play.succeed("compensate:flight")
    assert play.state.status == "FAILED"


def failed_compensation() -> MachineHarness:
    play = booked()
    play.fail("hotel")
    play.fail("compensate:car")
    step = play.step("compensate:car")
    assert (step.status, play.state.status) == ("WAITING", "COMPENSATING")
    assert step.waiting_for is not None
    assert step.waiting_for.is_for_a_person
    assert compensated(play) == ["compensate:car"]
    return play


@pytest.mark.parametrize("restarts", [False, True])
def test_a_person_can_have_a_failed_compensation_tried_again(restarts: bool) -> None:
    play = failed_compensation()
    if restarts:
        reload(play)
    decided(play, "compensate:car", "retry")
    first, second = play.calls("compensate:car")
    assert (second.attempt, second.task_id != first.task_id) == (2, True)
    play.fail("compensate:car", "agent_timeout")
    play.fail("compensate:car", "agent_timeout")
    play.pass_time(timedelta(minutes=1))
    play.succeed("compensate:car")
    play.succeed("compensate:flight")
    assert play.state.compensation is not None
    assert (play.state.status, play.state.compensation.status) == ("FAILED", "COMPLETED")


def test_a_person_can_skip_a_failed_compensation() -> None:
    play = failed_compensation()
    decided(play, "compensate:car", "skip")
    assert play.step("compensate:car").status == "SKIPPED"
    assert compensated(play)[-1] == "compensate:flight"


def test_a_person_can_give_up() -> None:
    play = failed_compensation()
    decided(play, "compensate:car", "give_up")
    assert play.state.compensation is not None
    assert (play.state.status, play.state.compensation.status) == ("FAILED", "FAILED")
    assert (play.step("compensate:car").status, compensated(play)) == ("FAILED", ["compensate:car"])
    assert play.state.error is not None
    assert play.state.error.step == "hotel"
    # Decided: nothing that comes later changes it.
    decided(play, "compensate:car", "retry")
    assert play.state.status == "FAILED"


def test_a_late_answer_ends_the_wait_for_a_person() -> None:
    play = failed_compensation()
    decided(play, "compensate:car", "retry")
    play.fail("compensate:car", "agent_timeout")
    play.succeed("compensate:car")
    assert compensated(play)[-1] == "compensate:flight"


def test_an_expression_that_fails_asks_a_person_too() -> None:
    play = travel()
    play.succeed("flight", {})
    play.succeed("car", {"id": 2})
    play.fail("hotel")
    play.succeed("compensate:car")
    step = play.step("compensate:flight")
    assert (step.status, step.error and step.error.code) == ("WAITING", "expression_failed")
    reload(play)
    decided(play, "compensate:flight", "retry")
    assert play.step("compensate:flight").waits_for_decision
    decided(play, "compensate:flight", "skip")
    assert play.state.status == "FAILED"


def test_a_condition_decides_whether_there_is_anything_to_undo() -> None:
    play = booked(more="when: steps.flight.output.id > 5")
    play.fail("hotel")
    play.succeed("compensate:car")
    assert isinstance(play.events[-3], StepSkipped)
    assert (play.state.status, compensated(play)) == ("FAILED", ["compensate:car"])


def test_the_deadline_of_a_compensation_asks_a_person_and_its_late_end_counts() -> None:
    play = booked(more="deadline: 10s")
    play.fail("hotel")
    play.succeed("compensate:car")
    play.pass_time(timedelta(seconds=10))
    step = play.step("compensate:flight")
    assert (step.waits_for_decision, step.error and step.error.code) == (True, "deadline_exceeded")
    play.answer(play.task("compensate:flight"), "cancelled")
    assert play.step("compensate:flight").waits_for_decision
    play.pass_time(timedelta(seconds=10))
    play.succeed("compensate:flight")
    assert play.state.status == "FAILED"


def test_the_deadline_and_the_size_of_the_run_do_not_stop_compensations() -> None:
    play = booked("deadline: 1h")
    play.pass_time(timedelta(hours=1))
    assert (play.state.status, play.state.error and play.state.error.code) == (
        "COMPENSATING",
        "deadline_exceeded",
    )
    assert "deadline" not in play.timers
    play.max_bytes = 1
    play.succeed("compensate:car", "x" * 1000)
    play.fail("compensate:flight", "agent_timeout")
    play.pass_time(timedelta(minutes=1))
    play.succeed("compensate:flight")
    assert play.state.status == "FAILED"


def test_a_run_that_is_being_undone_is_not_cancelled() -> None:
    play = booked()
    play.fail("hotel")
    before = len(play.events)
    play.cancel()
    assert (len(play.events), play.state.cancel_requested_at) == (before, None)


def test_a_deadline_that_has_passed_does_not_end_compensations() -> None:
    play = booked("deadline: 1h")
    play.fail("hotel")
    play.take(DeadlinePassed())
    assert (play.state.status, play.state.error and play.state.error.step) == ("COMPENSATING", "hotel")


def test_a_run_that_is_too_large_is_undone() -> None:
    play = booked()
    play.max_bytes = 1
    play.work("hotel")
    assert (play.state.status, play.state.error and play.state.error.code) == (
        "COMPENSATING",
        "run_too_large",
    )


def test_a_pause_holds_the_next_compensation_back() -> None:
    play = booked()
    play.fail("hotel")
    play.pause()
    play.succeed("compensate:car")
    assert (play.state.status, compensated(play)) == ("PAUSED", ["compensate:car"])
    reload(play)
    play.resume()
    assert (play.state.status, compensated(play)[-1]) == ("COMPENSATING", "compensate:flight")


def test_a_decision_in_a_paused_run_is_carried_out_after_it() -> None:
    play = failed_compensation()
    play.pause()
    decided(play, "compensate:car", "retry")
    assert len(play.calls("compensate:car")) == 1
    play.resume()
    assert len(play.calls("compensate:car")) == 2


def test_an_unknown_outcome_is_a_persons_to_decide() -> None:
    play = MachineHarness(
        "{name: w, steps: {a: {agent: A, delivery: at_most_once, compensate: {agent: X}}, b: {agent: B, retry:"
        " {max_attempts: 1}}}}"
    )
    play.start()
    play.fail("a", "agent_timeout")
    assert play.statuses["a"] == "OUTCOME_UNKNOWN"
    play.fail("b")
    assert (play.state.status, compensated(play)) == ("COMPENSATING", [])
    step = play.step("compensate:a")
    assert (step.waits_for_decision, step.error and step.error.code) == (True, "outcome_unknown")
    reload(play)
    decided(play, "compensate:a", "retry")
    assert compensated(play) == ["compensate:a"]
    play.succeed("compensate:a")
    assert play.state.status == "FAILED"


def test_a_compensation_that_is_called_once_waits_for_its_outcome() -> None:
    play = booked(more="delivery: at_most_once")
    play.fail("hotel")
    play.succeed("compensate:car")
    play.fail("compensate:flight", "agent_timeout")
    assert play.step("compensate:flight").status == "OUTCOME_UNKNOWN"
    play.resolve("compensate:flight", "failed")
    assert play.step("compensate:flight").waits_for_decision
    decided(play, "compensate:flight", "retry")
    play.fail("compensate:flight", "agent_timeout")
    play.resolve("compensate:flight", "call_again")
    play.succeed("compensate:flight")
    assert play.state.status == "FAILED"


def test_an_agent_may_ask_during_a_compensation() -> None:
    play = booked()
    play.fail("hotel")
    play.ask("compensate:car", "Really?")
    play.reply("compensate:car", "Yes")
    play.succeed("compensate:car")
    assert compensated(play)[-1] == "compensate:flight"


def test_each_item_that_has_completed_is_undone_the_last_one_first() -> None:
    play = MachineHarness(
        "name: w\nsteps:\n  book: {agent: A, for_each: '${ input }', compensate: {agent: X, input:"
        " {item: '${ item }', at: '${ index }', id: '${ steps.book.output }'}}}\n"
        "  pay: {agent: P, needs: [book], retry: {max_attempts: 1}}",
        ["x", "y", "z"],
    )
    play.start()
    for name in ("book[1]", "book[0]", "book[2]"):
        play.now = type(play.now)(play.now + 1)
        play.succeed(name, name)
    play.fail("pay")
    seen: list[Json] = []
    while play.state.status == "COMPENSATING":
        reload(play)
        task = play.tasks[-1]
        seen.append(task.input_data)
        play.succeed(task.step)
    assert seen == [
        {"item": "z", "at": 2, "id": "book[2]"},
        {"item": "x", "at": 0, "id": "book[0]"},
        {"item": "y", "at": 1, "id": "book[1]"},
    ]
    assert play.step("compensate:book[1]").status == "COMPLETED"


def test_items_of_a_loop_that_failed_are_undone() -> None:
    play = MachineHarness(
        "name: w\nsteps:\n  book: {agent: A, for_each: '${ input }', retry: {max_attempts: 1}, compensate: {agent: X}}",
        ["x", "y"],
    )
    play.start()
    play.succeed("book[0]")
    play.fail("book[1]")
    assert (play.state.status, compensated(play)) == ("COMPENSATING", ["compensate:book[0]"])


def test_a_run_can_be_compensated_after_its_end() -> None:
    play = booked("compensate_on: []")
    play.fail("hotel")
    ended = play.state.finished_at
    assert (play.state.status, play.state.compensation) == ("FAILED", None)
    reload(play)
    play.take(CompensateRequested())
    assert (play.state.status, play.state.finished_at) == ("COMPENSATING", None)
    play.succeed("compensate:car")
    reload(play)
    play.succeed("compensate:flight")
    assert (play.state.status, play.state.finished_at, play.history[-1]) == (
        "FAILED",
        ended,
        "RunCompensated",
    )
    assert play.history.count("RunFailed") == 1
    before = len(play.events)
    play.take(CompensateRequested())
    assert len(play.events) == before


def test_a_run_that_completed_cannot_be_compensated() -> None:
    play = booked()
    play.succeed("hotel")
    play.take(CompensateRequested())
    assert play.state.status == "COMPLETED"


def test_a_run_with_nothing_to_undo_is_compensated_at_once() -> None:
    play = travel()
    play.fail("flight")
    play.take(CompensateRequested())
    assert (play.state.status, play.history[-2:]) == ("FAILED", ["RunCompensating", "RunCompensated"])


def test_a_compensation_that_cannot_be_decided_ends_the_run() -> None:
    play = booked()
    play.fail("hotel")
    reload(play)
    abandon(play.state, StepError(code="internal_error", message="?"), play.now)
    assert play.state.compensation is not None
    assert (play.state.status, play.state.compensation.status) == ("FAILED", "FAILED")


def test_steps_that_were_over_at_the_same_instant_are_undone_against_their_dependencies() -> None:
    undo = "compensate: {set: {done: true}}"
    play = MachineHarness(
        f"name: w\nsteps:\n  c: {{set: {{x: 1}}, needs: [b], {undo}}}\n  a: {{set: {{x: 1}}, {undo}}}\n"
        f"  b: {{set: {{x: 1}}, needs: [a], {undo}}}\n  d: {{agent: D, needs: [c], retry: {{max_attempts: 1}}}}"
    )
    play.start()
    play.fail("d")
    begun = [event.step for event in play.events if isinstance(event, StepBegan)]
    assert begun[3:] == ["compensate:c", "compensate:b", "compensate:a"]
    assert play.state.status == "FAILED"


def test_many_compensations_that_are_over_at_once_take_several_turns() -> None:
    play = MachineHarness(
        "name: w\nsteps:\n  s: {for_each: '${ input }', set: {x: '${ item }'}, compensate: {set: {y: '${ item }'}}}\n"
        "  d: {agent: D, needs: [s], retry: {max_attempts: 1}}",
        list(range(500)),
    )
    play.start()
    play.pass_time(timedelta(seconds=1))
    turn = play.fail("d")
    assert play.state.status == "COMPENSATING"
    assert len(turn.changed) < 250
    play.pass_time(timedelta(seconds=1))
    assert play.state.status == "FAILED"
    assert len(play.state.to_compensate) == 0


class _Simulation:
    """A random workflow, its calls answered in a random order, with a restart now and then."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.count = self.chance.randint(2, 8)
        steps: list[str] = []
        for index in range(self.count):
            needs = [f"s{other}" for other in range(index) if self.chance.random() < 0.3]
            undo = ", compensate: {agent: U, retry: {max_attempts: 2}}" if self.chance.random() < 0.7 else ""
            steps.append(f"  s{index}: {{agent: A, needs: {needs}, retry: {{max_attempts: 1}}{undo}}}")
        self.play = MachineHarness("name: w\ncompensate_on: [failed, cancelled]\nsteps:\n" + "\n".join(steps))
        self.undone: list[str] = []
        self.done: list[str] = []

    def run(self) -> None:
        play, chance = self.play, self.chance
        play.start()
        while play.state.finished_at is None:
            play.pass_time(timedelta(seconds=90))
            if chance.random() < 0.3:
                reload(play)
            deciding = [name for name, step in play.state.steps.items() if step.waits_for_decision]
            running = sorted(name for name, step in play.state.steps.items() if step.status == "RUNNING")
            if deciding:
                decided(play, deciding[0], chance.choice(["retry", "retry", "skip"]))
            elif chance.random() < 0.03:
                play.cancel()
            elif running:
                self.answer(chance.choice(running))

    def answer(self, name: str) -> None:
        undoes = name.startswith("compensate:")
        if self.chance.random() < (0.3 if undoes else 0.15):
            self.play.fail(name, self.chance.choice(["agent_timeout", "agent_task_failed"]))
        else:
            (self.undone if undoes else self.done).append(name.removeprefix("compensate:"))
            self.play.succeed(name)


@pytest.mark.parametrize("seed", range(300))
def test_random_runs_undo_exactly_what_was_done_in_the_reverse_order(seed: int) -> None:
    simulation = _Simulation(seed)
    simulation.run()
    play = simulation.play
    compensable = [name for name in simulation.done if play.state.workflow.compensation(name) is not None]
    if play.state.status == "COMPLETED":
        assert simulation.undone == []
        return
    skipped = {
        name.removeprefix("compensate:")
        for name, step in play.state.steps.items()
        if name.startswith("compensate:") and step.status == "SKIPPED"
    }
    assert simulation.undone == [name for name in reversed(compensable) if name not in skipped]
    assert (play.state.compensation is not None) == bool(compensable)
    begun = [event for event in play.events if isinstance(event, RunCompensating)]
    assert len(begun) == bool(compensable)
    # One after another: never two at the same time.
    running = 0
    for event in play.events:
        step = getattr(event, "step", "")
        if not step.startswith("compensate:"):
            continue
        running += isinstance(event, StepStarted)
        running -= type(event).__name__ in {
            "StepCompleted",
            "StepCompensationFailed",
            "StepRetryScheduled",
        }
        assert running in {0, 1}
