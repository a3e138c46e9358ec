"""
The step kind that is a run of another workflow, its child: how it begins, and what the child's end means for it.

The child is a run like any other; it is asked for here, told of what happens to its parent, and heard of when it ends.
"""

from __future__ import annotations

from typing import assert_never

from trunkline.ids import RunId, child_run_id
from trunkline.machine.effects import SendRunInput, StartChildRun
from trunkline.machine.events import (
    Payload,
    StepCancelled,
    StepChildStarted,
    StepCompleted,
    StepContinued,
    StepRequeued,
    StepWaiting,
)
from trunkline.machine.inputs import (
    CancelRequested,
    ChildContinued,
    ChildEnded,
    ChildRefused,
    ChildWaiting,
    PauseRequested,
    ResumeRequested,
)
from trunkline.machine.state import StepState
from trunkline.machine.steps import actions, failure, rounds, timers
from trunkline.machine.turn import Turn
from trunkline.messages import StepError
from trunkline.workflow import CompiledStep, block_path

# Of runs above a run. Circles are refused when a workflow is saved; two that are saved at the same moment end here.
MAX_DEPTH = 10

# Why a run that was asked for has never begun.
REFUSALS = frozenset({"workflow_unknown", "child_input_invalid"})

# As a person's wish to cancel has it: the first of both is taken in.
CANCEL_KEY = "cancel"


def is_child(plan: CompiledStep) -> bool:
    return plan.kind in {"workflow", "steps"}


def child_run_of(run_id: RunId, plan: CompiledStep, step: StepState) -> RunId | None:
    """The run that a step of this one has begun last, if it has."""
    if not is_child(plan) or not step.attempts or (plan.for_each is not None and step.name == plan.name):
        return None
    if step.error is not None and step.error.code in REFUSALS:
        return None
    return _run_id(run_id, step, step.round, step.attempts)


def current_child_run_id(turn: Turn, step: StepState) -> RunId:
    return _run_id(turn.state.id, step, step.round, step.attempts)


def _run_id(run_id: RunId, step: StepState, round_: int, attempt: int) -> RunId:
    # No name of a step or an item has such an end.
    return child_run_id(run_id, step.name if round_ < 2 else f"{step.name}#{round_}", attempt)


def begin(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """Asks for a run, for the first time or again."""
    workflow = plan.definition.workflow or turn.state.workflow.definition.name
    block = None if plan.block is None else block_path(turn.state.block, plan.name)
    if block is None and turn.state.depth >= MAX_DEPTH:
        message = (
            f"The run cannot start workflow {workflow}, because it is already nested {MAX_DEPTH} levels deep."
            " Runs that triggers start when a run ends and child runs of steps count together."
        )
        failure.fail(turn, plan, step, StepError(code="child_too_deep", message=message))
        return
    text = actions.read_input(turn, plan, step)
    if text is None:
        return
    attempt, round_ = step.attempts + 1, 0
    if plan.definition.repeat is not None:
        round_ = step.round or 1
        if step.input is None:
            text = rounds.first_input(plan, text)
    if not step.has_begun:
        timers.start_step_deadline(turn, plan, step)
    child = _run_id(turn.state.id, step, round_, attempt)
    version = plan.definition.version
    turn.record(StepChildStarted(step.name, attempt, child, workflow, Payload(text), version, block, round_))
    turn.add_effect(StartChildRun(child, step.name, workflow, version, text, block))


def begin_round(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """The delay between two rounds is over."""
    if turn.state.paused or turn.is_ending:
        turn.record(StepRequeued(step.name))
    else:
        begin(turn, plan, step)


def stop(turn: Turn, step: StepState) -> None:
    """Stops the child run and cancels its timers."""
    timers.cancel_wait_timer(turn, step)
    if step.waits_inside:
        # Its end is waited for, as that of any other child.
        turn.record(StepContinued(step.name))
    if step.status == "RUNNING":
        turn.add_effect(SendRunInput(current_child_run_id(turn, step), CANCEL_KEY, CancelRequested()))


def stop_all(turn: Turn) -> None:
    for step in _steps_with_children(turn):
        stop(turn, step)


def pause_all(turn: Turn) -> None:
    for step in _steps_with_children(turn):
        turn.add_effect(
            SendRunInput(current_child_run_id(turn, step), f"pause/{turn.state.seq}", PauseRequested())
        )


def resume_all(turn: Turn) -> None:
    for step in _steps_with_children(turn):
        turn.add_effect(
            SendRunInput(current_child_run_id(turn, step), f"resume/{turn.state.seq}", ResumeRequested())
        )


def _steps_with_children(turn: Turn) -> list[StepState]:
    """The steps that have a child which has not ended."""
    state = turn.state
    if not any(is_child(plan) for plan in state.workflow.steps.values()):
        return []
    return [
        step
        for step in state.steps.values()
        if _is_under_way(step)
        and step.name not in state.for_each
        and is_child(state.workflow.plan(step.name))
    ]


def apply_end(turn: Turn, plan: CompiledStep, step: StepState, end: ChildEnded) -> None:
    if not _is_current(turn, step, end.run_id):
        return
    match end.status:
        case "COMPLETED" if plan.definition.repeat is not None and end.round is not None:
            repeat, output = plan.definition.repeat, bytes(end.output)
            rounds.end_round(turn, plan, step, repeat, end.run_id, end.round, output)
        case "COMPLETED":
            turn.record(StepCompleted(step.name, step.attempts, Payload(bytes(end.output))))
        case "FAILED":
            failure.fail_without_call(turn, plan, step, _failure(turn, plan, step, end.error))
        case "CANCELLED":
            if turn.is_ending:
                turn.record(StepCancelled(step.name, "The child run was cancelled with this run."))
            else:
                child = current_child_run_id(turn, step)
                message = f"Run {child} of {_what(plan)} was cancelled."
                failure.fail_without_call(
                    turn,
                    plan,
                    step,
                    StepError(code="child_cancelled", message=message, detail={"run_id": child}),
                )
        case _:
            assert_never(end.status)


def apply_refusal(turn: Turn, plan: CompiledStep, step: StepState, refusal: ChildRefused) -> None:
    if _is_current(turn, step, refusal.run_id):
        failure.fail_without_call(turn, plan, step, refusal.error)


def apply_waiting(turn: Turn, step: StepState, waiting: ChildWaiting) -> None:
    """A run that is ending waits for the end of the child, whatever that waits for."""
    is_new = step.waiting_for != waiting.waiting_for
    if is_new and not turn.is_ending and _is_current(turn, step, waiting.run_id):
        turn.record(StepWaiting(step.name, step.attempts, waiting.waiting_for))


def apply_continued(turn: Turn, step: StepState, continued: ChildContinued) -> None:
    if step.waits_inside and _is_current(turn, step, continued.run_id):
        turn.record(StepContinued(step.name))


def _is_under_way(step: StepState) -> bool:
    return step.status == "RUNNING" or step.waits_inside


def _is_current(turn: Turn, step: StepState, run_id: str) -> bool:
    """The child of an earlier attempt is history."""
    return _is_under_way(step) and run_id == current_child_run_id(turn, step)


def _what(plan: CompiledStep) -> str:
    return f"block {plan.name}" if plan.block is not None else f"workflow {plan.definition.workflow}"


def _failure(turn: Turn, plan: CompiledStep, step: StepState, cause: StepError | None) -> StepError:
    child = current_child_run_id(turn, step)
    command = f"trunkline runs show {child}"
    why = "" if cause is None else f": {cause.message}"
    message = f"Run {child} of {_what(plan)} failed{why}"
    if plan.block is not None:
        where = "" if cause is None or cause.step is None else f" at step {cause.step}"
        message = f"The {_what(plan)} failed{where}{why}"
    error = StepError(
        code="child_failed" if plan.block is None else "block_failed",
        message=message,
        fix=f"See the reason: {command}.",
        fix_command=command,
        detail={"run_id": child},
    )
    if cause is not None:
        error.detail = {"run_id": child, "code": cause.code, "message": cause.message, "step": cause.step}
    return error
