"""Which firings of a schedule are due: on time, missed, or made up for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.clock import Instant, after
from trunkline.triggers import CatchUp, MissedSpan, Schedule, ScheduleDefinition, take_due
from trunkline.triggers.due import ON_TIME

START = Instant(1_767_225_600_000_000)
HOUR = timedelta(hours=1)


def at(hours: float) -> Instant:
    return after(START, hours * HOUR)


def hourly(catch_up: CatchUp = "last", window: timedelta = timedelta(days=1)) -> Schedule:
    return Schedule(ScheduleDefinition(every=HOUR, catch_up=catch_up, catch_up_window=window))


def test_a_firing_that_is_on_time_starts_whatever_is_made_up_for() -> None:
    for catch_up in ("none", "last", "all"):
        due = take_due(hourly(catch_up), "t", at(1), after(at(1), ON_TIME), limit=10)
        assert due == ([at(1)], None, at(2))


def test_nothing_fires_before_its_time() -> None:
    due = take_due(hourly(), "t", at(1), Instant(at(1) - 1), limit=10)
    assert due == ([], None, at(1))


def test_without_catch_up_what_was_missed_is_left_out() -> None:
    due = take_due(hourly("none"), "t", at(1), at(4.5), limit=10)
    assert due == ([], MissedSpan(at(1), at(4)), at(5))
    assert take_due(hourly("none"), "t", at(1), at(4), limit=10) == ([at(4)], MissedSpan(at(1), at(3)), at(5))


def test_the_last_one_is_made_up_for_unless_one_is_on_time() -> None:
    assert take_due(hourly(), "t", at(1), at(4.5), limit=10) == ([at(4)], MissedSpan(at(1), at(3)), at(5))
    assert take_due(hourly(), "t", at(1), at(1.5), limit=10) == ([at(1)], None, at(2))
    assert take_due(hourly(), "t", at(1), at(4), limit=10) == ([at(4)], MissedSpan(at(1), at(3)), at(5))


def test_all_are_made_up_for_as_many_at_a_time_as_are_taken() -> None:
    assert take_due(hourly("all"), "t", at(1), at(4.5), limit=3) == ([at(1), at(2), at(3)], None, at(4))
    assert take_due(hourly("all"), "t", at(4), at(4.5), limit=3) == ([at(4)], None, at(5))


@pytest.mark.parametrize(("catch_up", "started"), [("last", [at(9)]), ("all", [at(8), at(9)])])
def test_what_is_older_than_the_window_is_missed(catch_up: CatchUp, started: list[Instant]) -> None:
    due = take_due(hourly(catch_up, 2 * HOUR), "t", at(1), at(9.9), limit=10)
    assert due == (started, MissedSpan(at(1), Instant(started[0] - 3_600_000_000)), at(10))
    too_late = take_due(hourly("last", HOUR / 2), "t", at(1), at(9.9), limit=10)
    assert too_late == ([], MissedSpan(at(1), at(9)), at(10))


def test_a_schedule_that_is_over_has_nothing_more() -> None:
    schedule = Schedule(ScheduleDefinition(at=(at(1), at(2))))
    assert take_due(schedule, "t", at(1), at(2), limit=10) == ([at(2)], MissedSpan(at(1), at(1)), None)
    ended = Schedule(ScheduleDefinition(every=HOUR, end=at(3), catch_up="none"))
    assert take_due(ended, "t", at(1), at(9), limit=10) == ([], MissedSpan(at(1), at(2)), None)


def test_a_schedule_begins_at_its_start() -> None:
    schedule = Schedule(ScheduleDefinition(every=HOUR, start=at(2.25)))
    assert schedule.preview(at(0), 2) == [at(2.25), at(3.25)]


@given(st.integers(min_value=0, max_value=10**12), st.integers(min_value=0, max_value=3_600_000))
def test_jitter_delays_each_firing_by_the_same_time_everywhere(second: int, jitter_ms: int) -> None:
    jitter = timedelta(milliseconds=jitter_ms)
    schedule = Schedule(ScheduleDefinition(every=HOUR, jitter=jitter))
    scheduled = Instant(second)
    due = schedule.due("t", scheduled)
    assert scheduled <= due <= after(scheduled, jitter)
    assert due == Schedule(ScheduleDefinition(every=HOUR, jitter=jitter)).due("t", scheduled)


def test_jitter_spreads_the_firings_of_several_triggers() -> None:
    schedule = Schedule(ScheduleDefinition(every=HOUR, jitter=HOUR / 2))
    assert len({schedule.due(f"trigger-{number}", START) for number in range(50)}) == 50


@given(
    st.lists(st.integers(min_value=1, max_value=40_000), min_size=1, max_size=30),
    st.sampled_from([timedelta(minutes=7), timedelta(hours=1), timedelta(hours=5)]),
    st.sampled_from([timedelta(0), timedelta(minutes=20)]),
    st.integers(min_value=1, max_value=50),
)
def test_whenever_it_is_looked_at_each_instant_is_taken_once(
    pauses: list[int], every: timedelta, jitter: timedelta, limit: int
) -> None:
    schedule = Schedule(
        ScheduleDefinition(every=every, jitter=jitter, catch_up="all", catch_up_window=timedelta(days=30))
    )
    now, expected, taken = START, schedule.next(START), list[Instant]()
    for pause in pauses:
        now = after(now, timedelta(seconds=pause))
        while True:
            assert expected is not None
            due = take_due(schedule, "t", expected, now, limit=limit)
            assert due.missed is None
            taken += due.instants
            expected = due.following
            if len(due.instants) < limit:
                break
    wanted = schedule.preview(START, len(taken) + 1)
    assert taken == wanted[:-1]
    assert schedule.due("t", wanted[-1]) > now
