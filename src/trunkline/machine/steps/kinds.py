"""Starts and stops the work of a step or an item, whatever its kind: an agent's task or a child run."""

from __future__ import annotations

from trunkline.machine.state import StepState
from trunkline.machine.steps import agent, child, failure
from trunkline.machine.turn import Turn
from trunkline.messages import StepError
from trunkline.workflow import CompiledStep, format_duration


def begin(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """For the first time or again."""
    if child.is_child(plan):
        child.begin(turn, plan, step)
    else:
        agent.begin(turn, plan, step)


def stop(turn: Turn, step: StepState) -> None:
    """Stops the work and cancels its timers."""
    if step.name in turn.state.for_each:
        return
    if child.is_child(turn.state.workflow.plan(step.name)):
        child.stop(turn, step)
    else:
        agent.stop_call(turn, step)


def pass_deadline(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """The step has had all the time that it may take."""
    deadline = plan.definition.deadline
    if step.is_final or step.status == "OUTCOME_UNKNOWN" or deadline is None:
        return
    error = StepError(
        code="deadline_exceeded",
        message=f"The step did not finish within its deadline of {format_duration(deadline)}.",
        attempt=step.attempts,
    )
    stop(turn, step)
    failure.fail_at_deadline(turn, plan, step, error)
