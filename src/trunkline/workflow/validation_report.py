"""Collects everything that is wrong with a workflow, so that its author gets all of it at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from trunkline.errors import Finding, Invalid
from trunkline.workflow.document.locations import (
    ExpressionPosition,
    Path,
    SourceLocations,
    find_position,
    path_text,
)

# More findings do not help: one mistake in a generated file repeats itself in every step.
MAX_FINDINGS = 100
# A few milliseconds' worth.
_MAX_COMPARED = 2_000


class ReportedProblem(NamedTuple):
    path: Path
    message: str
    on_key: bool
    excerpt: ExpressionPosition | None


class ValidationReport:
    def __init__(self) -> None:
        self.errors: list[ReportedProblem] = []
        self.warnings: list[ReportedProblem] = []
        # Saved JSON Schemas that steps refer to.
        self.schemas: set[str] = set()
        # The way to the part of the document that is being checked.
        self._path: Path = ()
        self._searches = [0]

    def within(self, path: Path) -> ValidationReport:
        """The same report for a part of the document, whose paths begin there."""
        part = ValidationReport()
        part.errors, part.warnings, part.schemas = self.errors, self.warnings, self.schemas
        part._searches = self._searches
        part._path = (*self._path, *path)
        return part

    @property
    def full(self) -> bool:
        """Whether anything more that is found would not be shown."""
        return len(self.errors) >= MAX_FINDINGS

    def hint(self, word: str, known: Iterable[str]) -> str:
        """`closest`, while there are few findings: the search is slow."""
        self._searches[0] += 1
        return did_you_mean(word, known) if self._searches[0] <= MAX_FINDINGS else ""

    def error(
        self, path: Path, message: str, *, on_key: bool = False, excerpt: ExpressionPosition | None = None
    ) -> None:
        self.errors.append(ReportedProblem((*self._path, *path), message, on_key, excerpt))

    def warning(self, path: Path, message: str, *, excerpt: ExpressionPosition | None = None) -> None:
        self.warnings.append(ReportedProblem((*self._path, *path), message, on_key=False, excerpt=excerpt))


def to_findings(notes: list[ReportedProblem], text: str, places: SourceLocations) -> list[Finding]:
    """What was noted, each with its place in the source."""
    return [_finding(note, text, places) for note in notes[:MAX_FINDINGS]]


def invalid_error(source: str, found: list[Finding], total: int) -> Invalid:
    """The error that carries all findings and names the first."""
    first = found[0]
    where = source if first.line is None else f"{source}:{first.line}:{first.column}"
    path = f"{first.path}: " if first.path else ""
    more = "" if total == 1 else f" (and {total - 1} more)"
    return Invalid(f"{where}: {path}{first.message}{more}", findings=found)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing when no known word is near."""
    # The cost is the product of the lengths, for every known word. A very long word is not a typing mistake.
    if len(word) > 80:
        return ""
    near = difflib.get_close_matches(word, islice(known, _MAX_COMPARED), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def _finding(note: ReportedProblem, text: str, places: SourceLocations) -> Finding:
    place = find_position(places, text, note.path, on_key=note.on_key, excerpt=note.excerpt)
    line, column = place or (None, None)
    return Finding(path=path_text(note.path), message=note.message, line=line, column=column)
