"""
A cache of what was committed lately: the few things that are read again and again.

One process owns the file and writes it through one store, so the cache cannot become stale. A read on the second
connection costs much more than its statement: each commit makes that connection drop all the pages it has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.state import RunStatus
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
    """The values that were put last, up to a number of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        return self._values.get(key)

    def put(self, key: Key, value: Value) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            self._values.popitem(last=False)

    def clear(self) -> None:
        self._values.clear()


class CacheChanges:
    """What one transaction has changed of it."""

    def __init__(self, no_poll_before: Instant | None) -> None:
        # No remote task is due before; None: there is none. It may be too early, never too late.
        self.no_poll_before = no_poll_before
        self.statuses: dict[RunId, tuple[RunStatus, int]] = {}
        self.workflows = False
        self.deletions = False

    def copy(self) -> CacheChanges:
        copied = CacheChanges(self.no_poll_before)
        copied.restore(self)
        return copied

    def restore(self, earlier: CacheChanges) -> None:
        """Back to what `copy` returned."""
        self.no_poll_before = earlier.no_poll_before
        self.statuses = earlier.statuses.copy()
        self.workflows, self.deletions = earlier.workflows, earlier.deletions

    def expect_poll(self, at: Instant) -> None:
        self.no_poll_before = at if self.no_poll_before is None else min(self.no_poll_before, at)


class CommittedCache:
    def __init__(self) -> None:
        self.statuses: LatestValues[RunId, tuple[RunStatus, int]] = LatestValues(_MOST_STATUSES)
        self.workflows: LatestValues[tuple[str, int | None], WorkflowVersion] = LatestValues(_MOST_WORKFLOWS)
        self.no_poll_before: Instant | None = NOT_KNOWN

    def begin(self) -> CacheChanges:
        return CacheChanges(self.no_poll_before)

    def take(self, changes: CacheChanges) -> None:
        """Called when the changes are durable, before any other read."""
        self.no_poll_before = changes.no_poll_before
        if changes.deletions:
            self.statuses.clear()
        if changes.workflows:
            self.workflows.clear()
        for run_id, status in changes.statuses.items():
            self.statuses.put(run_id, status)
