"""Durations as people write them (`100ms`, `25s`, `5m`, `1h`, `2d`), and back."""

from __future__ import annotations

import re
from datetime import timedelta

DURATION_PATTERN = r"^[0-9]{1,12}(\.[0-9]{1,3})?(ms|s|m|h|d)$"

# Ten years: longer is a mistake, and instants in microseconds must not overflow.
MAX_DURATION = timedelta(days=3650)

_MILLISECOND = timedelta(milliseconds=1)
_UNITS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": _MILLISECOND,
}
_FORM = re.compile(DURATION_PATTERN)
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,3})?")


def parse_duration(text: str) -> timedelta:
    """The duration that a text names; raises `ValueError`, with what is wrong, when it names none."""
    match = _FORM.fullmatch(text)
    if match is None:
        if _NUMBER.fullmatch(text):
            raise ValueError(f"'{text}' has no unit; write {text}s for seconds")
        raise ValueError(
            f"'{text[:40]}' is not a duration; use a number and a unit, such as 100ms, 25s, 5m, 1h or 2d"
        )
    unit = match.group(2)
    milliseconds = float(text[: -len(unit)]) * (_UNITS[unit] / _MILLISECOND)
    if milliseconds > MAX_DURATION / _MILLISECOND:
        raise ValueError(f"'{text}' is longer than {format_duration(MAX_DURATION)}, the maximum duration")
    return timedelta(milliseconds=round(milliseconds))


def seconds_of(duration: timedelta | float) -> float:
    """For parameters of the public Python interface that accept seconds as well."""
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)


def format_duration(duration: timedelta) -> str:
    """The shortest text that names a duration exactly, to the millisecond."""
    for unit, size in _UNITS.items():
        if duration % size == timedelta(0) and duration:
            return f"{duration // size}{unit}"
    return f"{round(duration / _MILLISECOND)}ms"
