"""The queue of each run's inputs, and the timers that put inputs into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.machine.inputs import Input


class QueuedInput:
    """An input for a run. A second one with the same key for the same run is dropped."""

    __slots__ = ("_item", "_payload", "is_once", "key", "run_id")

    def __init__(self, run_id: RunId, key: str, item: bytes | Input, *, is_once: bool = False) -> None:
        """
        `item`: encoded or not. Most are applied in the transaction that queues them, and need no encoding.

        `is_once`: no second one can come, so the key need not be remembered once the run has applied it.
        """
        self.run_id = run_id
        self.key = key
        self.is_once = is_once
        self._item = item
        self._payload = item if isinstance(item, bytes) else None

    @property
    def item(self) -> bytes | Input:
        """As it was given."""
        return self._item

    @property
    def payload(self) -> bytes:
        """Encoded."""
        if self._payload is None:
            self._payload = encode(self._item)
        return self._payload


class WokenRun(msgspec.Struct):
    """A run with queued inputs; claimed until the transaction ends."""

    run_id: RunId
    version: int
    # (row, input), oldest first. The input is encoded if it was read.
    items: list[tuple[int, bytes | Input]]


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
