"""
The memory that answers of agents may take together while they are in flight: one budget for all calls of a process.

An answer is in flight until its result is stored. A call whose answer is large takes its share before it reads the
body, and waits in order if there is none. While it waits it reads nothing, so the agent waits too, and the call's
timeout stands still. A call never waits while it holds a share, so a call that holds one can always go on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar

DEFAULT_BYTES = 512 * 1024 * 1024
# An answer takes about so many times its size until its result is stored: the body, its text, the output, statements.
COPIES = 4
# Smaller answers are not counted: as many as there can be calls at once take little.
FREE_BYTES = 64 * 1024
# Of a stream. What is kept of it is at most what has been read.
FREE_STREAM_BYTES = 256 * 1024


class MemoryBudget:
    def __init__(self, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._limit = self._left = limit_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def taken_bytes(self) -> int:
        return self._limit - self._left

    @property
    def has_room(self) -> bool:
        """False while calls wait: another call would only wait behind them."""
        return not self._waiting

    async def take(self, size_bytes: int) -> int:
        """Waits for its turn; how much was taken. What is larger than the budget takes all of it."""
        size = min(size_bytes, self._limit)
        if not self._waiting and size <= self._left:
            self._left -= size
            return size
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (size, granted)
        self._waiting.append(place)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.give_back(size)
            else:
                if place in self._waiting:
                    self._waiting.remove(place)
                self._grant()
            raise
        return size

    def give_back(self, size_bytes: int) -> None:
        self._left += size_bytes
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._left:
            size, granted = self._waiting.popleft()
            if granted.cancelled():
                continue
            self._left -= size
            granted.set_result(None)


class CallMemory:
    """What one call holds of the budget: the share of its last answer."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._held = 0

    async def take(self, size_bytes: int) -> None:
        """What an answer before this one has taken is given back first."""
        self.release()
        self._held = await self._budget.take(size_bytes)

    def shrink(self, size_bytes: int) -> None:
        """The answer is only as large as this."""
        surplus = self._held - size_bytes
        if surplus > 0:
            self._held = size_bytes
            self._budget.give_back(surplus)

    def release(self) -> None:
        held, self._held = self._held, 0
        if held:
            self._budget.give_back(held)


# Of the call that the current asyncio task makes. None: nothing is kept of an answer once it has been read.
CALL_MEMORY: ContextVar[CallMemory | None] = ContextVar("call_memory", default=None)
