"""Whole tables, for a move to another store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from trunkline.clock import Instant
from trunkline.errors import DataInUse, Unavailable
from trunkline.stores.port.transfer import (
    STEPS,
    TABLES,
    ExportRecord,
    RowBatches,
    TableRow,
    TransferTable,
    Value,
)
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.session import Session
from trunkline.stores.postgres.database.text_encoding import json_accepted, json_restored, restored
from trunkline.stores.rows import Row

# Readers go on; writers wait.
_LOCK = f"LOCK TABLE {', '.join(table.name for table in TABLES)} IN SHARE ROW EXCLUSIVE MODE"
_ANY_LEASE = "SELECT 1 FROM leases WHERE until > $1 LIMIT 1"
# The names of our sessions tell our processes apart.
_OTHER_PROCESSES = """
    SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'trunkline %'
        AND application_name <> current_setting('application_name')
    LIMIT 1
"""
# The sessions of a process that has just ended are still shown for a moment.
_LOOKS = 20
_PAUSE_SECONDS = 0.1

_FIX = "Stop every Trunkline process that uses this database, then try again."


class PostgresTransferReads(PostgresReads):
    async def export_record(self) -> ExportRecord | None:
        row = await self._first("SELECT at FROM moves ORDER BY at LIMIT 1")
        return None if row is None else ExportRecord(at=Instant(row[0]))


class PostgresTransferWrites(PostgresWrites):
    __slots__ = ("_write_held",)

    def __init__(self, db: Session, now: Instant, write_held: Callable[[], Awaitable[None]]) -> None:
        super().__init__(db, now)
        self._write_held = write_held

    async def mark_exported(self) -> None:
        db = self._db
        if await db.first(_ANY_LEASE, self._now) is not None or not await self._is_alone():
            raise DataInUse(f"Other Trunkline processes are using PostgreSQL at {db.place}.", fix=_FIX)
        try:
            await db.command(_LOCK)
        except Unavailable as exc:
            raise DataInUse(
                f"Another process writes to the database during the transfer: {exc.message}", fix=_FIX
            ) from exc
        await db.execute(
            "INSERT INTO moves(at) SELECT $1::bigint WHERE NOT EXISTS (SELECT 1 FROM moves)", self._now
        )

    async def _is_alone(self) -> bool:
        for _ in range(_LOOKS):
            if await self._db.first(_OTHER_PROCESSES) is None:
                return True
            await asyncio.sleep(_PAUSE_SECONDS)
            # A transaction goes on seeing the sessions that it saw first, unless the snapshot is cleared.
            await self._db.command("SELECT pg_stat_clear_snapshot()")
        return False

    async def dump(self, table: TransferTable) -> AsyncGenerator[list[TableRow]]:
        await self._write_held()
        columns = ", ".join(_selected(table, column) for column in table.columns)
        # The steps of a run are in the order in which they were begun.
        order = "run_id, place" if table is STEPS else ", ".join(table.order)
        batches = RowBatches()
        async with aclosing(self._db.stream(f"SELECT {columns} FROM {table.name} ORDER BY {order}")) as rows:  # noqa: S608 - constants only
            async for row in rows:
                for batch in batches.add(_as_elsewhere(table, row)):
                    yield batch
        for batch in batches.rest():
            yield batch

    async def load(self, table: TransferTable, rows: Sequence[TableRow]) -> None:
        if not rows:
            return
        columns = ", ".join(f'"{column}"' for column in table.columns)
        places = ", ".join(f"${place}" for place in range(1, len(table.columns) + 1))
        insert = f"INSERT INTO {table.name}({columns}) VALUES ({places})"  # noqa: S608 - constants only
        await self._db.execute_many(insert, (_as_here(table, row) for row in rows))
        if table.is_numbered:
            number = table.place(table.order[0])
            highest = max(value for row in rows if isinstance(value := row[number], int))
            # What comes next is numbered after these.
            set_number = "SELECT setval(pg_get_serial_sequence($1, $2), $3::bigint)"
            await self._db.rows(set_number, table.name, table.order[0], highest)


def _selected(table: TransferTable, column: str) -> str:
    return f'"{column}"::text' if column in table.uuids | table.json else f'"{column}"'


def _as_elsewhere(table: TransferTable, row: Row) -> TableRow:
    def value_of(column: str, value: Value) -> Value:
        if not isinstance(value, str):
            return value
        return json_restored(value) if column in table.json else restored(value)

    return [value_of(column, value) for column, value in zip(table.columns, row, strict=True)]


def _as_here(table: TransferTable, row: TableRow) -> TableRow:
    if not table.json:
        return row
    return [
        json_accepted(value) if column in table.json and isinstance(value, str) else value
        for column, value in zip(table.columns, row, strict=True)
    ]
