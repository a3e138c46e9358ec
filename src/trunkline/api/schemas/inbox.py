"""The inbox as the API shows it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from trunkline.api.schemas.common import NextCursor, Shape, Time
from trunkline.api.schemas.runs import WorkflowReference


class InboxItem(Shape):
    """One thing that waits for a person."""

    id: str = Field(description="Of this question: the next one of the same step has another.")
    run_id: str
    workflow: WorkflowReference
    step: str
    agent: str
    protocol: str | None = Field(description="The dialect that was spoken.")
    attempt: int
    kind: Literal["input", "auth", "outcome"]
    text: str = Field(description="What the agent asks, or what is not known.")
    data: JsonValue = Field(description="What the agent has said with its question that is no text.")
    since: Time
    until: Time | None = Field(description="When the step fails unless somebody has answered; null: never.")
    reply_url: str = Field(
        description="Where it is answered: a `reply`, or for an outcome a `resolve`.",
        examples=["/api/v1/runs/018f…/steps/approve/reply"],
    )


class InboxPage(Shape):
    items: list[InboxItem]
    next_cursor: NextCursor
