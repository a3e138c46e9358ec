"""
Time as the system stores it: microseconds since the Unix epoch, UTC.

Code that decides leases and timers takes its time from the store's transaction, never from here directly; the
stores read this clock, so a test that moves it moves the whole system.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import NewType, Protocol

Instant = NewType("Instant", int)

_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> Instant: ...


class SystemClock:
    def now(self) -> Instant:
        return Instant(time.time_ns() // 1_000)


def after(instant: Instant, delay: timedelta) -> Instant:
    return Instant(instant + delay // _MICROSECOND)


def seconds_between(earlier: Instant, later: Instant) -> float:
    return (later - earlier) / 1_000_000


def rfc3339(instant: Instant) -> str:
    """The form in which every door shows a time, e.g. `2026-03-01T12:00:00.123456Z`."""
    return datetime.fromtimestamp(instant / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
