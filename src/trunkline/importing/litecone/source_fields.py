"""Reads the fields of one object of a source, and reports for each of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from trunkline.importing.report import ImportReport
from trunkline.jsontypes import Json
from trunkline.workflow.document.locations import Path

_Choice = TypeVar("_Choice", bound=str)
_MAX_QUOTED = 80


class SourceFields:
    """What is left out or null is None to every reader; what is wrong is reported as lost, and then None too."""

    def __init__(
        self, value: dict[str, Json], path: Path, report: ImportReport, *, secret: bool = False
    ) -> None:
        self.path = path
        self.report = report
        # Whether nothing of it may be repeated.
        self._secret = secret
        self._value = value
        self._used: set[str] = set()

    def any(self, key: str) -> Json:
        self._used.add(key)
        return self._value.get(key)

    def text(self, key: str) -> str | None:
        value = self.any(key)
        if value is None or (isinstance(value, str) and value.strip()):
            return value.strip() if value else None
        return self._wrong(key, value, "a non-empty string")

    def texts(self, key: str) -> list[str]:
        value = self.any(key)
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return [item for item in value if isinstance(item, str)]
        self._wrong(key, value, "a list of strings")
        return []

    def integer(self, key: str, least: int) -> int | None:
        value = self.any(key)
        if value is None or (type(value) is int and value >= least):
            return value
        return self._wrong(key, value, f"a whole number from {least} on")

    def number(self, key: str) -> float | None:
        value = self.any(key)
        if value is None or type(value) in {int, float}:
            return None if value is None else float(str(value))
        return self._wrong(key, value, "a number")

    def choice(self, key: str, options: Collection[_Choice], default: _Choice) -> _Choice:
        value = self.any(key)
        for option in options:
            if value == option:
                return option
        if value is not None:
            self._wrong(
                key,
                value,
                f"one of {', '.join(options)}",
                f"{default} is used instead. Correct it if necessary.",
            )
        return default

    def object(self, key: str, *, secret: bool = False) -> SourceFields | None:
        value = self.any(key)
        if value is None:
            return None
        if isinstance(value, dict):
            return SourceFields(value, (*self.path, key), self.report, secret=secret or self._secret)
        self._wrong(key, value, "an object", secret=secret)
        return None

    def objects(self, key: str) -> dict[str, SourceFields]:
        """The objects in an object, by name."""
        whole = self.object(key)
        if whole is None:
            return {}
        found = {name: whole.object(name) for name in whole.names()}
        return {name: fields for name, fields in found.items() if fields is not None}

    def names(self) -> list[str]:
        return list(self._value)

    def ignore(self, *keys: str, why: str) -> None:
        """These fields, where they are given, say nothing here."""
        given = [key for key in keys if self.any(key) is not None]
        if given:
            self.report.note(
                self.path, f"{_listed(given)} {'is' if len(given) == 1 else 'are'} left out: {why}"
            )

    def finish(self) -> None:
        """Fields that were never read are unknown."""
        for key, value in self._value.items():
            if key not in self._used and value is not None:
                self.report.lost(
                    (*self.path, key),
                    f"the field '{key[:_MAX_QUOTED]}' is not known in litecone's format",
                    "If it matters, add it to the imported definition by hand.",
                )

    def _wrong(
        self,
        key: str,
        value: Json,
        wanted: str,
        fix: str = "Correct it in the source.",
        *,
        secret: bool = False,
    ) -> None:
        shown = "something else" if secret or self._secret else repr(value)[:_MAX_QUOTED]
        found = "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else shown
        self.report.lost((*self.path, key), f"'{key[:_MAX_QUOTED]}' must be {wanted}, and it is {found}", fix)


def _listed(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
