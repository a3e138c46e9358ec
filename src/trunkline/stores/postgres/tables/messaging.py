"""The outbox, tasks that are sent again until their results have come, dead letters, and recorded exchanges."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from trunkline.clock import Instant, after
from trunkline.ids import RunId
from trunkline.messages import Dispatch, OutgoingMessage, TaskKey
from trunkline.stores.payloads import joined, pieces_in
from trunkline.stores.port.messaging import DeadLetter, ExchangeRecord, OutboxBatch
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.payloads import PostgresPayloads
from trunkline.stores.postgres.database.session import Session, Value, columns
from trunkline.stores.postgres.database.text_encoding import HIGHEST_UUID, as_uuid, escaped, restored_row
from trunkline.stores.postgres.tables.deferred_writes import DeferredWrites
from trunkline.stores.postgres.tables.run_lists import FINAL
from trunkline.stores.postgres.tables.task_claims import key_columns, key_of
from trunkline.stores.rows.messaging import (
    DISPATCH_PAYLOADS,
    dead_letter,
    dead_letter_values,
    dispatch_values,
    microseconds,
    unpack_messages,
)

# A row has what one transaction had to say, from one message to some hundred.
_ROWS_AT_ONCE = 16

_TAKE_OUTBOX = """
    DELETE FROM outbox WHERE id = ANY(ARRAY(
        SELECT id FROM outbox WHERE reserved_until <= $2 ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING id, messages
"""
_RESERVE = "UPDATE outbox SET reserved_until = $2 WHERE id = ANY($1::bigint[])"
# Not an EXISTS: PostgreSQL may answer many of those by reading every run that goes on.
_TAKE_DUE = f"""
    WITH due AS MATERIALIZED (
        SELECT task_id, attempt, coalesce(
            (SELECT runs.status NOT IN {FINAL} FROM runs WHERE runs.id = dispatches.run_id), false) AS goes_on
        FROM dispatches WHERE resend_at <= $1 ORDER BY resend_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ), forgotten AS (
        DELETE FROM dispatches USING due
        WHERE dispatches.task_id = due.task_id AND dispatches.attempt = due.attempt AND NOT due.goes_on
    )
    UPDATE dispatches SET pause = least(2 * pause, $3), resend_at = $1 + least(2 * pause, $3) FROM due
    WHERE dispatches.task_id = due.task_id AND dispatches.attempt = due.attempt AND due.goes_on
    RETURNING dispatches.task_id, dispatches.attempt, dispatches.run_id::text, dispatches.payload
"""  # noqa: S608 - constants only
_DISPATCHED = """
    SELECT dispatches.task_id, dispatches.attempt, dispatches.payload
    FROM unnest($1::text[], $2::int[]) AS wanted(task_id, attempt) JOIN dispatches
        ON dispatches.task_id = wanted.task_id AND dispatches.attempt = wanted.attempt
"""
_LETTER = 'id::text, topic, partition, "offset", key, value, headers, reason, at'
_LETTERS = f"SELECT {_LETTER} FROM dead_letters"  # noqa: S608 - constants of this module
_PUT_LETTERS = """
    INSERT INTO dead_letters(origin, id, topic, partition, "offset", key, value, headers, reason, at)
    SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::int[], $5::bigint[], $6::bytea[], $7::bytea[],
        $8::bytea[], $9::text[], $10::bigint[])
    ON CONFLICT (origin) DO NOTHING
"""
_EXCHANGES = """
    SELECT id, record FROM exchanges WHERE run_id = $1 AND id > $2 AND ($3::text IS NULL OR step = $3)
        AND ($4::integer IS NULL OR attempt = $4) ORDER BY id LIMIT $5
"""


def _bytes(value: Value) -> bytes:
    assert isinstance(value, bytes)  # noqa: S101 - for the type checker
    return value


class _DeferringWrites(PostgresWrites):
    __slots__ = ("_deferred",)

    def __init__(self, db: Session, now: Instant, deferred: DeferredWrites) -> None:
        super().__init__(db, now)
        self._deferred = deferred


class PostgresOutboxWrites(_DeferringWrites):
    __slots__ = ()

    async def put(self, messages: Sequence[OutgoingMessage]) -> None:
        self._deferred.messages += messages

    async def reserve(self, lasts: timedelta) -> OutboxBatch:
        deferred, until = self._deferred, after(self._now, lasts)
        before = [row for row, _ in deferred.written_messages]
        if before:
            # Written already, because something had to see what was deferred with it.
            await self._db.execute(_RESERVE, before, until)
        if deferred.messages:
            deferred.reserved_until = until
            await deferred.write()
            deferred.reserved_until = Instant(0)
        return OutboxBatch(
            rows=[row for row, _ in deferred.written_messages],
            messages=[message for _, messages in deferred.written_messages for message in messages],
        )

    async def delete(self, rows: Collection[int]) -> None:
        self._deferred.arrived += rows

    async def take(self, limit: int) -> list[OutgoingMessage]:
        await self._deferred.write()
        taken: list[OutgoingMessage] = []
        while len(taken) < limit:
            most = min(_ROWS_AT_ONCE, limit - len(taken))
            rows = await self._db.rows(_TAKE_OUTBOX, most, self._now)
            for _, packed in sorted(rows, key=lambda row: row[0]):
                taken += unpack_messages(packed)
            if len(rows) < most:
                break
        return taken


class PostgresDispatchWrites(_DeferringWrites):
    __slots__ = ("_payloads",)

    def __init__(
        self, db: Session, now: Instant, deferred: DeferredWrites, payloads: PostgresPayloads
    ) -> None:
        super().__init__(db, now, deferred)
        self._payloads = payloads

    async def put(self, dispatches: Sequence[Dispatch], resend_after: timedelta) -> None:
        pause, due = microseconds(resend_after), after(self._now, resend_after)
        values = [dispatch_values(each, pause, due) for each in dispatches]
        rows, pieces = await self._payloads.split(values, DISPATCH_PAYLOADS)
        # The tasks belong to runs of this transaction.
        await self._payloads.put((str(rows[number][2]), pieces[number]) for number in pieces)
        stored = [
            (*values[number][:3], _bytes(row[3]), *values[number][4:]) for number, row in enumerate(rows)
        ]
        await self._deferred.put_dispatches(stored)

    async def take_due(self, limit: int, longest: timedelta) -> list[Dispatch]:
        await self._deferred.write()
        due = await self._db.rows(_TAKE_DUE, self._now, limit, microseconds(longest))
        bodies = await self._payloads.read(pieces_in(row[3] for row in due))
        return [Dispatch(key_of(row), RunId(row[2]), joined(row[3], bodies)) for row in due]

    async def settle(self, keys: Collection[TaskKey]) -> None:
        await self._deferred.settle_dispatches(keys)

    async def payloads(self, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
        await self._deferred.write()
        if not keys:
            return {}
        found = await self._db.rows(_DISPATCHED, *key_columns(keys))
        bodies = await self._payloads.read(pieces_in(row[2] for row in found))
        return {key_of(row): joined(row[2], bodies) for row in found}


class PostgresDeadLetterReads(PostgresReads):
    async def get(self, letter_id: str) -> DeadLetter | None:
        row = await self._first(f"{_LETTERS} WHERE id = $1", as_uuid(letter_id))
        return None if row is None else dead_letter(restored_row(row))

    async def page(self, *, limit: int, before: str | None = None) -> list[DeadLetter]:
        if before is not None and as_uuid(before) is None:
            return []
        page = await self._rows(
            f"{_LETTERS} WHERE id < $1::uuid ORDER BY id DESC LIMIT $2", before or HIGHEST_UUID, limit
        )
        return [dead_letter(restored_row(row)) for row in page]


class PostgresDeadLetterWrites(PostgresWrites):
    __slots__ = ()

    async def put(self, letters: Sequence[DeadLetter]) -> None:
        rows = sorted((dead_letter_values(letter) for letter in letters), key=lambda row: str(row[0]))
        if rows:
            await self._db.execute(_PUT_LETTERS, *columns(rows, 10))

    async def count(self, limit: int) -> int:
        sql = "SELECT count(*) FROM (SELECT 1 FROM dead_letters LIMIT $1) AS counted"
        row = await self._db.first(sql, limit)
        return 0 if row is None else row[0]

    async def take(self, letter_id: str) -> DeadLetter | None:
        row = await self._db.first(
            f"DELETE FROM dead_letters WHERE id = $1 RETURNING {_LETTER}",  # noqa: S608 - as above
            as_uuid(letter_id),
        )
        return None if row is None else dead_letter(restored_row(row))


class PostgresExchangeReads(PostgresReads):
    async def page(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None, attempt: int | None = None
    ) -> list[tuple[int, bytes]]:
        of_step = None if step is None else escaped(step)
        page = await self._rows(_EXCHANGES, as_uuid(run_id), after, of_step, attempt, limit)
        return [(row_id, record) for row_id, record in page]


class PostgresExchangeWrites(_DeferringWrites):
    __slots__ = ()

    async def put(self, exchanges: Sequence[ExchangeRecord]) -> None:
        # No one can read those of a run that has no such id.
        self._deferred.exchanges += [
            (each.run_id, each.step, each.attempt, each.record) for each in exchanges if as_uuid(each.run_id)
        ]
