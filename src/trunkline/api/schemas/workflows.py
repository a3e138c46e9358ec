"""Workflows as the API shows them."""

from __future__ import annotations

from pydantic import Field, JsonValue

from trunkline.api.schemas.common import Finding, NextCursor, Shape, Time


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


class Workflow(WorkflowSummary):
    definition: dict[str, JsonValue] = Field(description="The definition in its canonical form.")
    source: str = Field(description="The definition as it was written.")


class WorkflowPage(Shape):
    items: list[WorkflowSummary]
    next_cursor: NextCursor
