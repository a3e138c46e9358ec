"""What the groups of the port are built on: sessions and the time."""

from __future__ import annotations

from trunkline.clock import Instant
from trunkline.stores.postgres.database.clock import TransactionClock
from trunkline.stores.postgres.database.connection import ConnectionPool
from trunkline.stores.postgres.database.session import Column, Session, Value
from trunkline.stores.rows import Row


class PostgresReads:
    """A group of the store: reads what is committed."""

    def __init__(self, pool: ConnectionPool, clock: TransactionClock) -> None:
        self._pool = pool
        self._clock = clock

    async def _rows(self, sql: str, *values: Value | Column) -> list[Row]:
        async with self._pool.reader() as db:
            return await db.rows(sql, *values)

    async def _first(self, sql: str, *values: Value | Column) -> Row | None:
        async with self._pool.reader() as db:
            return await db.first(sql, *values)


class PostgresWrites:
    """A group of one transaction."""

    __slots__ = ("_db", "_now")

    def __init__(self, db: Session, now: Instant) -> None:
        self._db = db
        self._now = now
