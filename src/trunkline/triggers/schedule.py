"""
Schedules: the instants at which a trigger fires, and how late after each.

A schedule is a function of its definition alone. So every executor, and every restart, finds the same instants.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, timedelta, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo

from trunkline.clock import Instant, after
from trunkline.triggers.cron import CronOccurrences
from trunkline.triggers.definition import CatchUp, Overlap, ScheduleDefinition

_MICROSECOND = timedelta(microseconds=1)


class Occurrences(Protocol):
    def next(self, after: Instant) -> Instant | None:
        """The first one later than `after`."""
        ...

    def last(self, until: Instant) -> Instant | None:
        """The last one at `until` or before."""
        ...


class IntervalOccurrences:
    """Every so often, counted from `anchor`."""

    def __init__(self, every: timedelta, anchor: Instant) -> None:
        self._every = every // _MICROSECOND
        self._anchor = anchor

    def next(self, after: Instant) -> Instant | None:
        return Instant(self._anchor + ((after - self._anchor) // self._every + 1) * self._every)

    def last(self, until: Instant) -> Instant | None:
        return Instant(self._anchor + (until - self._anchor) // self._every * self._every)


class ListedOccurrences:
    def __init__(self, times: Sequence[Instant]) -> None:
        self._times = times

    def next(self, after: Instant) -> Instant | None:
        place = bisect_right(self._times, after)
        return self._times[place] if place < len(self._times) else None

    def last(self, until: Instant) -> Instant | None:
        place = bisect_right(self._times, until)
        return self._times[place - 1] if place else None


class Schedule:
    def __init__(self, definition: ScheduleDefinition) -> None:
        self._start = definition.start
        self._end = definition.end
        self._occurrences = _occurrences(definition)
        self.jitter = definition.jitter
        self.overlap: Overlap = definition.overlap
        self.catch_up: CatchUp = definition.catch_up
        self.window = definition.catch_up_window

    def next(self, later_than: Instant) -> Instant | None:
        """The first scheduled instant later than that; None: there is none."""
        if self._start is not None and later_than < self._start:
            later_than = Instant(self._start - 1)
        found = self._occurrences.next(later_than)
        return None if found is None or (self._end is not None and found >= self._end) else found

    def last(self, until: Instant) -> Instant | None:
        """The last scheduled instant at `until` or before."""
        if self._end is not None and until >= self._end:
            until = Instant(self._end - 1)
        found = self._occurrences.last(until)
        return None if found is None or (self._start is not None and found < self._start) else found

    def due(self, trigger_id: str, scheduled: Instant) -> Instant:
        """When it fires: at the scheduled instant, or up to `jitter` later, the same on every process."""
        if not self.jitter:
            return scheduled
        digest = hashlib.sha256(f"{trigger_id}/{scheduled}".encode()).digest()
        share = int.from_bytes(digest[:8], "big") / 2**64
        return after(scheduled, self.jitter * share)

    def preview(self, since: Instant, count: int) -> list[Instant]:
        """The next `count` scheduled instants later than `since`."""
        found: list[Instant] = []
        while len(found) < count:
            following = self.next(found[-1] if found else since)
            if following is None:
                break
            found.append(following)
        return found


def zone_of(name: str) -> tzinfo:
    """Raises `ValueError` for a time zone that does not exist."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError) as exc:
        # OSError: the name of a folder of the database.
        raise ValueError(name) from exc


def _occurrences(definition: ScheduleDefinition) -> Occurrences:
    if definition.cron is not None:
        return CronOccurrences(definition.cron, zone_of(definition.timezone))
    if definition.every is not None:
        return IntervalOccurrences(definition.every, definition.start or Instant(0))
    return ListedOccurrences(definition.at or ())
