"""Runs as the API shows them, and what may be asked of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from trunkline.api.schemas.common import JsonObject, NextCursor, Shape, Time, optional
from trunkline.machine.state import RunStatus, StepStatus


class WorkflowReference(Shape):
    name: str
    version: int


class StepFailure(Shape):
    """Why a step or run failed."""

    code: str = Field(description="One of a published list.")
    message: str
    fix: str = Field(description="What to do about it.")
    fix_command: str | None = Field(
        default=None, description="The command in `fix`, if it has one that can be typed as it is."
    )
    cause_item: int | None = Field(
        default=None, description="Of a step with for_each: the index of the item that failed it."
    )
    step: str | None = None
    attempt: int | None = None
    jsonrpc_code: int | None = None
    http_status: int | None = None
    detail: JsonValue = Field(
        default=None, description="What could be extracted from the agent's answer all the same."
    )


class ErrorCode(Shape):
    """What is known of every failure with this code."""

    code: str
    reached_agent: Literal["no", "maybe", "yes"] = Field(
        description="`maybe`: the request was sent and no answer came; another attempt repeats the same message."
    )
    fix: str = Field(description="What an error says unless the place that raises it knows better.")
    fix_command: str | None = Field(
        description="The command in `fix`, if it has one; RUN, STEP, AGENT and SECRET stand for what has failed."
    )


class ErrorCodeList(Shape):
    items: list[ErrorCode]


class WaitingFor(Shape):
    """What a step that is not done waits for."""

    kind: Literal["input", "auth", "retry", "remote", "outcome"]
    text: str
    until: Time | None
    data: JsonValue = Field(
        default=None,
        description="What the agent has said with its question that is no text; left out: nothing.",
    )


class Items(Shape):
    """How far a step with `for_each` is: how many of its items are in which state."""

    total: int
    pending: int = Field(description="Not begun, or not called again yet.")
    running: int
    waiting: int = Field(description="For their next attempt, or for a person.")
    completed: int
    failed: int
    skipped: int
    cancelled: int


class Child(Shape):
    """The run that a step has begun last."""

    run_id: str
    status: RunStatus | None = Field(
        default=None, description="Left out: the run was deleted, or this is one of many items."
    )


class Parent(Shape):
    """The step of another run that has begun a run."""

    run_id: str
    step: str


class Step(Shape):
    name: str
    status: StepStatus
    agent: str = Field(description="Empty where the step is a run of another workflow.")
    protocol: str | None = Field(description="The dialect that was spoken.")
    attempts: int
    input: Annotated[JsonValue, optional("Left out where steps are asked for without their payloads.")] = None
    output: Annotated[JsonValue, optional("Left out where steps are asked for without their payloads.")] = (
        None
    )
    error: StepFailure | None
    warnings: list[str] = Field(description="What is odd about an answer that was taken all the same.")
    waiting_for: WaitingFor | None
    started_at: Time | None
    finished_at: Time | None
    items: Items | None = Field(
        default=None, description="Only of a step with `for_each` that has begun; its input is null then."
    )
    workflow: str | None = Field(
        default=None, description="Only of a step that is a run of another workflow: that one's name."
    )
    child: Child | None = Field(default=None, description="Only of such a step that has begun.")


class _RunFacts(Shape):
    id: str
    workflow: WorkflowReference
    status: RunStatus
    agents: list[str] = Field(description="Those that its workflow's steps call, each once.")
    error: StepFailure | None
    correlation_id: str
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    retry_of: str | None = Field(default=None, description="The run that this one repeats.")
    cancel_requested_at: Time | None = None
    parent: Parent | None = Field(default=None, description="Only of a run that a step has begun.")
    trace_id: str | None = Field(
        default=None, description="Of the trace that it is part of; left out: nobody traces it."
    )


class RunSummary(_RunFacts):
    """A run without its steps."""

    input: Annotated[JsonValue, optional("Left out of a list with `payloads=false`.")] = None
    output: Annotated[JsonValue, optional("Left out of a list with `payloads=false`.")] = None


class Run(_RunFacts):
    input: JsonValue
    output: JsonValue
    last_seq: int = Field(
        description="The number of its last event: what is told here is how it stood then. 0: it has not begun."
    )
    steps: list[Step]


class RunPage(Shape):
    items: list[RunSummary]
    next_cursor: NextCursor


class StepPage(Shape):
    items: list[Step]
    next_cursor: NextCursor


class Event(Shape):
    seq: int = Field(description="Counts the run's events from 1, without a gap.")
    type: str
    at: Time
    data: JsonValue


class EventPage(Shape):
    items: list[Event]
    next_cursor: NextCursor


class WireRequest(Shape):
    method: str
    url: str
    headers: dict[str, str]
    body: str
    body_cut: bool | None = Field(
        default=None, description="True: the body is longer than what is kept of it."
    )
    body_notes: list[str] | None = Field(
        default=None, description="What `body` does not show of the body, in words; `notes` has it, too."
    )


class WireResponse(Shape):
    status: int
    headers: dict[str, str]
    body: str


class Frame(Shape):
    """One event of a stream."""

    at_ms: float = Field(description="When it came, in milliseconds after the request.")
    data: str


class Exchange(Shape):
    """One HTTP exchange with an agent, redacted and cut."""

    step: str
    attempt: int
    started_at: Time
    duration_ms: float
    request: WireRequest
    response: WireResponse | None
    error: JsonValue
    notes: list[str]
    kind: Annotated[
        Literal["send", "stream", "poll", "cancel", "find", "card", "token", "push"],
        optional("What it was for; `push`: the agent has called Trunkline."),
    ] = "send"
    frames: list[Frame] | None = Field(
        default=None, description="The events of a stream; the response's body has the same ones."
    )
    connect_ms: float | None = Field(
        default=None,
        description="When a connection to the agent was there, in milliseconds after the beginning; null: not known.",
    )
    first_byte_ms: float | None = Field(
        default=None, description="When the head of the answer was there, likewise; null: not known."
    )
    id: Annotated[int, optional("Its number, which stays; one that belongs to no run has none.")] = 0


class WirePage(Shape):
    items: list[Exchange]
    next_cursor: NextCursor


class RetryRequest(Shape):
    from_step: Annotated[str | None, optional("Run this step and all after it again.")] = None
    from_start: Annotated[bool, optional("Keep nothing: run every step again.")] = False
    input: Annotated[JsonValue, optional("Another input for the run; left out: the same one.")] = None
    step_input: Annotated[
        JsonValue,
        optional(
            "What `from_step` is given, in place of what the workflow makes for it; not for a step with `for_each`."
        ),
    ] = None


class ReplyRequest(Shape):
    """At least one of `text`, `data` and `parts`."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [field]} for field in ("text", "data", "parts")]}
    )

    text: Annotated[str, optional()] = ""
    data: Annotated[JsonObject | list[JsonValue] | str | float | bool, optional()] = ""
    parts: Annotated[
        tuple[JsonObject, ...],
        optional("Parts as in a step's input: {text}, {data}, {raw, mediaType}, {url, mediaType}."),
        Field(min_length=1),
    ] = ()
    item: Annotated[
        str, optional("The question that is meant, by its id in the inbox; another one is not answered.")
    ] = ""


class ResolveRequest(Shape):
    outcome: Literal["succeeded", "failed", "call_again"]
    output: JsonValue = Field(default=None, description="The step's output, where it succeeded.")
