"""
Joins: steps that begin when enough of the steps they need have completed, and the branches that lead to them.

Everything here is linear in the number of steps and edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trunkline.workflow.definition import ALL, Join, WorkflowDefinition
from trunkline.workflow.step_graph.links import StepLinks
from trunkline.workflow.validation_report import ValidationReport


@dataclass(frozen=True, slots=True)
class CompiledJoin:
    """What a step joins."""

    branches: frozenset[str]
    # So many of them have to complete.
    quorum: int
    cancel_rest: bool


def compile_joins(
    definition: WorkflowDefinition, links: Mapping[str, StepLinks], report: ValidationReport
) -> dict[str, CompiledJoin]:
    """The joins that are more than waiting for all, by step; reports those that cannot be met."""
    joins: dict[str, CompiledJoin] = {}
    for name, step in definition.steps.items():
        if step.join.policy == "all" and step.join.at_least is None:
            if step.join != ALL:
                message = "'cancel_rest' has no effect when all steps must finish; remove it"
                report.error(("steps", name, "join"), message)
            continue
        branches = frozenset(links[name].written)
        problem = _problem(step.join, branches, links[name])
        if problem is None:
            joins[name] = CompiledJoin(branches, _quorum(step.join, len(branches)), step.join.cancel_rest)
        elif len(set(step.needs)) == len(branches):
            # Otherwise a need that is none has been reported: how many are meant is not known.
            report.error(("steps", name, "join"), problem)
    return joins


def _problem(join: Join, branches: frozenset[str], links: StepLinks) -> str | None:
    if len(branches) < 2:
        return "a join needs at least two steps; list them under 'needs'"
    if join.at_least is not None and join.at_least > len(branches):
        return f"'at_least' is {join.at_least}, but 'needs' lists only {len(branches)} steps"
    caught = next((branch for branch in links.catches if branch in branches), None)
    if caught is not None:
        return (
            f"'{caught}' continues here when it fails, so it cannot be joined as well; remove it from 'needs'"
        )
    return None


def _quorum(join: Join, branches: int) -> int:
    if join.at_least is not None:
        return join.at_least
    return 1 if join.policy == "any" else branches // 2 + 1


def steps_inside_joins(links: Mapping[str, StepLinks], joins: Mapping[str, CompiledJoin]) -> frozenset[str]:
    """The steps of branches: whatever waits for them is a join of theirs, or in the same branch."""
    inside_joins: set[str] = set()
    if not joins:
        return frozenset()
    waiting = [name for name, link in links.items() if not link.dependents]
    left = {name: len(link.dependents) for name, link in links.items()}
    while waiting:
        name = waiting.pop()
        dependents = links[name].dependents
        if dependents and all(later in inside_joins or _joins(joins, later, name) for later in dependents):
            inside_joins.add(name)
        for need in links[name].needs:
            left[need] -= 1
            if left[need] == 0:
                waiting.append(need)
    return frozenset(inside_joins)


def _joins(joins: Mapping[str, CompiledJoin], step: str, branch: str) -> bool:
    return step in joins and branch in joins[step].branches
