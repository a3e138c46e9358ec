"""
What was committed lately, in memory: the few things that are read again and again, at the speed of a dictionary.

One process owns the file and writes it through one store, so nothing changes behind our back. A read on the second
connection costs much more than its statement: each commit makes that connection drop all the pages it has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.state import RunStatus
from trunkline.stores.base import WorkflowVersion

# Those that somebody waits for are among the latest; a run takes a quarter of a kilobyte.
_MOST_STATUSES = 4_096
# Each with its source, which is some kilobytes long.
_MOST_WORKFLOWS = 64

# Before everything: look.
NOT_KNOWN = Instant(0)

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Latest(Generic[Key, Value]):
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


class Changes:
    """What one transaction has changed of it."""

    def __init__(self, no_poll_before: Instant | None) -> None:
        # No remote task is due before; None: there is none. It may be too early, never too late.
        self.no_poll_before = no_poll_before
        self.statuses: dict[RunId, tuple[RunStatus, int]] = {}
        self.workflows = False
        self.deletions = False

    def copy(self) -> Changes:
        copied = Changes(self.no_poll_before)
        copied.statuses = self.statuses.copy()
        copied.workflows, copied.deletions = self.workflows, self.deletions
        return copied

    def expect_poll(self, at: Instant) -> None:
        self.no_poll_before = at if self.no_poll_before is None else min(self.no_poll_before, at)


class Recent:
    def __init__(self) -> None:
        self.statuses: Latest[RunId, tuple[RunStatus, int]] = Latest(_MOST_STATUSES)
        self.workflows: Latest[tuple[str, int | None], WorkflowVersion] = Latest(_MOST_WORKFLOWS)
        self.no_poll_before: Instant | None = NOT_KNOWN

    def begin(self) -> Changes:
        return Changes(self.no_poll_before)

    def take(self, changes: Changes) -> None:
        """Called when the changes are durable, before anybody else can read."""
        self.no_poll_before = changes.no_poll_before
        if changes.deletions:
            self.statuses.clear()
        if changes.workflows:
            self.workflows.clear()
        for run_id, status in changes.statuses.items():
            self.statuses.put(run_id, status)
