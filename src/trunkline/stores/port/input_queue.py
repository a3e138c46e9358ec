"""The queue of each run's inputs, and the timers that put inputs into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId


class QueuedInput(msgspec.Struct, frozen=True):
    """An input for a run. A second one with the same key for the same run is dropped."""

    run_id: RunId
    key: str
    payload: bytes


class WokenRun(msgspec.Struct):
    """A run with queued inputs; claimed until the transaction ends."""

    run_id: RunId
    version: int
    # (row, payload), oldest first.
    items: list[tuple[int, bytes]]


class Timer(msgspec.Struct, frozen=True):
    """Puts `payload` into the run's input queue under `key` when it is due."""

    run_id: RunId
    key: str
    due: Instant
    payload: bytes


class InputQueueWrites(Protocol):
    async def put(self, items: Sequence[QueuedInput]) -> None:
        """Inputs for runs that do not exist (any more) are dropped."""
        ...

    async def claim_runs(self, limit: int) -> list[WokenRun]:
        """Runs with queued inputs, at most `limit` inputs, oldest first; other transactions leave them out."""
        ...


class TimerWrites(Protocol):
    """Timers are set and dropped by `RunWrites.write_transitions`."""

    async def fire_due(self, limit: int) -> int:
        """Move due timers into the input queue; returns how many."""
        ...

    async def next_due(self) -> Instant | None: ...
