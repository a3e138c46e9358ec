"""Cron expressions: which instants they name, also where the clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.clock import Instant, rfc3339
from trunkline.triggers.cron import CronError, CronOccurrences, check_cron

BERLIN = ZoneInfo("Europe/Berlin")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")
ZONES = (UTC, BERLIN, LORD_HOWE, ZoneInfo("America/New_York"), ZoneInfo("Asia/Kathmandu"))
EXPRESSIONS = (
    "* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "*/15 2 * * *", "0 */2 * * *", "0 9 * * MON-FRI",
    "0 0 L * *", "59 23 * * FRI#2", "0 12 * * 5L", "15 30 2 * * *", "*/20 * * * * *", "0 0 1 JAN *", "5 1-3 * * SUN",
)  # fmt: skip


def instant(text: str) -> Instant:
    return Instant(int(datetime.fromisoformat(text).timestamp()) * 1_000_000)


def following(expression: str, zone: object, since: str, count: int) -> list[str]:
    occurrences = CronOccurrences(expression, zone)  # pyright: ignore[reportArgumentType] - a tzinfo
    found = [occurrences.next(instant(since))]
    while len(found) < count and found[-1] is not None:
        found.append(occurrences.next(found[-1]))
    return [rfc3339(each)[:19] for each in found if each is not None]


def test_five_fields_name_minutes_and_six_name_seconds() -> None:
    assert following("*/20 9 * * *", UTC, "2026-01-01T09:20:00Z", 2) == [
        "2026-01-01T09:40:00",
        "2026-01-02T09:00:00",
    ]
    assert following("*/20 0 9 * * *", UTC, "2026-01-01T09:00:20Z", 2) == [
        "2026-01-01T09:00:40",
        "2026-01-02T09:00:00",
    ]


def test_names_the_last_day_and_the_second_friday_are_understood() -> None:
    assert following("0 0 L FEB *", UTC, "2026-01-01T00:00:00Z", 1) == ["2026-02-28T00:00:00"]
    assert following("0 12 * * FRI#2", UTC, "2026-01-01T00:00:00Z", 2) == [
        "2026-01-09T12:00:00",
        "2026-02-13T12:00:00",
    ]
    assert following("0 12 * * 5L", UTC, "2026-01-01T00:00:00Z", 1) == ["2026-01-30T12:00:00"]


def test_a_time_that_the_clocks_skip_fires_once_when_they_have_been_set_forward() -> None:
    assert following("30 2 * * *", BERLIN, "2026-03-28T00:00:00Z", 3) == [
        "2026-03-28T01:30:00",
        "2026-03-29T01:00:00",
        "2026-03-30T00:30:00",
    ]
    # Four times of day, one moment.
    assert following("*/15 2 * * *", BERLIN, "2026-03-28T12:00:00Z", 2) == [
        "2026-03-29T01:00:00",
        "2026-03-30T00:00:00",
    ]
    assert following("7 15 2 * * *", LORD_HOWE, "2026-10-03T00:00:00Z", 1) == ["2026-10-03T15:30:00"]


def test_a_time_that_the_clocks_show_twice_fires_once() -> None:
    assert following("30 2 * * *", BERLIN, "2026-10-24T12:00:00Z", 2) == [
        "2026-10-25T00:30:00",
        "2026-10-26T01:30:00",
    ]
    assert following("0 */2 * * *", BERLIN, "2026-10-24T22:00:00Z", 3) == [
        "2026-10-25T00:00:00",
        "2026-10-25T03:00:00",
        "2026-10-25T05:00:00",
    ]


def test_an_hourly_expression_fires_in_each_hour_that_passes() -> None:
    hours = following("0 * * * *", BERLIN, "2026-03-28T23:30:00Z", 4)
    assert hours == [f"2026-03-29T0{hour}:00:00" for hour in range(4)]
    hours = following("0 * * * *", BERLIN, "2026-10-24T23:30:00Z", 4)
    assert hours == [f"2026-10-25T0{hour}:00:00" for hour in range(4)]


@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(ZONES),
    st.integers(min_value=1_760_000_000, max_value=1_800_000_000),
)
def test_the_way_back_meets_the_way_forward(expression: str, zone: object, second: int) -> None:
    occurrences = CronOccurrences(expression, zone)  # pyright: ignore[reportArgumentType] - a tzinfo
    now = Instant(second * 1_000_000)
    after = occurrences.next(now)
    assert after is not None
    assert after > now
    assert occurrences.last(after) == after
    before = occurrences.last(now)
    assert before is not None
    assert before <= now
    assert occurrences.next(before) == after


@pytest.mark.parametrize("zone", [zone for zone in ZONES if zone is not UTC], ids=str)
@pytest.mark.parametrize("hour", range(4))
def test_a_time_of_day_fires_once_on_each_day_of_a_year(zone: ZoneInfo, hour: int) -> None:
    occurrences = CronOccurrences(f"15 {hour} * * *", zone)
    day = datetime(2026, 1, 1, tzinfo=zone)
    found = Instant(int(day.timestamp()) * 1_000_000 - 1)
    days: list[str] = []
    for _ in range(365):
        following_one = occurrences.next(found)
        assert following_one is not None
        found = following_one
        days.append(datetime.fromtimestamp(found / 1_000_000, zone).date().isoformat())
    assert days == [(day + timedelta(days=number)).date().isoformat() for number in range(365)]


@pytest.mark.parametrize(
    ("expression", "column", "message"),
    [
        ("61 * * * *", 1, "'61' is not a valid minute"),
        ("0 24 * * *", 3, "'24' is not a valid hour"),
        ("0  0 32 * *", 6, "'32' is not a valid day-of-month"),
        ("0 0 * FOO *", 7, "'FOO' is not a valid month"),
        ("0 0 * * 1#6", 9, "'1#6' is not a valid day-of-week"),
        ("60 0 0 * * *", 1, "'60' is not a valid second"),
        ("0 0 * *", 1, "this one has 4"),
        ("0 " * 150, 1, "at most 200 characters"),
        ("", 1, "this one has 0"),
    ],
)
def test_a_wrong_expression_is_refused_with_its_place(expression: str, column: int, message: str) -> None:
    with pytest.raises(CronError, match=message) as refused:
        check_cron(expression)
    assert refused.value.column == column


@given(st.text(alphabet="0123456789*/,-#LW MONFRIJAN²", max_size=60))
def test_no_text_does_more_harm_than_to_be_refused(expression: str) -> None:
    try:
        check_cron(expression)
    except CronError:
        return
    occurrences = CronOccurrences(expression, BERLIN)
    found = occurrences.next(instant("2026-01-01T00:00:00Z"))
    assert found is None or found > instant("2026-01-01T00:00:00Z")
