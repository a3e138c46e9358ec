"""
Time as the system stores it: microseconds since the Unix epoch, UTC; and the port through which it is read.

Nothing here reads a clock: `system_clock.py` does. Code that decides leases and timers takes its time from the store's
transaction; the stores read a `Clock`, so a test that moves it moves the whole system.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NewType, Protocol

Instant = NewType("Instant", int)

_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> Instant: ...


def after(instant: Instant, delay: timedelta) -> Instant:
    return Instant(instant + delay // _MICROSECOND)


def seconds_between(earlier: Instant, later: Instant) -> float:
    return (later - earlier) / 1_000_000


def rfc3339(instant: Instant) -> str:
    """The form in which every interface shows a time, e.g. `2026-03-01T12:00:00.123456Z`."""
    seconds, microseconds = divmod(instant, 1_000_000)
    return f"{_to_the_second(seconds)}.{microseconds:06d}Z"


def parse_time(text: str) -> Instant:
    """The instant that an ISO 8601 time names; raises `ValueError`, with what is wrong, when it names none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as exc:
        raise ValueError(
            f"'{text[:40]}' is not a time in ISO 8601, such as 2026-12-24T08:00:00Z or 2026-12-24T09:00:00+01:00"
        ) from exc
    if time.tzinfo is None:
        raise ValueError(f"'{text[:40]}' has no time zone; add Z for UTC, or an offset such as +01:00")
    return Instant((time - _EPOCH) // _MICROSECOND)


# An answer shows many times, and most of them are of the same few seconds.
@lru_cache(maxsize=1_024)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
