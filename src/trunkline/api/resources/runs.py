"""
Runs and their steps, their events, and what a person may ask of them.

Payloads were encoded when they were stored; they are spliced into the answer as they are, never decoded here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, NotRequired, TypedDict

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.api.resources.common import (
    JsonMapping,
    JsonValue,
    NextCursor,
    Timestamp,
    stored_json,
    time_or_none,
)
from trunkline.clock import rfc3339
from trunkline.jsontypes import JsonObject
from trunkline.machine.inputs import ResolvedOutcome
from trunkline.machine.state import RunStatus, StepStatus, WaitingFor
from trunkline.messages import ERROR_CODES, StepError
from trunkline.services.runs.queries import ItemCounts, RunView, StepView
from trunkline.services.runs.search import ListedRun
from trunkline.stores.base import EventRecord, RunRecord

_STEP_PAYLOAD = Meta(description="Left out where steps are asked for without their payloads.")
_RUN_PAYLOAD = Meta(description="Left out of a list with `payloads=false`.")


class WorkflowReference(TypedDict):
    name: str
    version: int


class StepFailure(TypedDict):
    """Why a step or run failed."""

    code: Annotated[str, Meta(description="One of a published list.")]
    message: str
    fix: Annotated[str, Meta(description="What to do about it.")]
    fix_command: NotRequired[
        Annotated[
            str | None, Meta(description="The command in `fix`, if it has one that can be typed as it is.")
        ]
    ]
    cause_item: NotRequired[
        Annotated[
            int | None, Meta(description="Of a step with for_each: the index of the item that failed it.")
        ]
    ]
    step: NotRequired[str | None]
    attempt: NotRequired[int | None]
    jsonrpc_code: NotRequired[int | None]
    http_status: NotRequired[int | None]
    detail: NotRequired[
        Annotated[
            JsonValue, Meta(description="What could be extracted from the agent's answer all the same.")
        ]
    ]


class ErrorCode(TypedDict):
    """What is known of every failure with this code."""

    code: str
    reached_agent: Annotated[
        Literal["no", "maybe", "yes"],
        Meta(
            description="`maybe`: the request was sent and no answer came; another attempt repeats the same message."
        ),
    ]
    fix: Annotated[str, Meta(description="What an error says unless the place that raises it knows better.")]
    fix_command: Annotated[
        str | None,
        Meta(
            description="The command in `fix`, if it has one; RUN, STEP, AGENT and SECRET stand for what has failed."
        ),
    ]


class ErrorCodeList(TypedDict):
    items: list[ErrorCode]


class WaitingForResource(TypedDict):
    """What a step that is not done waits for."""

    kind: Literal["input", "auth", "retry", "remote", "outcome"]
    text: str
    until: Timestamp | None
    data: NotRequired[
        Annotated[
            JsonValue,
            Meta(description="What the agent has said with its question that is no text; left out: nothing."),
        ]
    ]


class ItemsResource(TypedDict):
    """How far a step with `for_each` is: how many of its items are in which state."""

    total: int
    pending: Annotated[int, Meta(description="Not begun, or not called again yet.")]
    running: int
    waiting: Annotated[int, Meta(description="For their next attempt, or for a person.")]
    completed: int
    failed: int
    skipped: int
    cancelled: int


class ChildResource(TypedDict):
    """The run that a step has begun last."""

    run_id: str
    status: NotRequired[
        Annotated[
            RunStatus | None,
            Meta(description="Left out: the run was deleted, or this is one of many items."),
        ]
    ]


class ParentResource(TypedDict):
    """The step of another run that has begun a run."""

    run_id: str
    step: str


class StepResource(TypedDict):
    name: str
    status: StepStatus
    agent: Annotated[str, Meta(description="Empty where the step is a run of another workflow.")]
    protocol: Annotated[str | None, Meta(description="The dialect that was spoken.")]
    attempts: int
    input: NotRequired[Annotated[JsonValue, _STEP_PAYLOAD]]
    output: NotRequired[Annotated[JsonValue, _STEP_PAYLOAD]]
    error: StepFailure | None
    warnings: Annotated[
        Sequence[str], Meta(description="What is odd about an answer that was taken all the same.")
    ]
    waiting_for: WaitingForResource | None
    started_at: Timestamp | None
    finished_at: Timestamp | None
    items: NotRequired[
        Annotated[
            ItemsResource | None,
            Meta(description="Only of a step with `for_each` that has begun; its input is null then."),
        ]
    ]
    workflow: NotRequired[
        Annotated[
            str | None,
            Meta(description="Only of a step that is a run of another workflow: that one's name."),
        ]
    ]
    child: NotRequired[
        Annotated[ChildResource | None, Meta(description="Only of such a step that has begun.")]
    ]


class RunFacts(TypedDict):
    """What a run has alone and in a list."""

    id: str
    workflow: WorkflowReference
    status: RunStatus
    agents: Annotated[Sequence[str], Meta(description="Those that its workflow's steps call, each once.")]
    error: StepFailure | None
    correlation_id: str
    started_by: Annotated[
        str | None,
        Meta(
            description="The name of the API key that started it; `kafka:TOPIC` for a command from Kafka. A child"
            " run has its parent's. Null: no keys were in use.",
            examples=["ci"],
        ),
    ]
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    retry_of: NotRequired[Annotated[str | None, Meta(description="The run that this one repeats.")]]
    cancel_requested_at: NotRequired[Timestamp | None]
    parent: NotRequired[
        Annotated[ParentResource | None, Meta(description="Only of a run that a step has begun.")]
    ]
    trace_id: NotRequired[
        Annotated[
            str | None,
            Meta(description="Of the trace that it is part of; left out: nobody traces it."),
        ]
    ]


class RunSummary(RunFacts):
    """A run without its steps."""

    input: NotRequired[Annotated[JsonValue, _RUN_PAYLOAD]]
    output: NotRequired[Annotated[JsonValue, _RUN_PAYLOAD]]


class RunResource(RunFacts):
    input: JsonValue
    output: JsonValue
    last_seq: Annotated[
        int,
        Meta(
            description="The number of its last event: what is told here is how it stood then. 0: it has not begun."
        ),
    ]
    steps: list[StepResource]


class RunPage(TypedDict):
    items: list[RunSummary]
    next_cursor: NextCursor


class StepPage(TypedDict):
    items: list[StepResource]
    next_cursor: NextCursor


class EventResource(TypedDict):
    seq: Annotated[int, Meta(description="Counts the run's events from 1, without a gap.")]
    type: str
    at: Timestamp
    data: JsonValue


class EventPage(TypedDict):
    items: list[EventResource]
    next_cursor: NextCursor


# --- requests


class RetryRequest(msgspec.Struct, forbid_unknown_fields=True):
    from_step: (
        Annotated[str | None, Meta(description="Run this step and all after it again.")] | UnsetType
    ) = UNSET
    from_start: Annotated[bool, Meta(description="Keep nothing: run every step again.")] = False
    input: (
        Annotated[JsonValue, Meta(description="Another input for the run; left out: the same one.")]
        | UnsetType
    ) = UNSET
    step_input: (
        Annotated[
            JsonValue,
            Meta(
                description="What `from_step` is given, in place of what the workflow makes for it; not for a step"
                " with `for_each`."
            ),
        ]
        | UnsetType
    ) = UNSET


class ReplyRequest(msgspec.Struct, forbid_unknown_fields=True):
    """At least one of `text`, `data` and `parts`."""

    SCHEMA: ClassVar[JsonObject] = {"anyOf": [{"required": [name]} for name in ("text", "data", "parts")]}

    text: str | UnsetType = UNSET
    data: JsonMapping | list[JsonValue] | str | int | float | bool | UnsetType = UNSET
    # Empty text is an answer; a message without any part is none.
    parts: (
        Annotated[
            list[JsonMapping],
            Meta(
                min_length=1,
                description="Parts as in a step's input: {text}, {data}, {raw, mediaType}, {url, mediaType}.",
            ),
        ]
        | UnsetType
    ) = UNSET
    item: (
        Annotated[
            str,
            Meta(
                description="The question that is meant, by its id in the inbox; another one is not answered."
            ),
        ]
        | UnsetType
    ) = UNSET


class ResolveRequest(msgspec.Struct, forbid_unknown_fields=True):
    outcome: ResolvedOutcome
    output: Annotated[JsonValue, Meta(description="The step's output, where it succeeded.")] = None


# --- what they are made from


def step_failure(error: StepError) -> StepFailure:
    failure: StepFailure = {"code": error.code, "message": error.message, "fix": error.fix}
    if error.fix_command is not None:
        failure["fix_command"] = error.fix_command
    if error.cause_item is not None:
        failure["cause_item"] = error.cause_item
    if error.step is not None:
        failure["step"] = error.step
    if error.attempt is not None:
        failure["attempt"] = error.attempt
    if error.jsonrpc_code is not None:
        failure["jsonrpc_code"] = error.jsonrpc_code
    if error.http_status is not None:
        failure["http_status"] = error.http_status
    if error.detail is not None:
        failure["detail"] = error.detail
    return failure


def step_resource(view: StepView, *, payloads: bool = True) -> StepResource:
    state = view.state
    resource: StepResource = {
        "name": state.name,
        "status": state.status,
        "agent": view.agent,
        "protocol": state.protocol,
        "attempts": state.attempts,
        "error": None if state.error is None else step_failure(state.error),
        "warnings": state.warnings,
        "waiting_for": None if state.waiting_for is None else _waiting_for(state.waiting_for),
        "started_at": time_or_none(state.started_at),
        "finished_at": time_or_none(state.finished_at),
    }
    if payloads:
        resource["input"] = stored_json(state.input)
        resource["output"] = stored_json(state.output)
    if view.items is not None:
        resource["items"] = _step_items(view.items)
    if view.workflow:
        resource["workflow"] = view.workflow
    if view.child is not None:
        resource["child"] = {"run_id": view.child.run_id}
        if view.child.status is not None:
            resource["child"]["status"] = view.child.status
    return resource


def _waiting_for(waiting: WaitingFor) -> WaitingForResource:
    resource: WaitingForResource = {
        "kind": waiting.kind,
        "text": waiting.text,
        "until": time_or_none(waiting.until),
    }
    if waiting.data is not None:
        resource["data"] = waiting.data
    return resource


def _step_items(counts: ItemCounts) -> ItemsResource:
    of = counts.by_status
    begun = sum(of.values()) - of.get("PENDING", 0)
    return {
        "total": counts.total,
        "pending": counts.total - begun,
        "running": of.get("RUNNING", 0),
        "waiting": of.get("WAITING", 0) + of.get("OUTCOME_UNKNOWN", 0),
        "completed": of.get("COMPLETED", 0),
        "failed": of.get("FAILED", 0),
        "skipped": of.get("SKIPPED", 0),
        "cancelled": of.get("CANCELLED", 0),
    }


def run_resource(view: RunView, *, step_payloads: bool = True) -> RunResource:
    record = view.record
    run: RunResource = {
        "id": record.id,
        "workflow": {"name": record.workflow_name, "version": record.workflow_version},
        "status": record.status,
        "agents": list({step.agent: None for step in view.steps if step.agent}),
        "input": stored_json(record.input),
        "output": stored_json(record.output),
        "error": None if record.error is None else step_failure(record.error),
        "correlation_id": record.correlation_id,
        "started_by": record.started_by,
        "created_at": rfc3339(record.created_at),
        "started_at": time_or_none(record.started_at),
        "finished_at": time_or_none(record.finished_at),
        "last_seq": record.seq,
        "steps": [step_resource(step, payloads=step_payloads) for step in view.steps],
    }
    _add_optional_facts(run, record)
    return run


def run_summary(run: ListedRun, *, payloads: bool) -> RunSummary:
    record = run.record
    summary: RunSummary = {
        "id": record.id,
        "workflow": {"name": record.workflow_name, "version": record.workflow_version},
        "status": record.status,
        "agents": run.agents,
        "error": None if record.error is None else step_failure(record.error),
        "correlation_id": record.correlation_id,
        "started_by": record.started_by,
        "created_at": rfc3339(record.created_at),
        "started_at": time_or_none(record.started_at),
        "finished_at": time_or_none(record.finished_at),
    }
    if payloads:
        summary["input"] = stored_json(record.input)
        summary["output"] = stored_json(record.output)
    _add_optional_facts(summary, record)
    return summary


def _add_optional_facts(run: RunFacts, record: RunRecord) -> None:
    if record.retry_of is not None:
        run["retry_of"] = record.retry_of
    if record.cancel_requested_at is not None:
        run["cancel_requested_at"] = rfc3339(record.cancel_requested_at)
    if record.parent is not None:
        run_id, step = record.parent
        run["parent"] = {"run_id": run_id, "step": step}
    if record.trace is not None:
        run["trace_id"] = record.trace.trace_id


def event_resource(event: EventRecord) -> EventResource:
    return {
        "seq": event.seq,
        "type": event.type,
        "at": rfc3339(event.at),
        "data": stored_json(event.data),
    }


def error_codes() -> ErrorCodeList:
    return {
        "items": [
            {
                "code": code,
                "reached_agent": "yes" if known.answered else "maybe" if known.sent else "no",
                "fix": known.fix,
                "fix_command": known.command,
            }
            for code, known in ERROR_CODES.items()
        ]
    }
