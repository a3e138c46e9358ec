"""
Runs, their steps, events and log lines, and the requests that control them.

Payloads were encoded when they were stored. They are copied into the response without decoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict, cast

from msgspec import Meta

from trunkline.api.resources.automation.human_tasks import HumanTaskFields, human_task_fields
from trunkline.api.resources.caller_messages import CallerMessageResource, caller_message_resource
from trunkline.api.resources.common import (
    JsonValue,
    NextCursor,
    Timestamp,
    stored_json,
    time_or_none,
)
from trunkline.api.resources.step_routing import FromCacheResource, RoutingResource, from_cache, step_routing
from trunkline.clock import rfc3339
from trunkline.jsontypes import JsonObject
from trunkline.machine.events import shown_inner_questions, waited_events
from trunkline.machine.state import (
    Compensation,
    CompensationStatus,
    RunStatus,
    StepStatus,
    WaitingFor,
    WaitingKind,
)
from trunkline.messages import ERROR_CODES, StepError
from trunkline.services.runs.logs import RunLogLine
from trunkline.services.runs.queries import ItemCounts, RunView, StepView
from trunkline.services.runs.search import ListedRun
from trunkline.stores.base import EventRecord, RunRecord
from trunkline.triggers.flow_control import WaitReason
from trunkline.workflow import LABEL_KEY_PATTERN, StepKind

_STEP_PAYLOAD = Meta(description="Omitted if steps are requested without payloads.")
_RUN_PAYLOAD = Meta(description="Omitted in lists with `payloads=false`.")
# Patterns only document the schema: the service validates, with a better message.
LabelKey = Annotated[str, Meta(extra_json_schema={"pattern": LABEL_KEY_PATTERN})]
LabelValue = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": 255})]


class WorkflowReference(TypedDict):
    name: str
    version: int


class StepFailure(TypedDict):
    """Why a step or a run failed."""

    code: Annotated[str, Meta(description="An error code. `GET /api/v1/error-codes` lists them.")]
    message: str
    fix: Annotated[str, Meta(description="How to fix it.")]
    fix_command: NotRequired[
        Annotated[
            str | None, Meta(description="The command in `fix`, if there is one that can be run as is.")
        ]
    ]
    cause_item: NotRequired[
        Annotated[
            int | None,
            Meta(description="For a `for_each` step: the index of the item that caused the failure."),
        ]
    ]
    step: NotRequired[str | None]
    attempt: NotRequired[int | None]
    jsonrpc_code: NotRequired[int | None]
    http_status: NotRequired[int | None]
    detail: NotRequired[
        Annotated[
            JsonValue,
            Meta(description="What could be extracted from the agent's response despite the failure."),
        ]
    ]


class ErrorCode(TypedDict):
    """An error code, and what applies to every failure with it."""

    code: str
    reached_agent: Annotated[
        Literal["no", "maybe", "yes"],
        Meta(
            description="`maybe`: the request was sent, but no answer arrived. The next attempt repeats the "
            "same message."
        ),
    ]
    fix: Annotated[str, Meta(description="The default fix. An error may have a more specific one.")]
    fix_command: Annotated[
        str | None,
        Meta(
            description="The command in `fix`, if there is one. RUN, STEP, AGENT and SECRET are placeholders."
        ),
    ]


class ErrorCodeList(TypedDict):
    items: list[ErrorCode]


class InnerQuestionResource(TypedDict):
    """What a step inside another step waits for."""

    run_id: Annotated[str, Meta(description="The run of the block or of the child workflow.")]
    step: str
    item: Annotated[str, Meta(description="The id of the item in the inbox.")]
    kind: WaitingKind
    text: Annotated[str, Meta(description="The beginning of it.")]


class WaitingForResource(HumanTaskFields):
    """What an unfinished step is waiting for."""

    kind: WaitingKind
    text: str
    until: Timestamp | None
    event: NotRequired[Annotated[str, Meta(description="The type of the event that the step waits for.")]]
    any: NotRequired[
        Annotated[Sequence[str], Meta(description="The types of events of which the step waits for one.")]
    ]
    signal: NotRequired[Annotated[str, Meta(description="The signal that the step waits for.")]]
    key: NotRequired[Annotated[str, Meta(description="The key that the event must have.")]]
    questions: NotRequired[
        Annotated[
            Sequence[InnerQuestionResource],
            Meta(
                description="Of a step with a child run that waits for people: what it waits for, at most 10. The "
                "other fields are those of the first one."
            ),
        ]
    ]
    more_questions: NotRequired[
        Annotated[bool, Meta(description="Whether the child run waits for more than these questions.")]
    ]
    data: NotRequired[
        Annotated[
            JsonValue,
            Meta(
                description="Structured data that the agent sent with its question, or the events of a "
                "`wait_for` with `count` that have arrived. Omitted if there is none."
            ),
        ]
    ]


class ItemsResource(TypedDict):
    """Progress of a `for_each` step: the number of its items by status."""

    total: int
    pending: Annotated[
        int, Meta(description="Items that have not started, or whose next attempt has not started.")
    ]
    running: int
    waiting: Annotated[int, Meta(description="Items that wait for their next attempt or for a person.")]
    completed: int
    failed: int
    skipped: int
    cancelled: int


class ChildResource(TypedDict):
    """The child run that a step started last."""

    run_id: str
    status: NotRequired[
        Annotated[
            RunStatus | None,
            Meta(description="Omitted if the run was deleted, or for an item of a `for_each` step."),
        ]
    ]


class ParentResource(TypedDict):
    """The step that started this child run."""

    run_id: str
    step: str


class StepResource(TypedDict):
    name: str
    status: StepStatus
    kind: Annotated[StepKind, Meta(description="What the step does.")]
    agent: Annotated[str, Meta(description="Empty if the step does not call an agent.")]
    protocol: Annotated[str | None, Meta(description="The dialect of the call.")]
    attempts: int
    repairs: Annotated[int, Meta(description="How many times the agent was asked to correct its output.")]
    input: NotRequired[Annotated[JsonValue, _STEP_PAYLOAD]]
    output: NotRequired[Annotated[JsonValue, _STEP_PAYLOAD]]
    error: StepFailure | None
    warnings: Annotated[
        Sequence[str],
        Meta(description="Deviations from the protocol in a response that was accepted anyway."),
    ]
    waiting_for: WaitingForResource | None
    started_at: Timestamp | None
    finished_at: Timestamp | None
    items: NotRequired[
        Annotated[
            ItemsResource | None,
            Meta(description="Only for a `for_each` step that has started. Its `input` is null."),
        ]
    ]
    workflow: NotRequired[
        Annotated[
            str | None,
            Meta(description="Only for a step that runs another workflow: the name of that workflow."),
        ]
    ]
    routing: NotRequired[
        Annotated[
            RoutingResource,
            Meta(description="Only for a step that chooses its agent when it begins, and has begun."),
        ]
    ]
    from_cache: NotRequired[
        Annotated[FromCacheResource, Meta(description="Only for a step whose output is from the cache.")]
    ]
    round: NotRequired[
        Annotated[int, Meta(ge=1, description="Only for a step with `repeat`: the number of its last round.")]
    ]
    child: NotRequired[
        Annotated[
            ChildResource | None,
            Meta(description="Only for a step that runs another workflow or a block, and has started."),
        ]
    ]


class QueuedResource(TypedDict):
    """Why a run has not started: the flow control of its trigger."""

    reason: Annotated[
        WaitReason | None,
        Meta(description="The limit that the run waits for. Null until it has been looked at."),
    ]
    not_before: Annotated[
        Timestamp, Meta(description="The run does not start earlier, because of `debounce`.")
    ]


class CompensationFailure(TypedDict):
    """Why the work of the run is undone, as expressions read it."""

    code: str
    message: str
    step: str | None


class CompensationFacts(TypedDict):
    """How the work of a run is undone."""

    status: Annotated[
        CompensationStatus, Meta(description="FAILED: a person gave up, and not everything is undone.")
    ]
    failure: CompensationFailure


class CompensationResource(CompensationFacts):
    steps: Annotated[
        list[StepResource],
        Meta(description="The compensations that have started, in that order, at most 1,000 of them."),
    ]


class RunFacts(TypedDict):
    """Fields of a run that are also part of a list."""

    id: str
    workflow: WorkflowReference
    status: RunStatus
    agents: Annotated[
        Sequence[str], Meta(description="Agents that the workflow's steps call, without duplicates.")
    ]
    error: StepFailure | None
    correlation_id: str
    started_by: Annotated[
        str | None,
        Meta(
            description="Name of the API key that started the run, `kafka:TOPIC` for a command from Kafka, or "
            "`trigger:NAME` for a trigger. A child run has the value of its parent. Null without API keys.",
            examples=["ci"],
        ),
    ]
    trigger: Annotated[str | None, Meta(description="Name of the trigger that started the run.")]
    labels: Annotated[
        dict[str, str],
        Meta(
            description="Labels by which the run can be found. A child run has those of its own workflow.",
            examples=[{"customer": "acme"}],
        ),
    ]
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    retry_of: NotRequired[Annotated[str | None, Meta(description="The run that this run retries.")]]
    cancel_requested_at: NotRequired[Timestamp | None]
    parent: NotRequired[Annotated[ParentResource | None, Meta(description="Only for a child run.")]]
    block: NotRequired[
        Annotated[
            str,
            Meta(
                description="Only for the run of a block: the steps that lead to it, separated by slashes. Its "
                "input is what the block reads from outside.",
                examples=["draft/improve"],
            ),
        ]
    ]
    trace_id: NotRequired[
        Annotated[
            str | None,
            Meta(description="Id of the trace that the run is part of. Omitted if it is not traced."),
        ]
    ]


class RunSummary(RunFacts):
    """A run, without its steps."""

    compensation: NotRequired[
        Annotated[CompensationFacts, Meta(description="Only for a run whose work is or was undone.")]
    ]

    input: NotRequired[Annotated[JsonValue, _RUN_PAYLOAD]]
    output: NotRequired[Annotated[JsonValue, _RUN_PAYLOAD]]


class RunResource(RunFacts):
    queued: NotRequired[
        Annotated[QueuedResource, Meta(description="Only for a run that waits for its start.")]
    ]
    message: NotRequired[
        Annotated[CallerMessageResource, Meta(description="Only for a run that a caller started over A2A.")]
    ]
    input: JsonValue
    output: JsonValue
    last_seq: Annotated[
        int,
        Meta(
            description="Number of the last event that is reflected in this response. 0 if the run has not "
            "started."
        ),
    ]
    steps: list[StepResource]
    compensation: NotRequired[
        Annotated[CompensationResource, Meta(description="Only for a run whose work is or was undone.")]
    ]


class RunPage(TypedDict):
    items: list[RunSummary]
    next_cursor: NextCursor


class StepPage(TypedDict):
    items: list[StepResource]
    next_cursor: NextCursor


class EventResource(TypedDict):
    seq: Annotated[int, Meta(description="Number of the event in its run: 1, 2, 3, … without gaps.")]
    type: str
    at: Timestamp
    data: JsonValue


class EventPage(TypedDict):
    items: list[EventResource]
    next_cursor: NextCursor


# --- conversions


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
        "kind": view.kind,
        "agent": view.agent,
        "protocol": state.protocol,
        "attempts": state.attempts,
        "repairs": state.call_details.repairs,
        "error": None if state.error is None else step_failure(state.error),
        "warnings": state.warnings,
        "waiting_for": None if state.waiting_for is None else _waiting_for(state.waiting_for, view.form),
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
    if state.route is not None:
        resource["routing"] = step_routing(state.route)
    if (origin := from_cache(state.call_details.cache)) is not None:
        resource["from_cache"] = origin
    if state.round:
        resource["round"] = state.round
    if view.child is not None:
        resource["child"] = {"run_id": view.child.run_id}
        if view.child.status is not None:
            resource["child"]["status"] = view.child.status
    return resource


def _waiting_for(waiting: WaitingFor, form: JsonObject | None) -> WaitingForResource:
    resource: WaitingForResource = {
        "kind": waiting.kind,
        "text": waiting.text,
        "until": time_or_none(waiting.until),
        **human_task_fields(waiting, form),
    }
    if waiting.data is not None:
        resource["data"] = waiting.data
    if waiting.kind == "event":
        return cast("WaitingForResource", {**resource, **waited_events(waiting)})
    return cast("WaitingForResource", {**resource, **shown_inner_questions(waiting)})


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
        "trigger": record.trigger,
        "labels": record.labels,
        "created_at": rfc3339(record.created_at),
        "started_at": time_or_none(record.started_at),
        "finished_at": time_or_none(record.finished_at),
        "last_seq": record.seq,
        "steps": [step_resource(step, payloads=step_payloads) for step in view.steps],
    }
    _add_optional_facts(run, record)
    if record.compensation is not None:
        run["compensation"] = {
            **_compensation_facts(record.compensation),
            "steps": [step_resource(step, payloads=step_payloads) for step in view.compensations],
        }
    if record.message is not None and record.parent is None:
        run["message"] = caller_message_resource(record.message, record.started_by)
    if view.start_wait is not None:
        run["queued"] = {
            "reason": view.start_wait.reason,
            "not_before": rfc3339(view.start_wait.not_before),
        }
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
        "trigger": record.trigger,
        "labels": record.labels,
        "created_at": rfc3339(record.created_at),
        "started_at": time_or_none(record.started_at),
        "finished_at": time_or_none(record.finished_at),
    }
    if payloads:
        summary["input"] = stored_json(record.input)
        summary["output"] = stored_json(record.output)
    _add_optional_facts(summary, record)
    if record.compensation is not None:
        summary["compensation"] = _compensation_facts(record.compensation)
    return summary


def _compensation_facts(compensation: Compensation) -> CompensationFacts:
    why = compensation.failure
    failure: CompensationFailure = {"code": why.code, "message": why.message, "step": why.step}
    return {"status": compensation.status, "failure": failure}


def _add_optional_facts(run: RunFacts, record: RunRecord) -> None:
    if record.retry_of is not None:
        run["retry_of"] = record.retry_of
    if record.cancel_requested_at is not None:
        run["cancel_requested_at"] = rfc3339(record.cancel_requested_at)
    if record.parent is not None:
        run_id, step = record.parent
        run["parent"] = {"run_id": run_id, "step": step}
    if record.block is not None:
        run["block"] = record.block
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


class LogLineResource(TypedDict):
    at: Annotated[Timestamp, Meta(description="When it happened. For an exchange, when it ended.")]
    level: Literal["info", "warning", "error"]
    source: Annotated[
        Literal["run", "agent", "wire"],
        Meta(
            description="`run`: an event of the run. `agent`: a progress message of an agent. `wire`: an "
            "exchange with an agent."
        ),
    ]
    event: Annotated[str, Meta(description="Type of the event, or purpose of the exchange.")]
    step: str | None
    attempt: int | None
    text: Annotated[str, Meta(description="The message. It can have several lines.")]


class LogPage(TypedDict):
    items: list[LogLineResource]
    next_cursor: NextCursor


def log_line(line: RunLogLine) -> LogLineResource:
    return {
        "at": rfc3339(line.at),
        "level": line.level,
        "source": line.source,
        "event": line.event,
        "step": line.step,
        "attempt": line.attempt,
        "text": line.text,
    }
