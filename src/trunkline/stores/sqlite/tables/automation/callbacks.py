"""Callbacks and their queues."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from trunkline.clock import after
from trunkline.stores.port.automation.callbacks import CallbackQueue, ClaimedQueue, NewCallback, QueueOutcome
from trunkline.stores.rows.subscriptions import QUEUE_COLUMNS, callback_queue, claimed_queue
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import execute, execute_many, first, rows

_QUEUE = f"""
    SELECT {QUEUE_COLUMNS}, (SELECT count(*) FROM callbacks WHERE callbacks.queue = callback_queues.queue)
    FROM callback_queues WHERE queue = ?
"""  # noqa: S608 - constants only
_ADD_QUEUE = """
    INSERT INTO callback_queues(queue, kind, next_attempt_at) VALUES (?, ?, ?) ON CONFLICT(queue) DO NOTHING
"""
_DUE = """
    SELECT queue, kind, failures FROM callback_queues WHERE next_attempt_at <= ? ORDER BY next_attempt_at, queue LIMIT ?
"""
_CLAIM = "UPDATE callback_queues SET claim = ?, next_attempt_at = ? WHERE queue = ?"
_EXTEND = "UPDATE callback_queues SET next_attempt_at = ? WHERE queue = ? AND claim = ?"
_OLDEST = "SELECT id, payload, created_at FROM callbacks WHERE queue = ? ORDER BY id LIMIT ?"
_SETTLE = """
    UPDATE callback_queues SET claim = NULL, failures = ?, next_attempt_at = ? WHERE queue = ? AND claim = ?
"""
_DELETE_EMPTY = """
    DELETE FROM callback_queues WHERE queue = ?1 AND NOT EXISTS (SELECT 1 FROM callbacks WHERE queue = ?1)
"""
_RESUME = "UPDATE callback_queues SET failures = 0, next_attempt_at = ? WHERE queue = ? AND claim IS NULL"


class SqliteCallbackReads(SqliteReads):
    async def are_due(self) -> bool:
        sql = "SELECT 1 FROM callback_queues WHERE next_attempt_at <= ? LIMIT 1"
        return first(self._db, sql, (self._clock.now(),)) is not None

    async def queue(self, queue: str) -> CallbackQueue | None:
        row = first(self._db, _QUEUE, (queue,))
        return None if row is None else callback_queue(row)


class SqliteCallbackWrites(SqliteWrites):
    __slots__ = ()

    async def put(self, callbacks: Sequence[NewCallback]) -> None:
        queues = {each.queue: each.kind for each in callbacks}
        execute_many(self._db, _ADD_QUEUE, [(queue, kind, self._now) for queue, kind in queues.items()])
        execute_many(
            self._db,
            "INSERT INTO callbacks(queue, payload, created_at) VALUES (?, ?, ?)",
            [(each.queue, each.payload, self._now) for each in callbacks],
        )

    async def claim(self, claim: str, *, limit: int, each: int, lasts: timedelta) -> list[ClaimedQueue]:
        due = list(rows(self._db, _DUE, (self._now, limit)))
        end = after(self._now, lasts)
        execute_many(self._db, _CLAIM, [(claim, end, queue) for queue, _, _ in due])
        return [claimed_queue(row, claim, rows(self._db, _OLDEST, (row[0], each))) for row in due]

    async def extend(self, queue: str, claim: str, *, lasts: timedelta) -> bool:
        return bool(execute(self._db, _EXTEND, (after(self._now, lasts), queue, claim)))

    async def settle(self, outcome: QueueOutcome) -> bool:
        values = (outcome.failures, outcome.next_attempt_at, outcome.queue, outcome.claim)
        if not execute(self._db, _SETTLE, values):
            return False
        execute_many(self._db, "DELETE FROM callbacks WHERE id = ?", [(each,) for each in outcome.ended])
        execute(self._db, _DELETE_EMPTY, (outcome.queue,))
        return True

    async def resume(self, queues: Collection[str]) -> None:
        execute_many(self._db, _RESUME, [(self._now, queue) for queue in queues])

    async def delete(self, queues: Collection[str]) -> None:
        execute_many(self._db, "DELETE FROM callback_queues WHERE queue = ?", [(queue,) for queue in queues])
        execute_many(self._db, "DELETE FROM callbacks WHERE queue = ?", [(queue,) for queue in queues])
