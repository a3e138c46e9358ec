"""What the API shows of a definition's graph, and of what is wrong with one, as JSON text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from trunkline.errors import Finding
from trunkline.jsontypes import encode
from trunkline.services.workflows import Checked
from trunkline.workflow import Step, Workflow

Why = Literal["needs", "reads", "on_error"]


class _Each(msgspec.Struct):
    items: str
    mode: str
    at_once: int


class _GraphJoin(msgspec.Struct):
    quorum: int
    of: Sequence[str]
    cancel_rest: bool


class _GraphStep(msgspec.Struct):
    name: str
    kind: Literal["agent", "workflow"]
    agent: str | None
    workflow: str | None
    version: int | None
    when: str | None
    for_each: _Each | None
    join: _GraphJoin | None


class _GraphEdge(msgspec.Struct, rename={"from_": "from"}):
    from_: str
    to: str
    why: Why


class _Graph(msgspec.Struct):
    steps: Sequence[_GraphStep]
    edges: Sequence[_GraphEdge]


class _WorkflowGraph(_Graph):
    workflow: str
    version: int


class _Validation(msgspec.Struct):
    valid: bool
    name: str | None
    errors: Sequence[Finding]
    warnings: Sequence[Finding]
    graph: _Graph | None


def graph_json(workflow: Workflow, version: int) -> bytes:
    steps, edges = _steps(workflow), _edges(workflow)
    return encode(_WorkflowGraph(steps, edges, workflow.definition.name, version))


def validation_json(checked: Checked) -> bytes:
    workflow = checked.workflow
    return encode(
        _Validation(
            valid=workflow is not None,
            name=None if workflow is None else workflow.definition.name,
            errors=checked.errors,
            warnings=checked.warnings,
            graph=None if workflow is None else _Graph(_steps(workflow), _edges(workflow)),
        )
    )


def _steps(workflow: Workflow) -> list[_GraphStep]:
    return [_step(step) for step in workflow.steps.values()]


def _step(step: Step) -> _GraphStep:
    definition = step.definition
    return _GraphStep(
        name=step.name,
        kind="agent" if definition.workflow is None else "workflow",
        agent=step.agent or None,
        workflow=definition.workflow,
        version=definition.version,
        when=definition.when,
        for_each=_each(step),
        join=_join(step),
    )


def _each(step: Step) -> _Each | None:
    each = step.definition.for_each
    if each is None:
        return None
    items = each.items if isinstance(each.items, str) else encode(each.items).decode()
    return _Each(items, each.mode, each.at_once)


def _join(step: Step) -> _GraphJoin | None:
    if step.join is None:
        return None
    return _GraphJoin(step.join.quorum, sorted(step.join.branches), step.join.cancel_rest)


def _edges(workflow: Workflow) -> list[_GraphEdge]:
    return [
        _GraphEdge(need, step.name, _why(step, need))
        for step in workflow.steps.values()
        for need in step.needs
    ]


def _why(step: Step, need: str) -> Why:
    """The reason that matters most: a way that only a failure opens, then what is written, then what is read."""
    if need in step.catches:
        return "on_error"
    return "needs" if need in step.definition.needs else "reads"
