"""
Writes that answer nothing, gathered until the end of the transaction, or until somebody may see that they are missing:
one statement for all of them. None may need what another one writes, since they see the same state.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from trunkline.clock import Instant, after
from trunkline.messages import OutgoingMessage
from trunkline.stores.base import Dispatch, ExchangeRecord, TaskKey
from trunkline.stores.port.activity import AgentMinute
from trunkline.stores.postgres.database.combined_statements import Part, combined
from trunkline.stores.postgres.database.session import Session, Value, columns
from trunkline.stores.postgres.database.text_encoding import as_uuid
from trunkline.stores.postgres.tables.activity import NotedMinute, note_part, noting
from trunkline.stores.postgres.tables.tasks import DROP_RESULTS, key_columns
from trunkline.stores.rows.messaging import pack_messages

_MICROSECOND = timedelta(microseconds=1)

_PUT_OUTBOX = "INSERT INTO outbox(messages) SELECT unnest($1::bytea[])"
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


class Pending:
    def __init__(self, db: Session) -> None:
        self._db = db
        self._messages: list[OutgoingMessage] = []
        self._exchanges: list[tuple[Value, ...]] = []
        self._dispatches: list[tuple[str, int, str, bytes, int, int]] = []
        self._settled: set[TaskKey] = set()
        self._minutes: list[NotedMinute] = []

    def put_outbox(self, messages: Sequence[OutgoingMessage]) -> None:
        self._messages += messages

    def put_exchanges(self, exchanges: Sequence[ExchangeRecord]) -> None:
        # Nobody can read those of a run that has no such id.
        self._exchanges += [
            (each.run_id, each.step, each.attempt, each.record) for each in exchanges if as_uuid(each.run_id)
        ]

    def note_activity(self, bridge: str, minutes: Sequence[AgentMinute]) -> None:
        self._minutes += noting(bridge, minutes)

    async def put_dispatches(
        self, dispatches: Sequence[Dispatch], now: Instant, resend_after: timedelta
    ) -> None:
        if not self._settled.isdisjoint(each.key for each in dispatches):
            await self.write()
        pause, due = resend_after // _MICROSECOND, after(now, resend_after)
        self._dispatches += [
            (each.key.task_id, each.key.attempt, each.run_id, each.payload, pause, due) for each in dispatches
        ]

    async def settle_dispatches(self, keys: Collection[TaskKey]) -> None:
        if any(TaskKey(task_id, attempt) in keys for task_id, attempt, *_ in self._dispatches):
            await self.write()
        self._settled.update(keys)

    async def write(self) -> None:
        parts: list[Part] = []
        if self._settled:
            keys = key_columns(self._settled)
            parts += [Part(_SETTLE, keys), Part(DROP_RESULTS, keys)]
        if self._dispatches:
            parts.append(Part(_PUT_DISPATCHES, columns(sorted(self._dispatches), 6)))
        if self._exchanges:
            parts.append(Part(_PUT_EXCHANGES, columns(self._exchanges, 4)))
        if self._messages:
            parts.append(Part(_PUT_OUTBOX, [[pack_messages(self._messages)]]))
        if self._minutes:
            parts.append(note_part(self._minutes))
        if parts:
            self._messages, self._exchanges, self._dispatches, self._settled = [], [], [], set()
            self._minutes = []
            sql, values = combined(parts)
            await self._db.execute(sql, *values)
