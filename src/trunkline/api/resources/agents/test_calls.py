"""Test calls: one message to an agent, and its response."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, ClassVar, Literal, TypedDict, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.api.resources.common import JsonValue, Timestamp, stored_json
from trunkline.api.resources.exchanges import ExchangeResource, in_order
from trunkline.api.resources.runs import StepFailure, step_failure
from trunkline.clock import rfc3339
from trunkline.jsontypes import Json, JsonObject
from trunkline.services.agents.inspection import AgentTestResult

MAX_TIMEOUT_MS = 60_000


class AgentMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Either `text` or `input`."""

    SCHEMA: ClassVar[JsonObject] = {"oneOf": [{"required": [name]} for name in ("text", "input")]}

    text: Annotated[str, Meta(description='Shorthand for the input `{"text": …}`.')] | UnsetType = UNSET
    input: (
        Annotated[JsonValue, Meta(description="The input, as a workflow step would send it.")] | UnsetType
    ) = UNSET
    timeout_ms: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MAX_TIMEOUT_MS,
                description="Timeout of the call. Defaults to the agent's `timeout_ms`.",
            ),
        ]
        | UnsetType
    ) = UNSET

    @property
    def message(self) -> Json:
        if self.text is not UNSET:
            return {"text": self.text}
        return None if self.input is UNSET else self.input

    @property
    def longest(self) -> timedelta | None:
        return None if self.timeout_ms is UNSET else timedelta(milliseconds=self.timeout_ms)


class AgentQuestion(TypedDict):
    kind: Literal["input", "auth"]
    text: str
    data: JsonValue


class TestCallResult(TypedDict):
    """The result of a test call."""

    outcome: Annotated[
        Literal["success", "error", "interrupted"],
        Meta(
            description="`interrupted`: the agent asked a question. Its task was cancelled, because a test call "
            "has no one to answer."
        ),
    ]
    output: JsonValue
    error: StepFailure | None
    question: AgentQuestion | None
    warnings: Sequence[str]
    protocol: Annotated[
        str | None, Meta(description="The dialect that was used. Null if it could not be determined.")
    ]
    started_at: Timestamp
    duration_ms: float
    exchanges: Annotated[list[ExchangeResource], Meta(description="All requests to the agent, oldest first.")]


def test_call_result(result: AgentTestResult) -> TestCallResult:
    question = result.question
    return {
        "outcome": result.outcome,
        "output": stored_json(result.output),
        "error": None if result.error is None else step_failure(result.error),
        "question": None
        if question is None
        else {"kind": question.kind, "text": question.text, "data": question.data},
        "warnings": result.warnings,
        "protocol": result.protocol,
        "started_at": rfc3339(result.started_at),
        "duration_ms": result.duration_ms,
        # Encoded when they were recorded.
        "exchanges": cast("list[ExchangeResource]", in_order(result.exchanges)),
    }
