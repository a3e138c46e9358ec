"""
Writes without a result, deferred to the end of the transaction, or until a statement needs to see them.

One statement writes all of them. None may need what another one writes, since they see the same snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trunkline.clock import Instant
from trunkline.messages import OutgoingMessage, TaskKey
from trunkline.stores.postgres.database.session import Session, StatementPart, columns, combined
from trunkline.stores.postgres.tables.task_claims import key_columns
from trunkline.stores.rows import Value
from trunkline.stores.rows.messaging import pack_messages

_PUT_OUTBOX = """
    INSERT INTO outbox(messages, reserved_until) SELECT * FROM unnest($1::bytea[], $2::bigint[]) RETURNING id
"""
# One that another relay is taking is left to it: a turn does not wait until that has been sent.
_DELETE_OUTBOX = """
    DELETE FROM outbox WHERE id = ANY(ARRAY(
        SELECT id FROM outbox WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED))
"""
_PUT_EXCHANGES = """
    INSERT INTO exchanges(run_id, step, attempt, record)
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::int[], $4::bytea[])
"""
_PUT_DISPATCHES = """
    INSERT INTO dispatches(task_id, attempt, run_id, payload, pause, resend_at)
    SELECT * FROM unnest($1::text[], $2::int[], $3::uuid[], $4::bytea[], $5::bigint[], $6::bigint[])
    ON CONFLICT (task_id, attempt) DO NOTHING
"""
_SETTLE = """
    DELETE FROM dispatches USING unnest($1::text[], $2::int[]) AS old(task_id, attempt)
    WHERE dispatches.task_id = old.task_id AND dispatches.attempt = old.attempt
"""
_DROP_RESULTS = """
    UPDATE tasks SET result = NULL FROM unnest($1::text[], $2::int[]) AS old(task_id, attempt)
    WHERE tasks.task_id = old.task_id AND tasks.attempt = old.attempt AND tasks.result IS NOT NULL
"""
# Grouped by agent and minute: a transaction may record the same ones twice before it writes them.
_RECORD_MINUTES = """
    INSERT INTO agent_minutes(agent, minute, bridge, calls, failures, total_ms, longest_ms)
    SELECT agent, minute, bridge, sum(calls), sum(failures), sum(total_ms), max(longest_ms)
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::int[], $5::int[], $6::bigint[], $7::bigint[])
        AS new(agent, minute, bridge, calls, failures, total_ms, longest_ms)
    GROUP BY agent, minute, bridge
    ON CONFLICT (agent, minute, bridge) DO UPDATE SET
        calls = agent_minutes.calls + excluded.calls, failures = agent_minutes.failures + excluded.failures,
        total_ms = agent_minutes.total_ms + excluded.total_ms,
        longest_ms = greatest(agent_minutes.longest_ms, excluded.longest_ms)
"""


class DeferredWrites:
    __slots__ = (
        "_db",
        "_dispatches",
        "_settled",
        "arrived",
        "exchanges",
        "messages",
        "minutes",
        "reserved_until",
        "written_messages",
    )

    def __init__(self, db: Session) -> None:
        self._db = db
        # Those that this transaction has put, with their rows.
        self.written_messages: list[tuple[int, Sequence[OutgoingMessage]]] = []
        self.reserved_until = Instant(0)
        self.reset()

    def reset(self) -> None:
        """Also when the database has gone back to a savepoint, before which nothing was deferred."""
        self.messages: list[OutgoingMessage] = []
        # Rows of the outbox.
        self.arrived: list[int] = []
        # Run id, step, attempt, record.
        self.exchanges: list[tuple[Value, ...]] = []
        # As `agent_minute_values` has them.
        self.minutes: list[tuple[Value, ...]] = []
        self._dispatches: list[tuple[str, int, str, bytes, int, int]] = []
        self._settled: set[TaskKey] = set()

    async def put_dispatches(self, rows: Sequence[tuple[str, int, str, bytes, int, int]]) -> None:
        """As `dispatch_values` has them."""
        if not self._settled.isdisjoint(TaskKey(task_id, attempt) for task_id, attempt, *_ in rows):
            await self.write()
        self._dispatches += rows

    async def settle_dispatches(self, keys: Collection[TaskKey]) -> None:
        if any(TaskKey(task_id, attempt) in keys for task_id, attempt, *_ in self._dispatches):
            await self.write()
        self._settled.update(keys)

    async def write(self) -> None:
        parts: list[StatementPart] = []
        if self._settled:
            keys = key_columns(self._settled)
            parts += [StatementPart(_SETTLE, keys), StatementPart(_DROP_RESULTS, keys)]
        if self._dispatches:
            parts.append(StatementPart(_PUT_DISPATCHES, columns(sorted(self._dispatches), 6)))
        if self.exchanges:
            parts.append(StatementPart(_PUT_EXCHANGES, columns(self.exchanges, 4)))
        if self.minutes:
            parts.append(StatementPart(_RECORD_MINUTES, columns(self.minutes, 7)))
        if self.arrived:
            parts.append(StatementPart(_DELETE_OUTBOX, [self.arrived]))
        messages = self.messages
        if messages:
            # Last: it is what the statement returns.
            parts.append(StatementPart(_PUT_OUTBOX, [[pack_messages(messages)], [self.reserved_until]]))
        if parts:
            self.reset()
            sql, values = combined(parts)
            rows = await self._db.rows(sql, *values)
            if messages:
                self.written_messages.append((rows[0][0], messages))
