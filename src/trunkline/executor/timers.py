"""Moves timers that are due into the inboxes of their runs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from trunkline.clock import Instant, after
from trunkline.stores.base import Timer, Transaction

_MOST_A_TURN = 512
# Timers that somebody else has written are found by this look; of our own we know.
_LOOK_EVERY = timedelta(seconds=1)
_NOW = Instant(0)


class Timers:
    """A part of the commit loop, before the driver: what is due is applied in the same turn."""

    def __init__(self) -> None:
        self._next: Instant | None = None
        self._look_at = _NOW

    async def work(self, tx: Transaction) -> None:
        if self._look_at <= tx.now:
            await tx.take_due_timers(_MOST_A_TURN)
            self._next = await tx.next_timer()
            self._look_at = after(tx.now, _LOOK_EVERY)
            if self._next is not None:
                self._look_at = min(self._look_at, self._next)

    def expect(self, timers: Iterable[Timer]) -> None:
        """The driver has written these after this part had looked."""
        for timer in timers:
            if self._next is None or timer.due < self._next:
                self._next = timer.due
                self._look_at = min(self._look_at, timer.due)

    def committed(self) -> None:
        pass

    def rolled_back(self) -> None:
        # Look again: what was taken is back.
        self._next = None
        self._look_at = _NOW

    def next_wake(self) -> Instant | None:
        return self._next
