"""
What an import gives back, with a report of what became of each part of a source.

    note   carried over in another form, or without a meaning here: nothing is missing
    lost   not carried over: a person has to look at it
"""

from __future__ import annotations

from typing import Literal

import msgspec

from trunkline.jsontypes import JsonObject
from trunkline.workflow.document.locations import Path, path_text

RemarkKind = Literal["note", "lost"]

# Per kind. More findings of a generated file do not help, and the report has the total number.
MAX_REMARKS = 200


class ImportRemark(msgspec.Struct, frozen=True, kw_only=True):
    kind: RemarkKind
    file: str
    # The workflow or the agent that it is about; None: the file.
    about: str | None
    path: str
    message: str
    fix: str | None = None


class NotTranslatable(Exception):
    """One thing that cannot be carried over: why, and what to do instead."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


class ImportReport:
    """Collects the remarks about one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.remarks: list[ImportRemark] = []
        self.counts: dict[RemarkKind, int] = {"note": 0, "lost": 0}
        self._about: str | None = None
        self._under: Path = ()

    @property
    def dropped(self) -> int:
        """How many remarks are not kept."""
        return sum(self.counts.values()) - len(self.remarks)

    def begin(self, about: str | None, under: Path) -> None:
        """What follows is about this workflow or agent, which stands at this path of the file."""
        self._about = about
        self._under = under

    def note(self, path: Path, message: str, fix: str | None = None) -> None:
        self._add("note", path, message, fix)

    def lost(self, path: Path, message: str, fix: str) -> None:
        self._add("lost", path, message, fix)

    def _add(self, kind: RemarkKind, path: Path, message: str, fix: str | None) -> None:
        self.counts[kind] += 1
        if self.counts[kind] > MAX_REMARKS:
            return
        where = path_text((*self._under, *path))
        self.remarks.append(
            ImportRemark(kind=kind, file=self.file, about=self._about, path=where, message=message, fix=fix)
        )


class ImportedWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    # Where it was found.
    file: str
    # In the workflow language.
    definition: JsonObject
    # Whether everything was carried over.
    complete: bool


class ImportedDefinitions(msgspec.Struct, frozen=True, kw_only=True):
    workflows: tuple[ImportedWorkflow, ...]
    # As `agents apply` reads them.
    agents: tuple[JsonObject, ...]
    remarks: tuple[ImportRemark, ...]
    # How many remarks there were beyond those.
    dropped: int
    # How many things were not carried over.
    lost: int
