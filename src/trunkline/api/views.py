"""
What the API shows of agents and runs, as JSON text.

Payloads were encoded when they were stored; they are spliced in as they are, never decoded here. `schemas`
describes the same shapes for OpenAPI, and the tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from trunkline.agents import Agent, Dialect, RateLimit
from trunkline.api.limit_views import limits_view
from trunkline.clock import Instant, rfc3339
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.machine.state import WaitingFor
from trunkline.messages import ERROR_CODES, StepError
from trunkline.services.agents.options import breaker_to_json
from trunkline.services.agents.retry_policy import retry_to_json
from trunkline.services.runs.stored_exchanges import StoredExchange
from trunkline.stores.base import AgentLoad, EventRecord, RunRecord

if TYPE_CHECKING:
    from trunkline.api.services import HealthReport
    from trunkline.services.runs.queries import ChildRunView, ItemCounts, RunView, StepView
    from trunkline.services.runs.search import ListedRun

_NULL = msgspec.Raw(b"null")


def _time(instant: Instant | None) -> str | None:
    return None if instant is None else rfc3339(instant)


def _payload(text: bytes | None) -> msgspec.Raw:
    return _NULL if text is None else msgspec.Raw(text)


def page_json(items: Sequence[object], next_cursor: str | None) -> bytes:
    return encode({"items": items, "next_cursor": next_cursor})


# --- runs


class _WorkflowRef(msgspec.Struct):
    name: str
    version: int


class _Waiting(msgspec.Struct):
    kind: str
    text: str
    until: str | None
    data: Json | msgspec.UnsetType = msgspec.UNSET


class _Error(msgspec.Struct, omit_defaults=True):
    code: str
    message: str
    fix: str
    step: str | None = None
    attempt: int | None = None
    jsonrpc_code: int | None = None
    http_status: int | None = None
    detail: object = None
    fix_command: str | None = None
    cause_item: int | None = None


class _Items(msgspec.Struct):
    total: int
    pending: int
    running: int
    waiting: int
    completed: int
    failed: int
    skipped: int
    cancelled: int


class _Child(msgspec.Struct):
    run_id: str
    status: str | msgspec.UnsetType


class _Parent(msgspec.Struct):
    run_id: str
    step: str


class _Step(msgspec.Struct):
    name: str
    status: str
    agent: str
    protocol: str | None
    attempts: int
    input: msgspec.Raw | msgspec.UnsetType
    output: msgspec.Raw | msgspec.UnsetType
    error: _Error | None
    warnings: Sequence[str]
    waiting_for: _Waiting | None
    started_at: str | None
    finished_at: str | None
    items: _Items | msgspec.UnsetType
    workflow: str | msgspec.UnsetType
    child: _Child | msgspec.UnsetType


class _Run(msgspec.Struct):
    id: str
    workflow: _WorkflowRef
    status: str
    agents: Sequence[str]
    input: msgspec.Raw | msgspec.UnsetType
    output: msgspec.Raw | msgspec.UnsetType
    error: _Error | None
    correlation_id: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    retry_of: str | msgspec.UnsetType
    cancel_requested_at: str | msgspec.UnsetType
    parent: _Parent | msgspec.UnsetType
    trace_id: str | msgspec.UnsetType
    last_seq: int | msgspec.UnsetType
    steps: list[_Step] | msgspec.UnsetType


def error_view(error: StepError | None) -> _Error | None:
    if error is None:
        return None
    return _Error(
        error.code,
        error.message,
        error.fix,
        error.step,
        error.attempt,
        error.jsonrpc_code,
        error.http_status,
        error.detail,
        error.fix_command,
        error.cause_item,
    )


def _waiting(waiting: WaitingFor) -> _Waiting:
    data = msgspec.UNSET if waiting.data is None else waiting.data
    return _Waiting(waiting.kind, waiting.text, _time(waiting.until), data)


def _step(view: StepView, *, payloads: bool = True) -> _Step:
    state = view.state
    waiting = state.waiting_for
    return _Step(
        state.name,
        state.status,
        view.agent,
        state.protocol,
        state.attempts,
        _payload(state.input) if payloads else msgspec.UNSET,
        _payload(state.output) if payloads else msgspec.UNSET,
        error_view(state.error),
        state.warnings,
        None if waiting is None else _waiting(waiting),
        _time(state.started_at),
        _time(state.finished_at),
        msgspec.UNSET if view.items is None else _items(view.items),
        view.workflow or msgspec.UNSET,
        msgspec.UNSET if view.child is None else _child(view.child),
    )


def _child(child: ChildRunView) -> _Child:
    return _Child(child.run_id, child.status or msgspec.UNSET)


def _items(counts: ItemCounts) -> _Items:
    of = counts.by_status
    begun = sum(of.values()) - of.get("PENDING", 0)
    return _Items(
        total=counts.total,
        pending=counts.total - begun,
        running=of.get("RUNNING", 0),
        waiting=of.get("WAITING", 0) + of.get("OUTCOME_UNKNOWN", 0),
        completed=of.get("COMPLETED", 0),
        failed=of.get("FAILED", 0),
        skipped=of.get("SKIPPED", 0),
        cancelled=of.get("CANCELLED", 0),
    )


def _run(
    record: RunRecord,
    agents: Sequence[str],
    steps: list[_Step] | msgspec.UnsetType = msgspec.UNSET,
    *,
    payloads: bool = True,
) -> _Run:
    cancel_requested_at = record.cancel_requested_at
    return _Run(
        record.id,
        _WorkflowRef(record.workflow_name, record.workflow_version),
        record.status,
        agents,
        msgspec.Raw(record.input) if payloads else msgspec.UNSET,
        _payload(record.output) if payloads else msgspec.UNSET,
        error_view(record.error),
        record.correlation_id,
        rfc3339(record.created_at),
        _time(record.started_at),
        _time(record.finished_at),
        msgspec.UNSET if record.retry_of is None else record.retry_of,
        msgspec.UNSET if cancel_requested_at is None else rfc3339(cancel_requested_at),
        msgspec.UNSET if record.parent is None else _Parent(*record.parent),
        msgspec.UNSET if record.trace is None else record.trace.trace_id,
        msgspec.UNSET if steps is msgspec.UNSET else record.seq,
        steps,
    )


def run_json(view: RunView, *, step_payloads: bool = True) -> bytes:
    agents = list(dict.fromkeys(step.agent for step in view.steps if step.agent))
    return encode(_run(view.record, agents, [_step(step, payloads=step_payloads) for step in view.steps]))


def step_json(step: StepView) -> bytes:
    return encode(_step(step))


def steps_json(steps: Sequence[StepView], next_cursor: str | None, *, payloads: bool) -> bytes:
    return page_json([_step(step, payloads=payloads) for step in steps], next_cursor)


def runs_json(runs: Sequence[ListedRun], next_cursor: str | None, *, payloads: bool) -> bytes:
    return page_json([_run(run.record, run.agents, payloads=payloads) for run in runs], next_cursor)


def error_codes_json() -> bytes:
    return encode(
        {
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
    )


class _Event(msgspec.Struct):
    seq: int
    type: str
    at: str
    data: msgspec.Raw


def event_json(event: EventRecord) -> bytes:
    return encode(_event(event))


def events_json(events: Sequence[EventRecord], next_cursor: str | None) -> bytes:
    return page_json([_event(event) for event in events], next_cursor)


def _event(event: EventRecord) -> _Event:
    return _Event(event.seq, event.type, rfc3339(event.at), msgspec.Raw(event.data))


class _Began(msgspec.Struct):
    started_at: str


_beginnings = msgspec.json.Decoder(_Began)


def wire_json(exchanges: Sequence[tuple[int, bytes]], next_cursor: str | None, *, payloads: bool) -> bytes:
    # They are kept, and paged, in the order of their ends; those of one page are shown as they began.
    ordered = in_order([_numbered(row, record) for row, record in exchanges])
    return page_json(ordered if payloads else [_bare(record) for record in ordered], next_cursor)


class _Numbered(StoredExchange, kw_only=True):
    id: int


_numbered_records = msgspec.json.Decoder(_Numbered)


def _numbered(row: int, record: bytes) -> bytes:
    return b'{"id":%d,' % row + record.removeprefix(b"{")


def _bare(record: msgspec.Raw) -> _Numbered:
    exchange = _numbered_records.decode(record)
    for message in (exchange.request, exchange.response):
        if message is not None:
            message.headers, message.body = {}, ""
    exchange.frames = None
    return exchange


def in_order(records: Sequence[bytes]) -> list[msgspec.Raw]:
    """Records of exchanges, as they began."""
    ordered = sorted(records, key=lambda record: _beginnings.decode(record).started_at)
    return [msgspec.Raw(record) for record in ordered]


# --- agents


class _Probe(msgspec.Struct):
    at: str
    tried: str
    answered: str


class _Dialect(msgspec.Struct):
    protocol: str
    url: str
    evidence: str
    decided_at: str
    card_url: str | None
    card_etag: str | None
    card_digest: str | None
    streams: bool
    pushes: bool
    tenant: str | None
    tried: list[_Probe]


class _Agent(msgspec.Struct):
    id: str
    name: str
    url: str
    description: str | None
    protocol: str
    protocol_config: JsonObject | None
    auth_type: str
    timeout_ms: int
    retry: JsonObject | None
    max_concurrency: int
    pool: str | None
    transport: str
    resend: str
    endpoint_override: str | None
    allow_card_origin: Sequence[str]
    rate: RateLimit | None
    breaker: JsonObject | None
    repeatable: bool
    dialect: _Dialect | None
    created_at: str
    updated_at: str


def _dialect(dialect: Dialect) -> _Dialect:
    return _Dialect(
        dialect.protocol,
        dialect.url,
        dialect.evidence,
        rfc3339(dialect.decided_at),
        dialect.card_url,
        dialect.card_etag,
        dialect.card_digest,
        dialect.streams,
        dialect.pushes,
        dialect.tenant,
        [_Probe(rfc3339(probe.at), probe.tried, probe.answered) for probe in dialect.tried],
    )


def agent_view(agent: Agent) -> _Agent:
    options = agent.options
    return _Agent(
        agent.id,
        agent.name,
        agent.url,
        agent.description,
        agent.protocol,
        agent.protocol_config,
        agent.auth_type,
        agent.timeout_ms,
        None if agent.retry is None else retry_to_json(agent.retry),
        agent.max_concurrency,
        agent.pool,
        options.transport,
        options.resend,
        options.endpoint_override,
        options.allow_card_origin,
        options.rate,
        breaker_to_json(options.breaker),
        options.repeatable,
        None if agent.dialect is None else _dialect(agent.dialect),
        rfc3339(agent.created_at),
        rfc3339(agent.updated_at),
    )


def agent_json(agent: Agent, load: AgentLoad, migration: object) -> bytes:
    """With what it has to do, how its limits stand, and where it moves to."""
    return encode(
        {
            **msgspec.structs.asdict(agent_view(agent)),
            "limits": limits_view(agent.options, load),
            "migration": migration,
        }
    )


def agents_json(agents: Sequence[Agent], next_cursor: str | None) -> bytes:
    return page_json([agent_view(agent) for agent in agents], next_cursor)


def health_json(report: HealthReport) -> bytes:
    return encode(
        {
            "status": report.status,
            "checked_at": rfc3339(report.checked_at),
            "detail": report.detail,
            "protocol": report.protocol,
            "http_status": report.http_status,
            "duration_ms": report.duration_ms,
        }
    )
