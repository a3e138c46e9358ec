"""
Joins: what it means that enough branches have completed, or that enough never will.

A branch that is no longer wanted is dropped with all that leads to it alone: what has begun is stopped, the rest is
skipped.
"""

from __future__ import annotations

from trunkline.machine.events import StepCancelled, StepSkipped
from trunkline.machine.evolve import step_of
from trunkline.machine.state import StepState
from trunkline.machine.steps import failure, for_each, kinds
from trunkline.machine.turn import Turn
from trunkline.messages import StepError
from trunkline.workflow import CompiledJoin, CompiledStep

_MAX_NAMED = 10


def conclude(turn: Turn, plan: CompiledStep) -> None:
    """The join of this step has been decided."""
    join = plan.join
    if join is not None and join.cancel_rest and not turn.is_ending:
        _cancel_unneeded_branches(turn, plan, join)


def cannot_be_met(step: StepState, join: CompiledJoin) -> bool:
    """Too few branches are left."""
    return step.lost > len(join.branches) - join.quorum


def fail(turn: Turn, plan: CompiledStep, step: StepState, join: CompiledJoin) -> None:
    others = [
        f"{name} is {other.status}"
        for name in plan.needs
        if name in join.branches and (other := step_of(turn.state, name)).is_final
        if other.status != "COMPLETED"
    ]
    more = f" and {len(others) - _MAX_NAMED} more" if len(others) > _MAX_NAMED else ""
    message = (
        f"The join needs {join.quorum} of {len(join.branches)} steps to complete, which is no "
        f"longer possible: {', '.join(others[:_MAX_NAMED])}{more}."
    )
    failure.fail(turn, plan, step, StepError(code="join_failed", message=message))


def failed_need(turn: Turn, plan: CompiledStep) -> str | None:
    """Inside a branch: the step that this one needs and whose failure ends the branch."""
    if not plan.inside_join:
        return None
    for name in plan.needs:
        if plan.join is not None and name in plan.join.branches:
            continue
        status = step_of(turn.state, name).status
        ends = turn.state.workflow.steps[name].definition.on_error == "fail"
        if status == "CANCELLED" or (status == "FAILED" and ends):
            return name
    return None


def _cancel_unneeded_branches(turn: Turn, plan: CompiledStep, join: CompiledJoin) -> None:
    steps = turn.state.workflow.steps
    wanted_by: dict[str, set[str]] = {}
    # What may be dropped, and who wants it no more.
    walk = [(name, plan.name) for name in reversed(plan.needs) if name in join.branches]
    while walk:
        name, left_by = walk.pop()
        step = step_of(turn.state, name)
        if step.is_final:
            continue
        if name not in wanted_by:
            wanted_by[name] = {later for later in steps[name].dependents if _still_needs(turn, later, name)}
        wanted_by[name].discard(left_by)
        if not wanted_by[name]:
            _cancel_step(turn, step, f"The join of {plan.name} was decided without this step.")
            walk.extend((need, name) for need in steps[name].needs)


def _still_needs(turn: Turn, later: str, branch: str) -> bool:
    step, join = step_of(turn.state, later), turn.state.workflow.steps[later].join
    if step.is_final:
        return False
    if join is None or branch not in join.branches or not join.cancel_rest:
        return True
    return step.joined < join.quorum and not cannot_be_met(step, join)


def _cancel_step(turn: Turn, step: StepState, reason: str) -> None:
    if step.has_begun:
        for_each.stop_items(turn, step, reason)
        kinds.stop(turn, step)
        turn.record(StepCancelled(step.name, reason))
    else:
        turn.record(StepSkipped(step.name, reason))
