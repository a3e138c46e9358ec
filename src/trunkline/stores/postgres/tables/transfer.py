"""Whole tables, for a move to another store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from trunkline.clock import Instant
from trunkline.errors import DataInUse, Unavailable
from trunkline.stores.port.transfer import STEPS, TABLES, Batches, Table, TableRow, Value
from trunkline.stores.postgres.database.session import Row, Session
from trunkline.stores.postgres.database.text_encoding import json_accepted, json_restored, restored

# Readers go on; whoever writes waits.
_LOCK = f"LOCK TABLE {', '.join(table.name for table in TABLES)} IN SHARE ROW EXCLUSIVE MODE"
_LIVING = "SELECT 1 FROM leases WHERE until > $1 LIMIT 1"
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

_FIX = "Stop every process of Trunkline that uses this database, then try again."


async def mark_moved(db: Session, now: Instant) -> None:
    if await db.first(_LIVING, now) is not None or not await _is_alone(db):
        raise DataInUse(f"Other processes of Trunkline use PostgreSQL at {db.place}.", fix=_FIX)
    try:
        await db.command(_LOCK)
    except Unavailable as exc:
        raise DataInUse(f"Others write while everything is to move: {exc.message}", fix=_FIX) from exc
    await db.execute("INSERT INTO moves(at) SELECT $1::bigint WHERE NOT EXISTS (SELECT 1 FROM moves)", now)


async def _is_alone(db: Session) -> bool:
    for _ in range(_LOOKS):
        if await db.first(_OTHER_PROCESSES) is None:
            return True
        await asyncio.sleep(_PAUSE_SECONDS)
        # A transaction goes on seeing the sessions that it saw first, unless it is told to look again.
        await db.command("SELECT pg_stat_clear_snapshot()")
    return False


async def dump(db: Session, table: Table) -> AsyncGenerator[list[TableRow]]:
    columns = ", ".join(_selected(table, column) for column in table.columns)
    # The steps of a run are in the order in which they were begun.
    order = "run_id, place" if table is STEPS else ", ".join(table.order)
    batches = Batches()
    async with aclosing(db.stream(f"SELECT {columns} FROM {table.name} ORDER BY {order}")) as rows:  # noqa: S608 - constants only
        async for row in rows:
            for batch in batches.add(_as_elsewhere(table, row)):
                yield batch
    for batch in batches.rest():
        yield batch


def _selected(table: Table, column: str) -> str:
    return f'"{column}"::text' if column in table.uuids | table.json else f'"{column}"'


def _as_elsewhere(table: Table, row: Row) -> TableRow:
    def value_of(column: str, value: Value) -> Value:
        if not isinstance(value, str):
            return value
        return json_restored(value) if column in table.json else restored(value)

    return [value_of(column, value) for column, value in zip(table.columns, row, strict=True)]


async def load(db: Session, table: Table, batch: Sequence[TableRow]) -> None:
    if not batch:
        return
    columns = ", ".join(f'"{column}"' for column in table.columns)
    places = ", ".join(f"${place}" for place in range(1, len(table.columns) + 1))
    insert = f"INSERT INTO {table.name}({columns}) VALUES ({places})"  # noqa: S608 - constants only
    await db.execute_many(insert, (_as_here(table, row) for row in batch))
    if table.is_numbered:
        number = table.place("id")
        highest = max(value for row in batch if isinstance(value := row[number], int))
        # What comes next is numbered after these.
        await db.rows("SELECT setval(pg_get_serial_sequence($1, 'id'), $2::bigint)", table.name, highest)


def _as_here(table: Table, row: TableRow) -> TableRow:
    if not table.json:
        return row
    return [
        json_accepted(value) if column in table.json and isinstance(value, str) else value
        for column, value in zip(table.columns, row, strict=True)
    ]
