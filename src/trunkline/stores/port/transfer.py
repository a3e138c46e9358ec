"""
Moving everything from one store to another: the tables that are copied, column by column.

Not copied: the agents' secrets, named secrets and the API's keys, which are set again in the new store; leases, which
end with the processes that held them, and the list of those processes; what bridges knew of agents together
(`agent_states`, `agent_sides`), which they find out again; what agents had to do minute by minute
(`agent_minutes`), which is deleted after a day; jobs, which end with the store they were started in; and the cache of
outputs (`kept_outputs`, `output_claims`): a step that waits for one asks again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Protocol, TypeAlias

import msgspec

from trunkline.clock import Instant

Value: TypeAlias = str | bytes | int | None
# The values in the order of the table's columns.
TableRow: TypeAlias = Sequence[Value]

# A batch is as long as this, or one row longer.
MOST_BATCH_BYTES = 2_000_000
MOST_BATCH_ROWS = 500


class TransferTable(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    columns: tuple[str, ...]
    # In the order of these, rows come out as they went in.
    order: tuple[str, ...] = ("id",)
    # Where a database has types of its own for ids and for JSON.
    uuids: frozenset[str] = frozenset()
    json: frozenset[str] = frozenset()
    # The database numbers the rows of this one by itself, in the first column of `order`.
    is_numbered: bool = False

    def place(self, column: str) -> int:
        return self.columns.index(column)


AGENTS = TransferTable(
    name="agents",
    columns=(
        "id", "name", "url", "description", "protocol", "protocol_config", "auth_type", "timeout_ms", "retry",
        "max_concurrency", "pool", "dialect", "options", "version", "created_at", "updated_at",
        "publish",
    ),
    uuids=frozenset({"id"}),
    json=frozenset({"protocol_config"}),
)  # fmt: skip
WORKFLOWS = TransferTable(name="workflows", columns=("id", "name", "created_at"), uuids=frozenset({"id"}))
WORKFLOW_VERSIONS = TransferTable(
    name="workflow_versions",
    columns=("workflow_id", "version", "canonical", "source", "created_at"),
    order=("workflow_id", "version"),
    uuids=frozenset({"workflow_id"}),
)
SCHEMAS = TransferTable(
    name="schemas", columns=("name", "schema", "version", "created_at", "updated_at"), order=("name",)
)
RUNS = TransferTable(
    name="runs",
    columns=(
        "id", "workflow_id", "workflow_name", "workflow_version", "status", "version", "seq", "input", "output",
        "error", "correlation_id", "idempotency_key", "request_digest", "retry_of", "paused", "contexts",
        "cancel_requested_at", "created_at", "started_at", "finished_at", "traceparent", "tracestate",
        "parent_id", "parent_step", "depth", "routes", "started_by", "trigger_name",
        "message", "events_seen", "labels", "block", "compensation",
    ),
    uuids=frozenset({"id", "workflow_id", "retry_of", "parent_id"}),
)  # fmt: skip
RUN_LABELS = TransferTable(
    name="run_labels",
    columns=("run_id", "key", "value"),
    order=("run_id", "key"),
    uuids=frozenset({"run_id"}),
)
STEPS = TransferTable(
    name="steps",
    columns=(
        "run_id", "name", "status", "attempts", "answered_failures", "replies", "protocol", "context_id",
        "remote_task_id", "reply", "input", "output", "error", "warnings", "waiting_for", "waiting_kind",
        "waiting_since", "waiting_workflow", "started_at", "finished_at", "call_details",
    ),
    order=("run_id", "name"),
    uuids=frozenset({"run_id"}),
)  # fmt: skip
PUBLISHED_TASKS = TransferTable(
    name="published_tasks",
    columns=("run_id", "publication", "caller", "context_id", "state", "updated_at"),
    order=("run_id",),
    uuids=frozenset({"run_id"}),
)
FOLLOW_UPS = TransferTable(
    name="follow_ups",
    columns=("run_id", "key", "at", "question", "answer"),
    order=("run_id", "key"),
    uuids=frozenset({"run_id"}),
)
PUSH_CONFIGS = TransferTable(
    name="push_configs",
    columns=("run_id", "id", "sealed", "created_at", "failures", "error", "disabled_at"),
    order=("run_id", "id"),
    uuids=frozenset({"run_id"}),
)
LISTED_TASKS = TransferTable(
    name="listed_tasks",
    columns=("run_id", "step", "person", "since", "due"),
    order=("run_id", "step", "person"),
    uuids=frozenset({"run_id"}),
)
TASK_COMMENTS = TransferTable(
    name="task_comments",
    columns=("run_id", "step", "attempts", "replies", "number", "at", "person", "text"),
    order=("run_id", "step", "attempts", "replies", "number"),
    uuids=frozenset({"run_id"}),
)
PAYLOADS = TransferTable(name="payloads", columns=("digest", "body"), order=("digest",))
PAYLOAD_USES = TransferTable(
    name="payload_uses",
    columns=("run_id", "digest", "size"),
    order=("run_id", "digest"),
    uuids=frozenset({"run_id"}),
)
EVENTS = TransferTable(
    name="events",
    columns=("id", "run_id", "seq", "type", "at", "data"),
    uuids=frozenset({"run_id"}),
    is_numbered=True,
)
INBOX = TransferTable(
    name="inbox",
    columns=("id", "run_id", "key", "payload", "applied"),
    uuids=frozenset({"run_id"}),
    is_numbered=True,
)
TIMERS = TransferTable(
    name="timers",
    columns=("run_id", "key", "due", "payload"),
    order=("run_id", "key"),
    uuids=frozenset({"run_id"}),
)
RECEIVED_EVENTS = TransferTable(
    name="received_events",
    columns=("number", "id", "source", "type", "key", "data", "at", "run_id", "left_over"),
    order=("number",),
    uuids=frozenset({"run_id"}),
    is_numbered=True,
)
EVENT_WAITS = TransferTable(
    name="event_waits",
    columns=("id", "run_id", "step", "type", "attempt", "key", "is_signal"),
    uuids=frozenset({"run_id"}),
    is_numbered=True,
)
DISPATCHES = TransferTable(
    name="dispatches",
    columns=("task_id", "attempt", "run_id", "payload", "pause", "resend_at"),
    order=("task_id", "attempt"),
    uuids=frozenset({"run_id"}),
)
TASKS = TransferTable(
    name="tasks",
    columns=(
        "id", "task_id", "attempt", "run_id", "agent", "pool", "status", "owner", "epoch", "stopping", "at_most_once",
        "deadline", "poll_at", "polls", "remote_task_id", "context_id", "payload", "result", "called_at", "ended_at",
        "outcome", "error_code",
    ),
    uuids=frozenset({"run_id"}),
    is_numbered=True,
)  # fmt: skip
EXCHANGES = TransferTable(
    name="exchanges",
    columns=("id", "run_id", "step", "attempt", "record"),
    uuids=frozenset({"run_id"}),
    is_numbered=True,
)
DEAD_LETTERS = TransferTable(
    name="dead_letters",
    columns=(
        "id", "origin", "topic", "partition", "offset", "key", "value", "headers", "reason", "at",
    ),
    uuids=frozenset({"id"}),
)  # fmt: skip
OUTBOX = TransferTable(name="outbox", columns=("id", "messages"), is_numbered=True)
AGENT_EVENTS = TransferTable(
    name="agent_events",
    columns=("id", "agent_id", "agent", "kind", "at", "who", "why", "data"),
    uuids=frozenset({"agent_id"}),
)
AGENT_CHECKS = TransferTable(
    name="agent_checks",
    columns=("id", "agent_id", "at", "url", "protocol", "active", "grade", "passed", "report"),
    uuids=frozenset({"id", "agent_id"}),
)
COMPARISONS = TransferTable(
    name="comparisons",
    columns=("id", "agent_id", "since", "run_id", "step", "at", "verdict", "record"),
    uuids=frozenset({"id", "agent_id", "run_id"}),
)

AUDIT = TransferTable(
    name="audit",
    columns=("id", "at", "who", "kind", "action", "subject", "detail"),
    uuids=frozenset({"id"}),
)

TRIGGERS = TransferTable(
    name="triggers",
    columns=(
        "id", "name", "definition", "version", "created_at", "updated_at", "scheduled_at", "due", "awaits_runs",
    ),
    uuids=frozenset({"id"}),
)  # fmt: skip
FIRINGS = TransferTable(
    name="firings",
    columns=("id", "trigger_id", "at", "outcome", "scheduled_at", "run_id", "reason"),
    uuids=frozenset({"id", "trigger_id", "run_id"}),
)

TRIGGER_TOPICS = TransferTable(
    name="trigger_topics",
    columns=("topic", "trigger_id"),
    order=("topic", "trigger_id"),
    uuids=frozenset({"trigger_id"}),
)
PENDING_FIRINGS = TransferTable(
    name="trigger_occasions",
    columns=("number", "trigger_id", "event_number", "run_id", "at"),
    order=("number",),
    uuids=frozenset({"trigger_id", "run_id"}),
    is_numbered=True,
)

QUEUED_STARTS = TransferTable(
    name="queued_starts",
    columns=("number", "run_id", "gate", "state", "priority", "not_before", "due", "reason", "policy"),
    order=("number",),
    uuids=frozenset({"run_id"}),
    is_numbered=True,
)
START_RATES = TransferTable(name="start_rates", columns=("gate", "tokens", "refilled_at"), order=("gate",))

CALLBACK_QUEUES = TransferTable(
    name="callback_queues", columns=("queue", "kind", "failures", "next_attempt_at"), order=("queue",)
)
CALLBACKS = TransferTable(
    name="callbacks", columns=("id", "queue", "payload", "created_at"), is_numbered=True
)

SUBSCRIPTIONS = TransferTable(
    name="subscriptions",
    columns=(
        "id", "name", "definition", "version", "created_at", "updated_at", "failing_since", "error", "disabled_at",
    ),
    uuids=frozenset({"id"}),
)  # fmt: skip
DELIVERIES = TransferTable(
    name="deliveries",
    columns=(
        "id", "subscription_id", "event_id", "type", "run_id", "event", "created_at", "status", "attempts",
        "attempted_at", "error",
    ),
    uuids=frozenset({"id", "subscription_id", "run_id"}),
)  # fmt: skip

# In the order in which they are copied.
TABLES = (
    AGENTS, WORKFLOWS, WORKFLOW_VERSIONS, SCHEMAS, RUNS, RUN_LABELS, STEPS, PUBLISHED_TASKS, FOLLOW_UPS, PUSH_CONFIGS,
    LISTED_TASKS, TASK_COMMENTS, PAYLOADS, PAYLOAD_USES,
    EVENTS, INBOX, TIMERS, RECEIVED_EVENTS, EVENT_WAITS, DISPATCHES, TASKS, EXCHANGES, DEAD_LETTERS, OUTBOX,
    AGENT_EVENTS, AGENT_CHECKS, COMPARISONS, AUDIT, TRIGGERS, FIRINGS, TRIGGER_TOPICS, PENDING_FIRINGS,
    CALLBACK_QUEUES, CALLBACKS, SUBSCRIPTIONS, DELIVERIES,
    QUEUED_STARTS, START_RATES,
)  # fmt: skip


class RowBatches:
    """Collects rows into batches that fit into memory, however long a row is."""

    def __init__(self) -> None:
        self._rows: list[TableRow] = []
        self._bytes = 0

    def add(self, row: TableRow) -> Iterator[list[TableRow]]:
        """The batch that this row has filled, if it has."""
        self._rows.append(row)
        self._bytes += sum(len(value) for value in row if isinstance(value, (str, bytes)))
        if len(self._rows) >= MOST_BATCH_ROWS or self._bytes >= MOST_BATCH_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[list[TableRow]]:
        if self._rows:
            yield self._rows
        self._rows = []
        self._bytes = 0


class ExportRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything was exported at this time: the store is read-only."""

    at: Instant


class TransferReads(Protocol):
    async def export_record(self) -> ExportRecord | None: ...


class TransferWrites(Protocol):
    async def mark_exported(self) -> None:
        """
        No other transaction writes until this one ends; afterwards the store is read-only.

        Raises `DataInUse` while other processes use the store. A store that has moved before stays as it is.
        """
        ...

    def dump(self, table: TransferTable) -> AsyncGenerator[list[TableRow]]:
        """All rows, in an order in which they can be loaded elsewhere; read it to the end."""
        ...

    async def load(self, table: TransferTable, rows: Sequence[TableRow]) -> None:
        """What `dump` returned, of any backend, into an empty table."""
        ...
