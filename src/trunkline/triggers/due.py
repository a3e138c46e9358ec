"""
Which firings of a schedule are due, and which of them are made up for after downtime.

A firing is on time up to `ON_TIME` after it was due, and then it always starts. Later ones were missed while no
executor ran, and `catch_up` decides: `none` of them, the `last` one unless a firing is on time, or `all`. No missed
firing is older than the window.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from trunkline.clock import Instant, after
from trunkline.triggers.schedule import Schedule

# Longer than a restart takes.
ON_TIME = timedelta(minutes=1)


class MissedSpan(NamedTuple):
    """Firings that will not happen, by the first and the last scheduled instant."""

    first: Instant
    last: Instant


class DueFirings(NamedTuple):
    # The scheduled instants of those to start, oldest first.
    instants: list[Instant]
    missed: MissedSpan | None
    # The scheduled instant that comes after all of these; None: the schedule is over.
    following: Instant | None


def take_due(
    schedule: Schedule, trigger_id: str, expected: Instant, now: Instant, *, limit: int
) -> DueFirings:
    """`expected`: the scheduled instant that comes next. At most `limit` are taken at a time."""
    first = _first_to_start(schedule, trigger_id, expected, now)
    missed = None
    if first is None or first > expected:
        before = now if first is None else Instant(first - 1)
        missed = MissedSpan(expected, schedule.last(before) or expected)
    instants: list[Instant] = []
    following = first if first is not None else schedule.next(now)
    while following is not None and len(instants) < limit and schedule.due(trigger_id, following) <= now:
        instants.append(following)
        following = schedule.next(following)
    return DueFirings(instants, missed, following)


def _first_to_start(schedule: Schedule, trigger_id: str, expected: Instant, now: Instant) -> Instant | None:
    """The first one that is not missed, from `expected` on; None: the schedule has none."""
    on_time = after(now, -ON_TIME)
    if schedule.due(trigger_id, expected) >= on_time:
        return expected
    window = after(now, -schedule.window)
    if schedule.catch_up == "all":
        return expected if expected >= window else schedule.next(Instant(window - 1))
    # Each that was scheduled before this is late, whatever its jitter.
    late = schedule.last(after(on_time, -schedule.jitter)) or expected
    late = max(late, expected)
    first = schedule.next(late)
    while first is not None and schedule.due(trigger_id, first) < on_time:
        late, first = first, schedule.next(first)
    makes_up = schedule.catch_up == "last" and late >= window
    if makes_up and (first is None or schedule.due(trigger_id, first) > now):
        return late
    return first
