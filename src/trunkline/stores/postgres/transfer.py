"""Whole tables, for a move to another store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from trunkline.clock import Instant
from trunkline.errors import DataInUse, Unavailable
from trunkline.stores.postgres.agents import from_jsonb, to_jsonb
from trunkline.stores.postgres.driver import Row, Session
from trunkline.stores.postgres.texts import restored
from trunkline.stores.tables import STEPS, TABLES, Batches, Table, TableRow, Value

# A row may be as long as the longest answer of an agent.
_ROWS_AT_ONCE = 25

# Readers go on, whoever writes waits.
_LOCK = f"LOCK TABLE {', '.join(table.name for table in TABLES)} IN SHARE ROW EXCLUSIVE MODE"
_LIVING = "SELECT owner FROM leases WHERE until > $1 LIMIT 1"
_OTHER_SESSIONS = """
    SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = current_setting('application_name')
        AND pid <> pg_backend_pid()
    LIMIT 1
"""
# The session of a process that has just ended is still shown for a moment.
_LOOKS = 20
_PAUSE_SECONDS = 0.1

_FIX = "Stop every process of Trunkline that uses this database, then try again."


async def mark_moved(db: Session, now: Instant) -> None:
    if await db.first(_LIVING, now) is not None or not await _is_alone(db):
        raise DataInUse(f"Other processes of Trunkline use PostgreSQL at {db.place}.", fix=_FIX)
    try:
        await db.command(_LOCK)
    except Unavailable as exc:
        raise DataInUse(f"Somebody writes to PostgreSQL at {db.place}: {exc.message}", fix=_FIX) from exc
    await db.execute("INSERT INTO moves(at) SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM moves)", now)


async def _is_alone(db: Session) -> bool:
    for _ in range(_LOOKS):
        if await db.first(_OTHER_SESSIONS) is None:
            return True
        # What a transaction sees of other sessions stays as it was when it looked first.
        await db.command("SELECT pg_stat_clear_snapshot()")
        await asyncio.sleep(_PAUSE_SECONDS)
    return False


async def dump(db: Session, table: Table) -> AsyncGenerator[list[TableRow]]:
    batches = Batches()
    async with _cursor(db, table) as cursor:
        while rows := await db.rows(f"FETCH {_ROWS_AT_ONCE} FROM {cursor}"):
            for row in rows:
                for batch in batches.add(_written(table, row)):
                    yield batch
    for batch in batches.rest():
        yield batch


@asynccontextmanager
async def _cursor(db: Session, table: Table) -> AsyncGenerator[str]:
    # A name for each table: the driver keeps the statement that fetches, with the types of its columns.
    name = f"moving_{table.name}"
    columns = ", ".join(_selected(table, column) for column in table.columns)
    # The steps of a run are in the order in which they were begun.
    order = "run_id, place" if table is STEPS else ", ".join(table.order)
    await db.command(
        f"DECLARE {name} NO SCROLL CURSOR FOR SELECT {columns} FROM {table.name} ORDER BY {order}"  # noqa: S608 - constants only
    )
    try:
        yield name
    finally:
        await db.command(f"CLOSE {name}")


def _selected(table: Table, column: str) -> str:
    return f'"{column}"::text' if column in table.uuids | table.json else f'"{column}"'


def _written(table: Table, row: Row) -> TableRow:
    return [_as_elsewhere(table, column, value) for column, value in zip(table.columns, row, strict=True)]


def _as_elsewhere(table: Table, column: str, value: Value) -> Value:
    if not isinstance(value, str):
        return value
    return from_jsonb(value) if column in table.json else restored(value)


async def load(db: Session, table: Table, batch: Sequence[TableRow]) -> None:
    if not batch:
        return
    json = [table.place(column) for column in table.json]
    rows = [_as_here(row, json) for row in batch] if json else batch
    await db.copy(table.name, table.columns, rows)
    if table.is_numbered:
        place = table.place("id")
        highest = max(number for row in batch if isinstance(number := row[place], int))
        # The next row that the database numbers comes after these.
        await db.rows("SELECT setval(pg_get_serial_sequence($1, 'id'), $2)", table.name, highest)


def _as_here(row: TableRow, json: Sequence[int]) -> TableRow:
    values = list(row)
    for place in json:
        text = values[place]
        values[place] = to_jsonb(text) if isinstance(text, str) else None
    return values
