from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("100ms", timedelta(milliseconds=100)),
        ("25s", timedelta(seconds=25)),
        ("1.5s", timedelta(seconds=1.5)),
        ("5m", timedelta(minutes=5)),
        ("1h", timedelta(hours=1)),
        ("2d", timedelta(days=2)),
        ("0s", timedelta(0)),
    ],
)
def test_a_number_and_a_unit_are_a_duration(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text", ["", "s", "5 s", "5w", "-5s", "1h30m", "PT5S", "1e3s", "५s", "5s\n", "9" * 50 + "s"]
)
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="use a number and a unit"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["5", "0.25", "30"])
def test_a_number_without_a_unit_is_refused_with_the_text_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}' has no unit; write {text}s"):
        parse_duration(text)


def test_a_duration_of_more_than_ten_years_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 3650d"):
        parse_duration("4000d")


@pytest.mark.parametrize(
    ("duration", "text"),
    [("60s", "1m"), ("90s", "90s"), ("48h", "2d"), ("1500ms", "1500ms"), ("0s", "0ms"), ("7200s", "2h")],
)
def test_the_largest_unit_that_fits_names_a_duration(duration: str, text: str) -> None:
    assert format_duration(parse_duration(duration)) == text


@given(st.integers(min_value=0, max_value=3650 * 24 * 3600 * 1000))
def test_a_formatted_duration_parses_to_itself(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration)) == duration
