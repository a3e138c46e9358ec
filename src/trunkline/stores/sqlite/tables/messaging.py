"""The outbox, tasks that are sent again until their results have come, dead letters, and recorded exchanges."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

import apsw

from trunkline.clock import Instant, after
from trunkline.ids import RunId
from trunkline.messages import Dispatch, OutgoingMessage, TaskKey
from trunkline.stores.payloads import joined, pieces_in, split_rows
from trunkline.stores.port.messaging import DeadLetter, ExchangeRecord, OutboxBatch
from trunkline.stores.rows.messaging import (
    DISPATCH_PAYLOADS,
    dead_letter,
    dead_letter_values,
    dispatch_values,
    microseconds,
    pack_messages,
    unpack_messages,
)
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.payloads import SqlitePayloads
from trunkline.stores.sqlite.database.statements import (
    Value,
    changes_of_many,
    execute,
    execute_many,
    first,
    query_many,
    rows,
    run_statements,
)
from trunkline.stores.sqlite.tables.deferred_tasks import DeferredTasks
from trunkline.stores.sqlite.tables.run_lists import UNFINISHED
from trunkline.stores.sqlite.tables.tasks import key_values

_PUT_DISPATCH = """
    INSERT INTO dispatches(task_id, attempt, run_id, payload, pause, resend_at)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(task_id, attempt) DO NOTHING
"""
_DUE = f"""
    SELECT task_id, attempt, run_id, payload, pause,
        EXISTS (SELECT 1 FROM runs WHERE runs.id = dispatches.run_id AND runs.status IN ({UNFINISHED}))
    FROM dispatches WHERE resend_at <= ? ORDER BY resend_at LIMIT ?
"""  # noqa: S608 - constants only
_DELETE_DISPATCH = "DELETE FROM dispatches WHERE task_id = ? AND attempt = ?"
_LETTER = 'id, topic, partition, "offset", key, value, headers, reason, at'
_LETTERS = f"SELECT {_LETTER} FROM dead_letters"  # noqa: S608 - constants of this module
_PUT_LETTER = f"""
    INSERT INTO dead_letters(origin, {_LETTER}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT(origin) DO NOTHING
"""  # noqa: S608 - as above
_EXCHANGES = """
    SELECT id, record FROM exchanges WHERE run_id = ?1 AND id > ?2 AND (?3 IS NULL OR step = ?3)
        AND (?4 IS NULL OR attempt = ?4) ORDER BY id LIMIT ?5
"""


class SqliteOutboxWrites(SqliteWrites):
    __slots__ = ("_first_row",)

    def __init__(self, db: apsw.Connection, now: Instant) -> None:
        super().__init__(db, now)
        # From there on all rows are this transaction's own.
        self._first_row: int | None = None

    async def put(self, messages: Sequence[OutgoingMessage]) -> None:
        if messages:
            execute(self._db, "INSERT INTO outbox(messages) VALUES (?)", (pack_messages(messages),))
            self._first_row = self._first_row or self._db.last_insert_rowid()

    async def reserve(self, lasts: timedelta) -> OutboxBatch:
        if self._first_row is None:
            return OutboxBatch()
        own = (self._first_row,)
        found = list(rows(self._db, "SELECT id, messages FROM outbox WHERE id >= ? ORDER BY id", own))
        until = after(self._now, lasts)
        execute(self._db, "UPDATE outbox SET reserved_until = ? WHERE id >= ?", (until, *own))
        return OutboxBatch(
            rows=[row for row, _ in found],
            messages=[message for _, packed in found for message in unpack_messages(packed)],
        )

    async def delete(self, rows: Collection[int]) -> None:
        execute_many(self._db, "DELETE FROM outbox WHERE id = ?", [(row,) for row in rows])

    async def take(self, limit: int) -> list[OutgoingMessage]:
        taken: list[OutgoingMessage] = []
        # Row by row: how many messages the next one has, and how long they are, is not known before.
        while len(taken) < limit:
            row = first(
                self._db,
                "SELECT id, messages FROM outbox WHERE reserved_until <= ? ORDER BY id LIMIT 1",
                (self._now,),
            )
            if row is None:
                break
            execute(self._db, "DELETE FROM outbox WHERE id = ?", (row[0],))
            taken += unpack_messages(row[1])
        return taken


class SqliteDispatchWrites(SqliteWrites):
    __slots__ = ("_deferred_tasks", "_payloads")

    def __init__(
        self, db: apsw.Connection, now: Instant, deferred_tasks: DeferredTasks, payloads: SqlitePayloads
    ) -> None:
        super().__init__(db, now)
        self._deferred_tasks = deferred_tasks
        self._payloads = payloads

    async def put(self, dispatches: Sequence[Dispatch], resend_after: timedelta) -> None:
        pause, due = microseconds(resend_after), after(self._now, resend_after)
        values = [dispatch_values(each, pause, due) for each in dispatches]
        await run_statements(lambda: self._put(values), sum(len(each.payload) for each in dispatches))

    def _put(self, values: Sequence[tuple[Value, ...]]) -> None:
        stored, pieces = split_rows(values, DISPATCH_PAYLOADS)
        written = changes_of_many(self._db, _PUT_DISPATCH, stored)
        for number in pieces:
            if written[number]:
                self._payloads.put(str(stored[number][2]), pieces[number])

    async def take_due(self, limit: int, longest: timedelta) -> list[Dispatch]:
        most = microseconds(longest)
        due: list[Dispatch] = []
        later: list[tuple[int, int, str, int]] = []
        forgotten: list[tuple[str, int]] = []
        found = list(rows(self._db, _DUE, (self._now, limit)))
        bodies = await self._payloads.read(pieces_in(payload for _, _, _, payload, *_ in found))
        for task_id, attempt, run_id, payload, pause, goes_on in found:
            if goes_on:
                due.append(Dispatch(TaskKey(task_id, attempt), run_id, joined(payload, bodies)))
                longer = min(2 * pause, most)
                later.append((longer, self._now + longer, task_id, attempt))
            else:
                forgotten.append((task_id, attempt))
        execute_many(
            self._db,
            "UPDATE dispatches SET pause = ?, resend_at = ? WHERE task_id = ? AND attempt = ?",
            later,
        )
        execute_many(self._db, _DELETE_DISPATCH, forgotten)
        return due

    async def settle(self, keys: Collection[TaskKey]) -> None:
        self._deferred_tasks.write()
        execute_many(self._db, _DELETE_DISPATCH, key_values(keys))
        execute_many(
            self._db, "UPDATE tasks SET result = NULL WHERE task_id = ? AND attempt = ?", key_values(keys)
        )

    async def payloads(self, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
        found = list(
            query_many(
                self._db,
                "SELECT task_id, attempt, payload FROM dispatches WHERE task_id = ? AND attempt = ?",
                key_values(keys),
            )
        )
        bodies = await self._payloads.read(pieces_in(payload for _, _, payload in found))
        return {TaskKey(task_id, attempt): joined(payload, bodies) for task_id, attempt, payload in found}


class SqliteDeadLetterReads(SqliteReads):
    async def get(self, letter_id: str) -> DeadLetter | None:
        row = first(self._db, f"{_LETTERS} WHERE id = ?", (letter_id,))
        return None if row is None else dead_letter(row)

    async def page(self, *, limit: int, before: str | None = None) -> list[DeadLetter]:
        page = rows(
            self._db, f"{_LETTERS} WHERE ?1 IS NULL OR id < ?1 ORDER BY id DESC LIMIT ?2", (before, limit)
        )
        return [dead_letter(row) for row in page]


class SqliteDeadLetterWrites(SqliteWrites):
    __slots__ = ()

    async def put(self, letters: Sequence[DeadLetter]) -> None:
        execute_many(self._db, _PUT_LETTER, [dead_letter_values(letter) for letter in letters])

    async def count(self, limit: int) -> int:
        sql = "SELECT count(*) FROM (SELECT 1 FROM dead_letters LIMIT ?)"
        row = first(self._db, sql, (limit,))
        return 0 if row is None else row[0]

    async def take(self, letter_id: str) -> DeadLetter | None:
        row = first(self._db, f"DELETE FROM dead_letters WHERE id = ? RETURNING {_LETTER}", (letter_id,))  # noqa: S608 - as above
        return None if row is None else dead_letter(row)


class SqliteExchangeReads(SqliteReads):
    async def page(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None, attempt: int | None = None
    ) -> list[tuple[int, bytes]]:
        page = rows(self._db, _EXCHANGES, (run_id, after, step, attempt, limit))
        return [(row_id, record) for row_id, record in page]


class SqliteExchangeWrites(SqliteWrites):
    __slots__ = ()

    async def put(self, exchanges: Sequence[ExchangeRecord]) -> None:
        execute_many(
            self._db,
            "INSERT INTO exchanges(run_id, step, attempt, record) VALUES (?, ?, ?, ?)",
            ((each.run_id, each.step, each.attempt, each.record) for each in exchanges),
        )
