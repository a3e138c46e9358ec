"""Moves timers that are due into the inboxes of their runs."""

from __future__ import annotations

from collections.abc import Iterable

from trunkline.clock import Instant
from trunkline.stores.base import Timer, Transaction

_MOST_A_TURN = 512


class Timers:
    """A part of the commit loop, before the driver: what is due is applied in the same turn."""

    def __init__(self) -> None:
        self._next: Instant | None = None

    async def work(self, tx: Transaction) -> None:
        if self._next is None or self._next <= tx.now:
            await tx.take_due_timers(_MOST_A_TURN)
            self._next = await tx.next_timer()

    def expect(self, timers: Iterable[Timer]) -> None:
        """The driver has written these after this part had looked."""
        for timer in timers:
            if self._next is None or timer.due < self._next:
                self._next = timer.due

    def committed(self) -> None:
        pass

    def rolled_back(self) -> None:
        # Look again: what was taken is back.
        self._next = None

    def next_wake(self) -> Instant | None:
        return self._next
