"""Reads the keys of one mapping of a workflow, each as what it has to be, and reports what is not."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import TypeVar

from msgspec import UNSET, UnsetType

from trunkline.durations import parse_duration
from trunkline.jsontypes import Json
from trunkline.workflow.document.locations import Path
from trunkline.workflow.validation_report import ValidationReport

_Choice = TypeVar("_Choice", bound=str)


class FieldReader:
    """A key that is left out is None to every reader; a key that is wrong is reported, and then None too."""

    def __init__(
        self, value: dict[str, Json], path: Path, known: Collection[str], report: ValidationReport
    ) -> None:
        self.path = path
        self._value = value
        self._report = report
        for key in value:
            if key not in known:
                hint = report.hint(key, known) or f"; known keys are {', '.join(known)}"
                report.error((*path, key), f"unknown key '{key}'{hint}", on_key=True)

    def error(self, key: str, message: str) -> None:
        self._report.error((*self.path, key), message)

    def __contains__(self, key: str) -> bool:
        return key in self._value

    def any(self, key: str) -> Json | UnsetType:
        return self._value.get(key, UNSET)

    def text(self, key: str, most: int) -> str | None:
        value = self._value.get(key)
        if value is None and key not in self._value:
            return None
        if not isinstance(value, str) or not 1 <= len(value) <= most:
            self.error(key, f"'{key}' must be a string of 1 to {most:,} characters, {describe_value(value)}")
            return None
        return value

    def required_text(self, key: str, most: int, example: str) -> str | None:
        if key not in self._value:
            self._report.error(self.path, f"'{key}' is missing; add it, such as {key}: {example}")
        return self.text(key, most)

    def choice(self, key: str, options: tuple[_Choice, ...], default: _Choice) -> _Choice:
        value = self._value.get(key)
        if key not in self._value:
            return default
        for option in options:
            if value == option:
                return option
        hint = self._report.hint(value, options) if isinstance(value, str) else ""
        self.error(key, f"'{key}' must be {_either(options)}, {describe_value(value)}{hint}")
        return default

    def duration(self, key: str, *, positive: bool) -> timedelta | None:
        value = self._value.get(key)
        if key not in self._value:
            return None
        if not isinstance(value, str):
            unit = f"; use {value}s or {value}ms" if isinstance(value, int) else ""
            self.error(
                key,
                f"'{key}' must be a duration such as 100ms, 25s, 5m, 1h or 2d, {describe_value(value)}{unit}",
            )
            return None
        try:
            duration = parse_duration(value)
        except ValueError as exc:
            self.error(key, str(exc))
            return None
        if positive and not duration:
            self.error(key, f"'{key}' must be greater than zero; leave it out for no limit")
            return None
        return duration

    def integer(self, key: str, least: int, most: int) -> int | None:
        value = self._value.get(key)
        if key not in self._value:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.error(
                key, f"'{key}' must be a whole number from {least:,} to {most:,}, {describe_value(value)}"
            )
            return None
        return value

    def boolean(self, key: str) -> bool | None:
        value = self._value.get(key)
        if key not in self._value:
            return None
        if not isinstance(value, bool):
            self.error(key, f"'{key}' must be true or false, {describe_value(value)}")
            return None
        return value

    def list(self, key: str) -> list[Json] | None:
        value = self._value.get(key)
        if key not in self._value:
            return None
        if not isinstance(value, list):
            self.error(key, f"'{key}' must be a list, {describe_value(value)}; use {key}: [{_sample(value)}]")
            return None
        return value

    def mapping(self, key: str) -> dict[str, Json] | None:
        value = self._value.get(key)
        if key not in self._value:
            return None
        if not isinstance(value, dict):
            self.error(key, f"'{key}' must be a mapping, {describe_value(value)}")
            return None
        return value


def describe_value(value: Json) -> str:
    """What a value is, for the end of a message."""
    match value:
        case None:
            return "but it is empty"
        case bool():
            return f"but it is {str(value).lower()}"
        case int() | float():
            return f"but it is {value}"
        case str():
            return (
                f"but it is '{value}'"
                if len(value) <= 40
                else f"but it is a string of {len(value):,} characters"
            )
        case list():
            return "but it is a list"
        case dict():
            return "but it is a mapping"


def _either(options: tuple[str, ...]) -> str:
    return f"{', '.join(options[:-1])} or {options[-1]}"


def _sample(value: Json) -> str:
    return value if isinstance(value, str) and len(value) <= 40 else "…"
