"""
Callbacks and their queues.

The row of a queue is its lock: it is taken before its callbacks are written, and before it is looked whether any are
left. So a queue that is settled as empty while a callback is put into it is not lost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from trunkline.clock import after
from trunkline.stores.port.automation.callbacks import CallbackQueue, ClaimedQueue, NewCallback, QueueOutcome
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import columns
from trunkline.stores.postgres.database.text_encoding import restored_row
from trunkline.stores.rows import Row
from trunkline.stores.rows.subscriptions import QUEUE_COLUMNS, callback_queue, claimed_queue

_QUEUE = f"""
    SELECT {QUEUE_COLUMNS}, (SELECT count(*) FROM callbacks WHERE callbacks.queue = callback_queues.queue)
    FROM callback_queues WHERE queue = $1
"""  # noqa: S608 - constants only
# In one order everywhere, and an update even where nothing changes: it takes the lock.
_LOCK_QUEUES = """
    INSERT INTO callback_queues(queue, kind, next_attempt_at)
    SELECT new.queue, new.kind, $3 FROM unnest($1::text[], $2::text[]) AS new(queue, kind) ORDER BY new.queue
    ON CONFLICT (queue) DO UPDATE SET kind = excluded.kind
"""
_INSERT = """
    INSERT INTO callbacks(queue, payload, created_at)
    SELECT new.queue, new.payload, $3 FROM unnest($1::text[], $2::bytea[])
        WITH ORDINALITY AS new(queue, payload, place) ORDER BY new.place
"""
_CLAIM = """
    WITH due AS MATERIALIZED (
        SELECT queue FROM callback_queues WHERE next_attempt_at <= $1
        ORDER BY next_attempt_at, queue LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    UPDATE callback_queues SET claim = $3, next_attempt_at = $4 FROM due WHERE callback_queues.queue = due.queue
    RETURNING callback_queues.queue, callback_queues.kind, callback_queues.failures
"""
_OLDEST = """
    SELECT claimed.queue, oldest.id, oldest.payload, oldest.created_at FROM unnest($1::text[]) AS claimed(queue)
        CROSS JOIN LATERAL (
            SELECT id, payload, created_at FROM callbacks WHERE callbacks.queue = claimed.queue ORDER BY id LIMIT $2
        ) AS oldest
    ORDER BY oldest.id
"""
_SETTLE = """
    UPDATE callback_queues SET claim = NULL, failures = $1, next_attempt_at = $2 WHERE queue = $3 AND claim = $4
"""
_EXTEND = "UPDATE callback_queues SET next_attempt_at = $1 WHERE queue = $2 AND claim = $3"
_DELETE_EMPTY = """
    DELETE FROM callback_queues WHERE queue = $1 AND NOT EXISTS (SELECT 1 FROM callbacks WHERE queue = $1)
"""
_RESUME = """
    UPDATE callback_queues SET failures = 0, next_attempt_at = $1 WHERE claim IS NULL AND queue IN (
        SELECT queue FROM callback_queues WHERE queue = ANY($2::text[]) ORDER BY queue FOR UPDATE)
"""
_DELETE_QUEUES = """
    DELETE FROM callback_queues WHERE queue IN (
        SELECT queue FROM callback_queues WHERE queue = ANY($1::text[]) ORDER BY queue FOR UPDATE)
"""


class PostgresCallbackReads(PostgresReads):
    async def are_due(self) -> bool:
        async with self._pool.reader() as db:
            now = await self._clock.now(db)
            sql = "SELECT 1 FROM callback_queues WHERE next_attempt_at <= $1 LIMIT 1"
            return await db.first(sql, now) is not None

    async def queue(self, queue: str) -> CallbackQueue | None:
        row = await self._first(_QUEUE, queue)
        return None if row is None else callback_queue(restored_row(row))


class PostgresCallbackWrites(PostgresWrites):
    __slots__ = ()

    async def put(self, callbacks: Sequence[NewCallback]) -> None:
        if not callbacks:
            return
        queues = {each.queue: each.kind for each in callbacks}
        await self._db.execute(_LOCK_QUEUES, *columns(queues.items(), 2), self._now)
        await self._db.execute(
            _INSERT, *columns([(each.queue, each.payload) for each in callbacks], 2), self._now
        )

    async def claim(self, claim: str, *, limit: int, each: int, lasts: timedelta) -> list[ClaimedQueue]:
        claimed = await self._db.rows(_CLAIM, self._now, limit, claim, after(self._now, lasts))
        due = [restored_row(row) for row in claimed]
        if not due:
            return []
        waiting: dict[str, list[Row]] = {}
        for row in await self._db.rows(_OLDEST, [row[0] for row in due], each):
            queue, *callback = restored_row(row)
            waiting.setdefault(queue, []).append(callback)
        return [claimed_queue(row, claim, waiting.get(row[0], [])) for row in due]

    async def extend(self, queue: str, claim: str, *, lasts: timedelta) -> bool:
        return bool(await self._db.execute(_EXTEND, after(self._now, lasts), queue, claim))

    async def settle(self, outcome: QueueOutcome) -> bool:
        values = (outcome.failures, outcome.next_attempt_at, outcome.queue, outcome.claim)
        if not await self._db.execute(_SETTLE, *values):
            return False
        await self._db.execute("DELETE FROM callbacks WHERE id = ANY($1::bigint[])", list(outcome.ended))
        await self._db.execute(_DELETE_EMPTY, outcome.queue)
        return True

    async def resume(self, queues: Collection[str]) -> None:
        await self._db.execute(_RESUME, self._now, list(queues))

    async def delete(self, queues: Collection[str]) -> None:
        # A transaction that puts into one of them has its lock until it has committed: then its callbacks are seen.
        await self._db.execute(_DELETE_QUEUES, list(queues))
        await self._db.execute("DELETE FROM callbacks WHERE queue = ANY($1::text[])", list(queues))
