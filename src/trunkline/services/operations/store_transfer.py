"""
Export and import: everything in one store is moved to another, through an archive.

Agents go without their secrets. Unfinished runs go on as after a crash: their tasks keep their owner and epoch, and
the process that starts on the new store reclaims them from that owner, which is gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

import msgspec

from trunkline.clock import Instant, rfc3339
from trunkline.errors import Conflict
from trunkline.ids import RunId
from trunkline.machine.state import FINAL_RUN_STATUSES
from trunkline.messages import AgentResult, BrokerRecord, CancelTask, Dispatch, OutgoingMessage, TaskKey
from trunkline.messages.codec import UnreadableMessage, decode_result, decode_task, read_task
from trunkline.services.operations.archive import check_archive, open_writer, read_archive
from trunkline.stores.base import QueuedTask, Store, Transaction
from trunkline.stores.port.transfer import (
    AGENTS,
    DISPATCHES,
    OUTBOX,
    RUNS,
    TABLES,
    TASKS,
    TableRow,
    TransferTable,
    Value,
)
from trunkline.stores.rows.messaging import unpack_messages

TakeResults: TypeAlias = Callable[[Transaction, Sequence[AgentResult]], Awaitable[None]]
# Called with a table and how many of its rows have gone by.
Progress: TypeAlias = Callable[[str, int], None]

# The owner of tasks that are stopped during an import; it is gone when a bridge starts.
_OWNER = "import"
_MAX_BATCH = 200
_FIRST_PAUSE = timedelta(seconds=30)
_LIVE = frozenset({"queued", "claimed", "remote"})


class StoreExport(msgspec.Struct, frozen=True):
    at: Instant
    counts: Mapping[str, int]


class StoreImport(msgspec.Struct, frozen=True):
    # When it was exported.
    at: Instant
    counts: Mapping[str, int]
    unfinished_runs: int
    # Their names: nothing is sent to them until their secrets are set again.
    agents_without_secret: list[str]


async def export_store(store: Store, path: Path, progress: Progress) -> StoreExport:
    """The store is for reading only afterwards; one that has been exported before can be exported again."""
    with open_writer(path) as archive:
        async with store.transaction() as tx:
            await tx.transfer.mark_exported()
            archive.begin(tx.now)
            for table in TABLES:
                done = 0
                async for batch in tx.transfer.dump(table):
                    archive.add(table, batch)
                    done += len(batch)
                    progress(table.name, done)
            # On the disk before the store says that it has been exported.
            return StoreExport(tx.now, archive.finish())


async def import_store(
    store: Store, path: Path, progress: Progress, *, hand_over: TakeResults | None = None
) -> StoreImport:
    """
    All of it or nothing, into a store that has nothing.

    `hand_over` takes results where tasks and results do not travel; otherwise unfinished tasks are sent again.
    """
    contents = check_archive(path)
    await _refuse_if_exported(store)
    async with store.transaction() as tx:
        await _refuse_unless_empty(tx)
        arrival = _RowImporter(tx, travels=hand_over is None)
        for table, rows in read_archive(path):
            await arrival.take(table, rows)
            progress(table.name, arrival.counts[table.name])
        if hand_over is not None:
            await _hand_over(tx, hand_over)
    return StoreImport(contents.at, contents.counts, len(arrival.unfinished), sorted(arrival.without_secret))


async def _refuse_if_exported(store: Store) -> None:
    export = await store.transfer.export_record()
    if export is not None:
        raise Conflict(
            f"This store was exported at {rfc3339(export.at)} and is now read-only.",
            fix="Import into a new data folder or database.",
        )


async def _refuse_unless_empty(tx: Transaction) -> None:
    for table in TABLES:
        async with aclosing(tx.transfer.dump(table)) as batches:
            async for _ in batches:
                raise Conflict(
                    f"This store already contains {table.name.replace('_', ' ')}. An import needs "
                    "an empty store.",
                    fix="Import into a new data folder or database.",
                )


class _RowImporter:
    """Rows as they come in, and what has to be done about those that were on their way."""

    def __init__(self, tx: Transaction, *, travels: bool) -> None:
        self._tx = tx
        self._travels = travels
        self.counts = dict.fromkeys((table.name for table in TABLES), 0)
        self.unfinished: set[str] = set()
        self.without_secret: list[str] = []

    async def take(self, table: TransferTable, rows: Sequence[TableRow]) -> None:
        self.counts[table.name] += len(rows)
        if table is RUNS:
            status, run = RUNS.place("status"), RUNS.place("id")
            self.unfinished.update(str(row[run]) for row in rows if row[status] not in FINAL_RUN_STATUSES)
        elif table is AGENTS:
            auth_type, name = AGENTS.place("auth_type"), AGENTS.place("name")
            self.without_secret += [str(row[name]) for row in rows if row[auth_type] != "none"]
        elif table is DISPATCHES:
            rows = self._due_at_once(rows)
        elif table is OUTBOX and not self._travels:
            await self._apply_stops(rows)
            return
        await self._tx.transfer.load(table, rows)
        if table is TASKS:
            await self._take_up([row for row in rows if row[TASKS.place("status")] in _LIVE])

    def _due_at_once(self, rows: Sequence[TableRow]) -> list[TableRow]:
        run, resend_at = DISPATCHES.place("run_id"), DISPATCHES.place("resend_at")
        return [[*row[:resend_at], 0, *row[resend_at + 1 :]] for row in rows if row[run] in self.unfinished]

    async def _take_up(self, live: Sequence[TableRow]) -> None:
        """Tasks that have not ended: their messages and the stops that were sent after them may be lost."""
        run, payload = TASKS.place("run_id"), TASKS.place("payload")
        await self._tx.tasks.stop(_OWNER, [_key(row) for row in live if row[run] not in self.unfinished])
        if self._travels:
            sent = [
                Dispatch(_key(row), RunId(str(row[run])), _bytes(row[payload]))
                for row in live
                if row[run] in self.unfinished
            ]
            await self._tx.dispatches.put(sent, _FIRST_PAUSE)

    async def _apply_stops(self, rows: Sequence[TableRow]) -> None:
        """Applies the messages that stop a task; all other messages of the outbox are known from other tables."""
        messages = [each for row in rows for each in unpack_messages(_bytes(row[OUTBOX.place("messages")]))]
        stops = [stop for message in messages if (stop := _stop_in(message)) is not None]
        await self._tx.tasks.stop(_OWNER, [TaskKey(stop.task_id, stop.attempt) for stop in stops])


def _key(row: TableRow) -> TaskKey:
    attempt = row[TASKS.place("attempt")]
    assert isinstance(attempt, int)  # noqa: S101 - the column's type
    return TaskKey(str(row[TASKS.place("task_id")]), attempt)


def _bytes(value: Value) -> bytes:
    assert isinstance(value, bytes)  # noqa: S101 - the column's type
    return value


def _stop_in(message: OutgoingMessage) -> CancelTask | None:
    record = BrokerRecord(
        topic=message.topic, partition=0, offset=0, key=None, value=message.value, headers=message.headers
    )
    try:
        read = read_task(record)
    except UnreadableMessage:
        # A result, or an event for others.
        return None
    return read if isinstance(read, CancelTask) else None


async def _hand_over(tx: Transaction, take_results: TakeResults) -> None:
    """Tasks that were sent reach the bridge here, and results that were kept for them the executor."""
    while due := await tx.dispatches.take_due(_MAX_BATCH, _FIRST_PAUSE):
        kept = await tx.tasks.put([QueuedTask(decode_task(each.payload), each.payload) for each in due])
        await take_results(tx, [decode_result(result) for result in kept])
        await tx.dispatches.settle({each.key for each in due})
