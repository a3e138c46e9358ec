"""Whole tables, for a move to another store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import apsw

from trunkline.clock import Instant
from trunkline.stores.port.transfer import TASKS, ExportRecord, RowBatches, TableRow, TransferTable
from trunkline.stores.sqlite.cache import NOT_KNOWN, CacheChanges
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import execute, execute_many, first, rows

# Tombstones once had no run; a task's id begins with its run's id and a slash.
_RUN_OF_TASK = "iif(run_id = '', substr(task_id, 1, instr(task_id, '/') - 1), run_id)"


class SqliteTransferReads(SqliteReads):
    async def export_record(self) -> ExportRecord | None:
        row = first(self._db, "SELECT at FROM moves ORDER BY at LIMIT 1")
        return None if row is None else ExportRecord(at=Instant(row[0]))


class SqliteTransferWrites(SqliteWrites):
    __slots__ = ("_changes", "_write_held")

    def __init__(
        self,
        db: apsw.Connection,
        now: Instant,
        changes: CacheChanges,
        write_held: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(db, now)
        self._changes = changes
        self._write_held = write_held

    async def mark_exported(self) -> None:
        # The lock on the file keeps other processes out.
        execute(
            self._db, "INSERT INTO moves(at) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM moves)", (self._now,)
        )

    async def dump(self, table: TransferTable) -> AsyncGenerator[list[TableRow]]:
        await self._write_held()
        columns = ", ".join(_selected(table, column) for column in table.columns)
        batches = RowBatches()
        # As they were written: the steps of a run are in the order in which they were begun.
        for row in rows(self._db, f"SELECT {columns} FROM {table.name} ORDER BY rowid"):  # noqa: S608 - constants only
            for batch in batches.add(row):
                yield batch
        for batch in batches.rest():
            yield batch

    async def load(self, table: TransferTable, rows: Sequence[TableRow]) -> None:
        self._changes.deletions = self._changes.workflows = True
        self._changes.no_poll_before = NOT_KNOWN
        columns = ", ".join(f'"{column}"' for column in table.columns)
        places = ", ".join("?" for _ in table.columns)
        execute_many(self._db, f"INSERT INTO {table.name}({columns}) VALUES ({places})", rows)  # noqa: S608 - constants only


def _selected(table: TransferTable, column: str) -> str:
    return _RUN_OF_TASK if table is TASKS and column == "run_id" else f'"{column}"'
