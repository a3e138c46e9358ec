"""Workflows as the API shows them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from trunkline.api.schemas.common import Finding, NextCursor, Shape, Time, optional
from trunkline.machine.state import RunStatus


class SavedWorkflow(Shape):
    """What saving a definition came to."""

    id: str
    name: str
    version: int = Field(ge=1)
    warnings: list[Finding] = Field(description="What is allowed, but probably not meant.")


class WorkflowSummary(Shape):
    id: str
    name: str
    version: int = Field(ge=1)
    created_at: Time = Field(description="When this version was saved.")
    description: str | None
    steps: int = Field(ge=1, description="How many it has.")
    agents: list[str] = Field(description="Those that its steps call, by name.")
    workflows: list[str] = Field(description="Those that its steps are runs of, by name.")


class LastRun(Shape):
    id: str
    status: RunStatus
    created_at: Time


class WorkflowItem(WorkflowSummary):
    last_runs: Annotated[list[LastRun], optional("Newest first; there where `last_runs` asks for them.")] = (
        Field(default_factory=list[LastRun])
    )


class Workflow(WorkflowSummary):
    definition: dict[str, JsonValue] = Field(description="The definition in its canonical form.")
    source: str = Field(description="The definition as it was written.")
    yaml: str | None = Field(
        description="The same as YAML, for whoever reads it; null where `source` is no JSON, or too long for that."
    )


class WorkflowPage(Shape):
    items: list[WorkflowItem]
    next_cursor: NextCursor


class GraphLoop(Shape):
    items: str = Field(description="What it is called once for each of, as written.")
    mode: Literal["parallel", "sequential"]
    at_once: int = Field(ge=1, description="How many items are worked on at the same time.")


class GraphJoin(Shape):
    quorum: int = Field(ge=1, description="So many of them have to complete.")
    of: list[str] = Field(description="The steps that are joined.")
    cancel_rest: bool = Field(description="Whether the others are stopped then.")


class GraphStep(Shape):
    name: str
    kind: Literal["agent", "workflow"]
    agent: str | None = Field(description="Null where the step is a run of another workflow.")
    workflow: str | None = Field(description="Null where the step calls an agent.")
    version: int | None = Field(description="Of that workflow; null: the latest when the step begins.")
    when: str | None = Field(description="The condition in CEL; null: always.")
    for_each: GraphLoop | None
    join: GraphJoin | None = Field(description="Null: it waits until all it needs is over.")


class GraphEdge(Shape):
    """`to` waits for `from`."""

    from_: str = Field(alias="from")
    to: str
    why: Literal["needs", "reads", "on_error"] = Field(
        description="`needs`: written so. `reads`: an expression reads the output. "
        "`on_error`: the failure of `from` leads to `to`."
    )


class Graph(Shape):
    steps: list[GraphStep] = Field(description="In the order of the definition.")
    edges: list[GraphEdge] = Field(description="Everything that a step waits for, also by a longer way.")


class WorkflowGraph(Graph):
    workflow: str
    version: int = Field(ge=1)


class WorkflowValidation(Shape):
    """What saving a definition would come to."""

    valid: bool
    name: str | None = Field(description="Null while it is not valid.")
    errors: list[Finding] = Field(description="Why it would be refused; at most 100.")
    warnings: list[Finding] = Field(description="What is allowed, but probably not meant.")
    graph: Graph | None = Field(description="Null while it is not valid.")
