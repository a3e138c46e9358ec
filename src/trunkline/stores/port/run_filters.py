"""
What a list of runs can be asked for, and how it is found: by walks through indexes, newest run first.

Ids begin with the time, so a list pages by id and a span of time is a span of ids. Every walk has its own index, in
which what it looks for stands together in that order; the newest of all walks are the page. So a page costs what it
gives, however many runs there are.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import msgspec

from trunkline.ids import RunId
from trunkline.machine.state import RUN_STATUSES, RunStatus


class VersionKey(NamedTuple):
    """One version of a workflow."""

    name: str
    version: int


class SavedVersion(NamedTuple):
    workflow_id: str
    name: str
    version: int


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """All that is given holds together; None and an empty `statuses` ask for nothing in particular."""

    statuses: tuple[RunStatus, ...] = ()
    # By name, whatever the version. With statuses, or without children, their versions are found much faster.
    workflows: tuple[str, ...] | None = None
    versions: tuple[VersionKey, ...] | None = None
    correlation_id: str | None = None
    parent: RunId | None = None
    # False: only runs that no step of another run has begun.
    with_children: bool = True
    # A span of ids: from the first one, up to the second one and without it.
    lowest: RunId | None = None
    below: RunId | None = None

    def end(self, before: RunId | None) -> RunId | None:
        """Where a page ends that comes after `before`, the last id seen."""
        given = [end for end in (self.below, before) if end is not None]
        return min(given, default=None)


ANY_RUN = RunFilter()


class Walk(NamedTuple):
    """What is the same for all that one walk looks at; the rest is sorted out on the way."""

    name: str | None = None
    version: int | None = None
    status: RunStatus | None = None
    # None: runs with a parent, and those without.
    has_parent: bool | None = None


def walks(where: RunFilter) -> list[Walk]:
    """All of one kind, so that one statement can do them."""
    statuses = where.statuses or RUN_STATUSES
    if where.parent is not None or where.correlation_id is not None:
        # Few have the same: there is nothing to divide.
        return [Walk()]
    if where.versions is not None:
        kinds = (False, True) if where.with_children else (False,)
        return [Walk(*key, status, kind) for key, status, kind in product(where.versions, statuses, kinds)]
    if where.workflows is not None:
        return [Walk(name) for name in where.workflows]
    if not where.with_children:
        return [Walk(status=status, has_parent=False) for status in statuses]
    return [Walk(status=status) for status in where.statuses] or [Walk()]
