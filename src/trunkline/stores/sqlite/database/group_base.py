"""What the groups of the port are built on: a connection and the time."""

from __future__ import annotations

import apsw

from trunkline.clock import Clock, Instant


class SqliteReads:
    """A group of the store: reads what is committed."""

    __slots__ = ("_clock", "_db")

    def __init__(self, db: apsw.Connection, clock: Clock) -> None:
        self._db = db
        self._clock = clock


class SqliteWrites:
    """A group of one transaction."""

    __slots__ = ("_db", "_now")

    def __init__(self, db: apsw.Connection, now: Instant) -> None:
        self._db = db
        self._now = now
