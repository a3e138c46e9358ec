"""Workflows: their versions and graphs, the validation of definitions, and saved JSON Schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, NotRequired, TypedDict, cast

import msgspec
from msgspec import Meta

from trunkline.api.resources.common import (
    FindingResource,
    JsonMapping,
    JsonValue,
    NextCursor,
    Timestamp,
    finding_resource,
    stored_json,
)
from trunkline.clock import rfc3339
from trunkline.errors import Finding
from trunkline.jsontypes import JsonObject, encode
from trunkline.machine.state import RunStatus
from trunkline.services.workflows import ValidationResult
from trunkline.stores.base import LastRun, SavedSchema, WorkflowVersion
from trunkline.workflow import AllowTag, CompiledStep, CompiledWorkflow, StepKind, write_yaml

# The name of the schema of the workflow language, which is not declared here.
WORKFLOW_DEFINITION = "WorkflowDefinition"

EdgeReason = Literal["needs", "reads", "on_error"]
WORKFLOW_PUBLISH_RULE = (
    "`true`, or an object with the options of `publish`. Null or `false` ends the publication."
)
_VersionNumber = Annotated[int, Meta(ge=1)]
_Warnings = Annotated[
    list[FindingResource], Meta(description="Findings that are valid, but probably mistakes.")
]


# --- versions


class SavedWorkflow(TypedDict):
    """The result of saving a definition."""

    id: str
    name: str
    version: _VersionNumber
    warnings: _Warnings


class PublishRequest(msgspec.Struct, forbid_unknown_fields=True):
    publish: Annotated[JsonMapping | bool | None, Meta(description=WORKFLOW_PUBLISH_RULE)]


class WorkflowSummary(TypedDict):
    """Fields of a workflow that are also part of a list."""

    id: str
    name: str
    version: _VersionNumber
    created_at: Annotated[Timestamp, Meta(description="When this version was saved.")]
    description: str | None
    steps: Annotated[int, Meta(ge=1, description="Number of steps.")]
    agents: Annotated[list[str], Meta(description="Names of the agents that its steps call.")]
    workflows: Annotated[list[str], Meta(description="Names of the workflows that its steps run.")]


class LastRunResource(TypedDict):
    id: str
    status: RunStatus
    created_at: Timestamp


class WorkflowItem(WorkflowSummary):
    last_runs: NotRequired[
        Annotated[list[LastRunResource], Meta(description="Newest first. Only with `last_runs`.")]
    ]


class WorkflowResource(WorkflowSummary):
    definition: Annotated[JsonMapping, Meta(description="The definition in its canonical form.")]
    source: Annotated[str, Meta(description="The definition as it was submitted.")]
    yaml: Annotated[
        str | None,
        Meta(
            description="The definition converted to YAML. Null if `source` is not JSON, or is too long to "
            "convert."
        ),
    ]


class WorkflowPage(TypedDict):
    items: list[WorkflowItem]
    next_cursor: NextCursor


# --- graphs and validation


class GraphLoop(TypedDict):
    items: Annotated[str, Meta(description="The list or the expression for the items, as written.")]
    mode: Literal["parallel", "sequential"]
    at_once: Annotated[int, Meta(ge=1, description="Maximum number of items processed at the same time.")]


class GraphJoin(TypedDict):
    quorum: Annotated[int, Meta(ge=1, description="Number of joined steps that must complete.")]
    of: Annotated[list[str], Meta(description="The steps that are joined.")]
    cancel_rest: Annotated[bool, Meta(description="Whether the remaining steps are cancelled then.")]


class GraphRepetition(TypedDict):
    until: Annotated[str, Meta(description="The condition, in CEL.")]
    max_rounds: int


class GraphStep(TypedDict):
    name: str
    kind: StepKind
    agent: Annotated[
        str | None,
        Meta(description="Null if the step does not call an agent, or chooses it when it begins."),
    ]
    skill: NotRequired[
        Annotated[str, Meta(description="Only for a step that calls one of the agents with this skill.")]
    ]
    agent_expression: NotRequired[
        Annotated[str, Meta(description="Only for a step whose agent is an expression: that expression.")]
    ]
    workflow: Annotated[str | None, Meta(description="Null if the step does not run another workflow.")]
    version: Annotated[
        int | None,
        Meta(description="Version of that workflow. Null means the latest version when the step starts."),
    ]
    when: Annotated[str | None, Meta(description="The condition, in CEL. Null if the step has none.")]
    for_each: GraphLoop | None
    join: Annotated[GraphJoin | None, Meta(description="Null if the step waits for all steps that it needs.")]
    repeat: NotRequired[Annotated[GraphRepetition, Meta(description="Only for a step that is repeated.")]]
    block: NotRequired[Annotated[Graph, Meta(description="Only for a block: the steps inside it.")]]


# `from` is a keyword, and cannot be declared as an attribute.
_EdgeStart = TypedDict("_EdgeStart", {"from": str})


class GraphEdge(_EdgeStart):
    """`to` waits for `from`."""

    to: str
    why: Annotated[
        EdgeReason,
        Meta(
            description="`needs`: listed under `needs`. `reads`: an expression reads the output. `on_error`: "
            "`to` runs when `from` fails."
        ),
    ]


class Graph(TypedDict):
    steps: Annotated[list[GraphStep], Meta(description="Steps in the order of the definition.")]
    edges: Annotated[
        list[GraphEdge], Meta(description="All dependencies of the steps, including transitive ones.")
    ]


class WorkflowGraph(Graph):
    workflow: str
    version: _VersionNumber


class WorkflowValidation(TypedDict):
    """The result of validating a definition."""

    valid: bool
    name: Annotated[str | None, Meta(description="Null if the definition is invalid.")]
    errors: Annotated[list[FindingResource], Meta(description="Errors that prevent saving. At most 100.")]
    warnings: _Warnings
    graph: Annotated[Graph | None, Meta(description="Null if the definition is invalid.")]


# --- conversions


class _StepOutline(msgspec.Struct):
    agent: str
    # Of an expression in `agent`.
    allow: tuple[str, ...] | AllowTag | None = None
    workflow: str | None = None
    steps: dict[str, _StepOutline] | None = None
    switch: tuple[_BranchOutline, ...] = ()


class _BranchOutline(msgspec.Struct):
    steps: dict[str, _StepOutline]


def _all_outlines(steps: Mapping[str, _StepOutline]) -> Iterator[_StepOutline]:
    for step in steps.values():
        yield step
        yield from _all_outlines(step.steps or {})
        for branch in step.switch:
            yield from _all_outlines(branch.steps)


class _DefinitionOutline(msgspec.Struct):
    """The part of a definition that a list shows. Decoding all of it would cost ten times as much."""

    steps: dict[str, _StepOutline]
    description: str | None = None


_outlines = msgspec.json.Decoder(_DefinitionOutline)


def saved_workflow(version: WorkflowVersion, warnings: Sequence[Finding]) -> SavedWorkflow:
    return {
        "id": version.workflow_id,
        "name": version.name,
        "version": version.version,
        "warnings": [finding_resource(each) for each in warnings],
    }


def workflow_resource(version: WorkflowVersion) -> WorkflowResource:
    # A source may be UTF-16. It was parsed when it was saved; here it is only shown.
    source = version.source.decode(errors="replace")
    return {
        **_summary(version),
        "definition": cast("JsonObject", stored_json(version.canonical)),
        "source": source,
        "yaml": write_yaml(source),
    }


def workflow_item(version: WorkflowVersion, last_runs: Sequence[LastRun] | None = None) -> WorkflowItem:
    """`last_runs` is None if they were not requested."""
    item: WorkflowItem = {**_summary(version)}
    if last_runs is not None:
        item["last_runs"] = [
            {"id": run.id, "status": run.status, "created_at": rfc3339(run.created_at)} for run in last_runs
        ]
    return item


def _summary(version: WorkflowVersion) -> WorkflowSummary:
    outline = _outlines.decode(version.canonical)
    steps = [*_all_outlines(outline.steps)]
    return {
        "id": version.workflow_id,
        "name": version.name,
        "version": version.version,
        "created_at": rfc3339(version.created_at),
        "description": outline.description,
        "steps": len(steps),
        "agents": sorted({name for step in steps for name in _agents(step)}),
        "workflows": sorted({step.workflow for step in steps if step.workflow}),
    }


def _agents(step: _StepOutline) -> tuple[str, ...]:
    if step.allow is not None:
        return step.allow if isinstance(step.allow, tuple) else ()
    return (step.agent,) if step.agent else ()


def workflow_graph(workflow: CompiledWorkflow, version: int) -> WorkflowGraph:
    return {**_graph(workflow), "workflow": workflow.definition.name, "version": version}


def workflow_validation(checked: ValidationResult) -> WorkflowValidation:
    workflow = checked.workflow
    return {
        "valid": workflow is not None,
        "name": None if workflow is None else workflow.definition.name,
        "errors": [finding_resource(each) for each in checked.errors],
        "warnings": [finding_resource(each) for each in checked.warnings],
        "graph": None if workflow is None else _graph(workflow),
    }


def _graph(workflow: CompiledWorkflow) -> Graph:
    steps = workflow.steps.values()
    return {
        "steps": [_graph_step(step) for step in steps],
        "edges": [
            {"from": need, "to": step.name, "why": _edge_reason(step, need)}
            for step in steps
            for need in step.needs
        ],
    }


def _graph_step(step: CompiledStep) -> GraphStep:
    definition = step.definition
    shown: GraphStep = {
        "name": step.name,
        "kind": step.kind,
        "agent": step.agent or None,
        "workflow": definition.workflow,
        "version": definition.version,
        "when": definition.when,
        "for_each": _graph_loop(step),
        "join": _graph_join(step),
    }
    if definition.skill is not None:
        shown["skill"] = definition.skill
    if definition.agent_expression is not None:
        shown["agent_expression"] = definition.agent_expression
    if (repeat := definition.repeat) is not None:
        shown["repeat"] = {"until": repeat.until, "max_rounds": repeat.max_rounds}
    if step.block is not None:
        shown["block"] = _graph(step.block)
    return shown


def _graph_loop(step: CompiledStep) -> GraphLoop | None:
    each = step.definition.for_each
    if each is None:
        return None
    items = each.items if isinstance(each.items, str) else encode(each.items).decode()
    return {"items": items, "mode": each.mode, "at_once": each.at_once}


def _graph_join(step: CompiledStep) -> GraphJoin | None:
    join = step.join
    if join is None:
        return None
    return {"quorum": join.quorum, "of": sorted(join.branches), "cancel_rest": join.cancel_rest}


def _edge_reason(step: CompiledStep, need: str) -> EdgeReason:
    """The most important reason: `on_error` before `needs` before `reads`."""
    if need in step.catches:
        return "on_error"
    return "needs" if need in step.definition.needs else "reads"


# --- saved schemas


class SchemaResource(TypedDict):
    """A saved JSON Schema. A list leaves out the schema itself."""

    name: str
    version: Annotated[int, Meta(description="How many times the schema has changed.")]
    schema: NotRequired[Annotated[JsonValue, Meta(description="The JSON Schema.")]]
    created_at: Timestamp
    updated_at: Timestamp


class SchemaPage(TypedDict):
    items: list[SchemaResource]
    next_cursor: NextCursor


def schema_resource(saved: SavedSchema, *, whole: bool = True) -> SchemaResource:
    resource: SchemaResource = {
        "name": saved.name,
        "version": saved.version,
        "created_at": rfc3339(saved.created_at),
        "updated_at": rfc3339(saved.updated_at),
    }
    if whole:
        resource["schema"] = stored_json(saved.schema)
    return resource
