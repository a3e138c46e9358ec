"""Which steps and items of a run are undone, and in which order: the one that was over last comes first."""

from __future__ import annotations

from collections import defaultdict

from trunkline.machine.state import FINAL_STEP_STATUSES, RunState, StepState
from trunkline.workflow import (
    CompiledWorkflow,
    compensation_name,
    item_index,
    step_of_item,
)


def steps_to_compensate(state: RunState) -> list[str]:
    """
    By what is stored, so that reading the run again gives the same; without those that are undone.

    Steps that were over at the same instant are undone in the reverse order of their dependencies.
    """
    if not state.workflow.has_compensations:
        return []
    ranks = _ranks(state.workflow)
    found: list[tuple[int, int, int, str]] = []
    for name, step in state.steps.items():
        of = step_of_item(name)
        plan = state.workflow.steps.get(of)
        if plan is None or (plan.for_each is not None and of == name):
            # A compensation; or a loop, whose items are undone.
            continue
        undo = state.workflow.compensation(of)
        if undo is not None and _has_work(step) and not _is_undone(state, name):
            index = item_index(name) if name != of else 0
            found.append((step.finished_at or 0, ranks[of], index, name))
    found.sort(reverse=True)
    return [name for *_, name in found]


def is_outcome_unknown(step: StepState) -> bool:
    """Nobody knows whether the call has done its work, and the run has ended."""
    return step.status == "CANCELLED" and step.error is not None and step.error.code == "outcome_unknown"


def _has_work(step: StepState) -> bool:
    """Whether there is, or may be, something to undo."""
    return step.status == "COMPLETED" or is_outcome_unknown(step)


def _is_undone(state: RunState, name: str) -> bool:
    undo = state.steps.get(compensation_name(name))
    return undo is not None and undo.status in FINAL_STEP_STATUSES


def _ranks(workflow: CompiledWorkflow) -> dict[str, int]:
    """The position of each step in an order in which each comes after those that it needs."""
    waiting = {name: len(plan.needs) for name, plan in workflow.steps.items()}
    free = [name for name, count in waiting.items() if not count]
    ranks: defaultdict[str, int] = defaultdict(int)
    for name in free:
        ranks[name] = len(ranks)
        for dependent in workflow.steps[name].dependents:
            waiting[dependent] -= 1
            if not waiting[dependent]:
                free.append(dependent)
    return ranks
