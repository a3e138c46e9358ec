"""What the API shows of workflows: versions, graphs, and what is wrong with a definition; as JSON text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from trunkline.api.views import page_json
from trunkline.clock import rfc3339
from trunkline.errors import Finding
from trunkline.jsontypes import encode
from trunkline.services.workflows import ValidationResult
from trunkline.stores.base import LastRun, WorkflowVersion
from trunkline.workflow import CompiledStep, CompiledWorkflow, write_yaml

# --- versions


class _LastRun(msgspec.Struct):
    id: str
    status: str
    created_at: str


class _WorkflowSummary(msgspec.Struct):
    id: str
    name: str
    version: int
    created_at: str
    description: str | None
    steps: int
    agents: Sequence[str]
    workflows: Sequence[str]


class _WorkflowItem(_WorkflowSummary):
    last_runs: Sequence[_LastRun] | msgspec.UnsetType = msgspec.UNSET


class _Workflow(_WorkflowSummary):
    definition: msgspec.Raw
    source: str
    yaml: str | None


class _SavedWorkflow(msgspec.Struct):
    id: str
    name: str
    version: int
    warnings: Sequence[Finding]


class _StepOutline(msgspec.Struct):
    agent: str
    workflow: str | None = None


class _Outline(msgspec.Struct):
    """What a list shows of a definition: reading all of it would cost ten times as much."""

    steps: dict[str, _StepOutline]
    description: str | None = None


_outlines = msgspec.json.Decoder(_Outline)


def saved_workflow_json(version: WorkflowVersion, warnings: Sequence[Finding]) -> bytes:
    return encode(_SavedWorkflow(version.workflow_id, version.name, version.version, warnings))


def workflow_json(version: WorkflowVersion) -> bytes:
    # A source may be UTF-16; it was read when it was saved, here it is only shown.
    source = version.source.decode(errors="replace")
    return encode(_Workflow(*_summary(version), msgspec.Raw(version.canonical), source, write_yaml(source)))


def workflows_json(
    versions: Sequence[WorkflowVersion],
    next_cursor: str | None,
    last_runs: Mapping[str, Sequence[LastRun]] | None = None,
) -> bytes:
    """`last_runs`: by the names of the workflows; None: nobody asked for them."""
    items: list[_WorkflowItem] = []
    for version in versions:
        item = _WorkflowItem(*_summary(version))
        if last_runs is not None:
            item.last_runs = [
                _LastRun(run.id, run.status, rfc3339(run.created_at))
                for run in last_runs.get(version.name, ())
            ]
        items.append(item)
    return page_json(items, next_cursor)


def _summary(
    version: WorkflowVersion,
) -> tuple[str, str, int, str, str | None, int, Sequence[str], Sequence[str]]:
    outline = _outlines.decode(version.canonical)
    steps = outline.steps.values()
    return (
        version.workflow_id,
        version.name,
        version.version,
        rfc3339(version.created_at),
        outline.description,
        len(steps),
        sorted({step.agent for step in steps if step.agent}),
        sorted({step.workflow for step in steps if step.workflow}),
    )


# --- graphs and validation

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


def graph_json(workflow: CompiledWorkflow, version: int) -> bytes:
    steps, edges = _steps(workflow), _edges(workflow)
    return encode(_WorkflowGraph(steps, edges, workflow.definition.name, version))


def validation_json(checked: ValidationResult) -> bytes:
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


def _steps(workflow: CompiledWorkflow) -> list[_GraphStep]:
    return [_step(step) for step in workflow.steps.values()]


def _step(step: CompiledStep) -> _GraphStep:
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


def _each(step: CompiledStep) -> _Each | None:
    each = step.definition.for_each
    if each is None:
        return None
    items = each.items if isinstance(each.items, str) else encode(each.items).decode()
    return _Each(items, each.mode, each.at_once)


def _join(step: CompiledStep) -> _GraphJoin | None:
    if step.join is None:
        return None
    return _GraphJoin(step.join.quorum, sorted(step.join.branches), step.join.cancel_rest)


def _edges(workflow: CompiledWorkflow) -> list[_GraphEdge]:
    return [
        _GraphEdge(need, step.name, _why(step, need))
        for step in workflow.steps.values()
        for need in step.needs
    ]


def _why(step: CompiledStep, need: str) -> Why:
    """The reason that matters most: a way that only a failure opens, then what is written, then what is read."""
    if need in step.catches:
        return "on_error"
    return "needs" if need in step.definition.needs else "reads"
