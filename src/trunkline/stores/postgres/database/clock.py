"""The time of a transaction: the database's, or that of a clock that a test controls."""

from __future__ import annotations

import time
from typing import TypeAlias

from trunkline.clock import Clock, Instant
from trunkline.stores.postgres.database.session import Session

# Two computers' clocks drift apart by far less than a millisecond in that time.
_READ_EVERY = 1.0
# A reading that was longer on its way says too little.
_QUICK = 0.05

_READ = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class ProvidedClock:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def now(self, db: Session) -> Instant:
        del db
        return self._clock.now()


class DatabaseClock:
    """
    Reads the database's clock once a second, and counts on from there.

    It counts by a clock that goes on while this computer sleeps. Its time may be late by as long as a reading takes,
    never early: a lease ends early, not late.
    """

    def __init__(self) -> None:
        self._read = Instant(0)
        self._read_at = 0.0
        self._fresh_until = 0.0

    async def now(self, db: Session) -> Instant:
        elapsed = _elapsed()
        if elapsed >= self._fresh_until:
            row = await db.first(_READ)
            assert row is not None  # noqa: S101 - a SELECT of one row
            self._read, self._read_at = Instant(row[0]), _elapsed()
            quick = self._read_at - elapsed < _QUICK
            self._fresh_until = self._read_at + _READ_EVERY if quick else 0.0
        return Instant(self._read + int((_elapsed() - self._read_at) * 1_000_000))


def _elapsed() -> float:
    return time.clock_gettime(_CLOCK)


# Linux alone has one that also counts while the computer sleeps.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

TransactionClock: TypeAlias = DatabaseClock | ProvidedClock
