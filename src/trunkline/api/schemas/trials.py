"""Agents that are tried out, as the API takes and shows it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from trunkline.api.schemas.common import Shape, Time, optional
from trunkline.api.schemas.runs import Exchange, StepFailure


class AgentMessage(Shape):
    """One of `text` and `input`."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [field]} for field in ("text", "input")]}
    )

    text: Annotated[str, optional("The same as the input `{text}`.")] = ""
    input: Annotated[
        JsonValue, optional("What a step of a workflow would give to the agent as its `input`.")
    ] = None
    timeout_ms: Annotated[int, Field(ge=1, le=60_000), optional("The agent's own unless given.")] = 60_000


class AgentQuestion(Shape):
    kind: Literal["input", "auth"]
    text: str
    data: JsonValue


class AgentTrial(Shape):
    """What has come of one message."""

    outcome: Literal["success", "error", "interrupted"] = Field(
        description="`interrupted`: the agent asks something, and was told that nobody answers."
    )
    output: JsonValue
    error: StepFailure | None
    question: AgentQuestion | None
    warnings: list[str]
    protocol: str | None = Field(description="What was spoken; null: nobody knows how to speak to the agent.")
    started_at: Time
    duration_ms: float
    exchanges: list[Exchange] = Field(description="Every request to the agent, oldest first.")
