"""
A cache of what was committed lately: the few things that are read again and again.

One process owns the file and writes it through one store, so the cache cannot become stale. A read on the second
connection costs much more than its statement: each commit makes that connection drop all the pages it has.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.state import RunStatus
from trunkline.stores.payloads import PieceCache
from trunkline.stores.port.workflows import WorkflowVersion

# Runs that a client waits for are among the latest; each takes a quarter of a kilobyte.
_MOST_STATUSES = 4_096
# Each with its source, which is some kilobytes long.
_MOST_WORKFLOWS = 64

# Before everything: read it.
NOT_KNOWN = Instant(0)

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LatestValues(Generic[Key, Value]):
    """The values that were put last: at least half of a number of them, and no more than that number."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        # Moving each value that is used to the end would cost as much as the cache saves.
        self._newer: dict[Key, Value] = {}
        self._older: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        value = self._newer.get(key)
        return self._older.get(key) if value is None else value

    def put(self, values: Mapping[Key, Value]) -> None:
        self._newer.update(values)
        if len(self._newer) >= self._half:
            self._newer, self._older = {}, self._newer

    def clear(self) -> None:
        self._newer, self._older = {}, {}


class CacheChanges:
    """What one transaction has changed of it."""

    def __init__(
        self,
        no_poll_before: Instant | None,
        committed: LatestValues[RunId, int],
        run_topics: frozenset[str] | None,
    ) -> None:
        """`committed`: versions of runs."""
        # No remote task is due before; None: there is none. It may be too early, never too late.
        self.no_poll_before = no_poll_before
        # The ends of runs that triggers listen to; None: they must be read.
        self.run_topics = run_topics
        self.statuses: dict[RunId, tuple[RunStatus, int]] = {}
        self.versions: dict[RunId, int] = {}
        self.workflows = False
        self.deletions = False
        self._committed = committed

    def version_of(self, run_id: RunId) -> int | None:
        """The version of a run as the transaction sees it; None: it must be read."""
        version = self.versions.get(run_id)
        return self._committed.get(run_id) if version is None and not self.deletions else version

    def copy(self) -> CacheChanges:
        copied = CacheChanges(self.no_poll_before, self._committed, self.run_topics)
        copied.restore(self)
        return copied

    def restore(self, earlier: CacheChanges) -> None:
        """Back to what `copy` returned."""
        self.no_poll_before, self.run_topics = earlier.no_poll_before, earlier.run_topics
        self.statuses, self.versions = earlier.statuses.copy(), earlier.versions.copy()
        self.workflows, self.deletions = earlier.workflows, earlier.deletions

    def expect_poll(self, at: Instant) -> None:
        self.no_poll_before = at if self.no_poll_before is None else min(self.no_poll_before, at)


class CommittedCache:
    def __init__(self) -> None:
        self.statuses: LatestValues[RunId, tuple[RunStatus, int]] = LatestValues(_MOST_STATUSES)
        self.versions: LatestValues[RunId, int] = LatestValues(_MOST_STATUSES)
        self.workflows: LatestValues[tuple[str, int | None], WorkflowVersion] = LatestValues(_MOST_WORKFLOWS)
        self.no_poll_before: Instant | None = NOT_KNOWN
        self.run_topics: frozenset[str] | None = None
        self.pieces = PieceCache()

    def begin(self) -> CacheChanges:
        return CacheChanges(self.no_poll_before, self.versions, self.run_topics)

    def take(self, changes: CacheChanges) -> None:
        """Called when the changes are durable, before any other read."""
        self.no_poll_before, self.run_topics = changes.no_poll_before, changes.run_topics
        if changes.deletions:
            self.statuses.clear()
            self.versions.clear()
        if changes.workflows:
            self.workflows.clear()
        self.statuses.put(changes.statuses)
        self.versions.put(changes.versions)
