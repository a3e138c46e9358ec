"""
Filters for lists of runs, and the index scans that answer them, newest run first.

Ids begin with the time, so a list pages by id and a span of time is a span of ids. Every scan has its own index, in
which the matching runs stand together in that order; the newest of all scans are the page. So a page reads about as
many rows as it returns, however many runs there are.
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


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """All that is given holds together; None and an empty `statuses` ask for nothing in particular."""

    statuses: tuple[RunStatus, ...] = ()
    # By name, whatever the version. With statuses, or without children, their versions are found much faster.
    workflows: tuple[str, ...] | None = None
    versions: tuple[VersionKey, ...] | None = None
    correlation_id: str | None = None
    # Keys and values; a run has all of them. What else is asked for is checked on each run with the rarest one.
    labels: tuple[tuple[str, str], ...] = ()
    # Blocks of a run are only found by it.
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


class IndexScan(NamedTuple):
    """What all runs of one scan have in common; the rest of the filter is checked row by row."""

    name: str | None = None
    version: int | None = None
    status: RunStatus | None = None
    # None: runs with a parent, and those without.
    has_parent: bool | None = None


# So many runs of a label are counted, to begin with the rarest of several.
MAX_LABELLED_COUNTED = 200


def index_scans(where: RunFilter) -> list[IndexScan]:
    """All of one kind, so that one statement can do them."""
    statuses = where.statuses or RUN_STATUSES
    if where.parent is not None or where.correlation_id is not None or where.labels:
        # Few have the same: there is nothing to divide.
        return [IndexScan()]
    kinds = (False, True) if where.with_children else (False,)
    if where.versions is not None:
        return [
            IndexScan(*key, status, kind) for key, status, kind in product(where.versions, statuses, kinds)
        ]
    if where.workflows is not None:
        return [IndexScan(name) for name in where.workflows]
    return [IndexScan(status=status, has_parent=kind) for status, kind in product(statuses, kinds)]
