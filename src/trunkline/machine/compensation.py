"""
How a run undoes its work: after it has failed or was cancelled, the compensations of its completed steps run one after
another, the last completed step first, and then the run ends.

Each compensation is a step of the run, under a name of its own. What it does, how it is retried and what it waits for
is as with any other step. If it fails for good, a person decides: nothing is left undone silently.
"""

from __future__ import annotations

from trunkline.machine.compensation_order import is_outcome_unknown, steps_to_compensate
from trunkline.machine.effects import StartTimer
from trunkline.machine.events import (
    RunCancelled,
    RunCompensated,
    RunCompensating,
    RunFailed,
    StepCompensationFailed,
    StepCompensationRetried,
    StepFailed,
    StepSkipped,
)
from trunkline.machine.evolve import step_of
from trunkline.machine.inputs import CompensationDecided, TurnContinued
from trunkline.machine.state import CompensationStatus, EndStatus, Failure, RunState, StepState
from trunkline.machine.steps import failure, kinds, timers
from trunkline.machine.turn import Turn
from trunkline.messages import StepError, complete_fix
from trunkline.workflow import CompiledStep, ExpressionError, compensation_name

# Of compensations that are over as soon as they begin: as many as there may be would make a long transaction.
MAX_DONE_PER_TURN = 200

_CANCELLED = Failure("cancelled", "The run was cancelled.")


def begin(turn: Turn, ends: EndStatus, error: StepError | None) -> bool:
    """Begins to undo the work of a run that would end like this; False: there is nothing to undo."""
    state = turn.state
    cause = "cancelled" if ends == "CANCELLED" else "failed"
    if cause not in state.workflow.definition.compensate_on:
        return False
    count = len(steps_to_compensate(state))
    if not count:
        return False
    turn.record(RunCompensating(_failure_of(error), count, ends, error))
    return True


def reopen(turn: Turn) -> None:
    """Undoes the work of a run that has failed or was cancelled, and whose work was not undone."""
    state = turn.state
    if not is_compensable(state):
        return
    ends: EndStatus = "CANCELLED" if state.status == "CANCELLED" else "FAILED"
    count = len(steps_to_compensate(state))
    turn.record(RunCompensating(_failure_of(state.error), count, ends, reopened=True))


def is_compensable(state: RunState) -> bool:
    return state.status in {"FAILED", "CANCELLED"} and state.compensation is None


def _failure_of(error: StepError | None) -> Failure:
    return _CANCELLED if error is None else Failure(error.code, error.message, error.step)


def advance(turn: Turn) -> None:
    """Begins the next compensation, as soon as the one before it is over; after the last one, the run ends."""
    state = turn.state
    done = 0
    while state.to_compensate:
        name = compensation_name(state.to_compensate[0])
        step = step_of(state, name)
        if step.status != "PENDING":
            return
        if done >= MAX_DONE_PER_TURN:
            turn.add_effect(StartTimer(f"continue/{state.version}", turn.now, TurnContinued()))
            return
        _begin_step(turn, state.workflow.plan(name), step)
        done += 1
    _end(turn, "COMPLETED")


def _begin_step(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    compensated = step_of(turn.state, turn.state.to_compensate[0])
    if is_outcome_unknown(compensated) and step.error is None and not step.has_begun:
        _ask_whether_needed(turn, step, compensated)
        return
    if plan.when is not None and not step.has_begun:
        try:
            chosen = plan.when.holds(turn.scope_of(step))
        except ExpressionError as exc:
            failure.fail(turn, plan, step, StepError(code="expression_failed", message=str(exc)))
            return
        if not chosen:
            turn.record(StepSkipped(step.name, f"Its condition is false: {plan.definition.when}"))
            return
    kinds.begin(turn, plan, step)


def _ask_whether_needed(turn: Turn, step: StepState, compensated: StepState) -> None:
    message = (
        f"It is not known whether step {compensated.name} did its work, nor whether it has to be undone."
    )
    error = StepError(code="outcome_unknown", message=message, step=step.name)
    complete_fix(error, run=turn.state.id, step=step.name)
    turn.record(StepCompensationFailed(step.name, step.attempts, error))


def decide_failed(turn: Turn, step: StepState, decided: CompensationDecided) -> None:
    """A person has decided how the run goes on."""
    if not turn.state.is_compensating or not step.waits_for_decision:
        return
    timers.cancel_wait_timer(turn, step)
    match decided.decision:
        case "retry":
            turn.record(StepCompensationRetried(step.name))
        case "skip":
            turn.record(StepSkipped(step.name, "A person has skipped the compensation."))
        case "give_up":
            error = step.error or StepError(code="internal_error", message="The compensation has failed.")
            turn.record(StepFailed(step.name, step.attempts, error))
            _end(turn, "FAILED")


def give_up(turn: Turn) -> None:
    """The run cannot go on at all."""
    turn.record(RunCompensated("FAILED"))


def _end(turn: Turn, status: CompensationStatus) -> None:
    compensation = turn.state.compensation
    assert compensation is not None, "it has begun"  # noqa: S101 - an invariant
    turn.record(RunCompensated(status))
    if compensation.reopened:
        return
    if compensation.ends == "CANCELLED":
        turn.record(RunCancelled())
    else:
        error = turn.state.error
        assert error is not None, "the run has failed"  # noqa: S101 - an invariant
        turn.record(RunFailed(error))
