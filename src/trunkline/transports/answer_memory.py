"""
The memory that answers of agents may take together while they are in flight: one budget for all calls of a process.

An answer is in flight until its result is stored. A call whose answer is large takes its share before it reads the
body, and waits in order if there is none. While it waits it reads nothing, so the agent waits too, and the call's
timeout stands still. A call never waits while it holds a share, so a call that holds one can always go on.

The large inputs of calls count, too. They are in memory already when the calls begin, so they never wait. While they
take half of the budget, no further call begins. If inputs leave too little for an answer, one answer is read at a time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar

DEFAULT_BYTES = 512 * 1024 * 1024
# An answer takes about so many times its size until its result is stored: the body, its text, the output, statements.
COPIES = 4
# The task, and the request that it becomes.
INPUT_COPIES = 2
# Smaller answers and inputs are not counted: as many as there can be calls at once take little.
FREE_BYTES = 64 * 1024
# Of a stream. What is kept of it is at most what has been read.
FREE_STREAM_BYTES = 256 * 1024


class MemoryBudget:
    def __init__(self, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._limit = limit_bytes
        self._answers = self._inputs = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def taken_bytes(self) -> int:
        return self._answers + self._inputs

    @property
    def has_room(self) -> bool:
        """False while calls wait, since another one would only wait behind them, or while inputs take half of it."""
        return not self._waiting and self._inputs < self._limit // 2

    def _fits(self, size_bytes: int) -> bool:
        # The first one always does: the calls that hold the inputs must be able to end.
        return not self._answers or self._answers + size_bytes <= self._limit - self._inputs

    def hold_input(self, size_bytes: int) -> None:
        self._inputs += size_bytes

    def free_input(self, size_bytes: int) -> None:
        self._inputs -= size_bytes
        self._grant()

    async def take(self, size_bytes: int) -> int:
        """Waits for its turn; how much was taken. What is larger than the budget takes all of it."""
        size = min(size_bytes, self._limit)
        if not self._waiting and self._fits(size):
            self._answers += size
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
        self._answers -= size_bytes
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size, granted = self._waiting.popleft()
            if granted.cancelled():
                continue
            self._answers += size
            granted.set_result(None)


class CallMemory:
    """What one call holds of the budget: its input, and the share of its last answer."""

    def __init__(self, budget: MemoryBudget, input_bytes: int = 0) -> None:
        self._budget = budget
        self._held = 0
        self._input = INPUT_COPIES * input_bytes if input_bytes > FREE_BYTES else 0
        budget.hold_input(self._input)

    async def take(self, size_bytes: int) -> None:
        """What an answer before this one has taken is given back first."""
        self._release_answer()
        self._held = await self._budget.take(size_bytes)

    def shrink(self, size_bytes: int) -> None:
        """The answer is only as large as this."""
        surplus = self._held - size_bytes
        if surplus > 0:
            self._held = size_bytes
            self._budget.give_back(surplus)

    def release(self) -> None:
        held, self._input = self._input, 0
        if held:
            self._budget.free_input(held)
        self._release_answer()

    def _release_answer(self) -> None:
        held, self._held = self._held, 0
        if held:
            self._budget.give_back(held)


# Of the call that the current asyncio task makes. None: nothing is kept of an answer once it has been read.
CALL_MEMORY: ContextVar[CallMemory | None] = ContextVar("call_memory", default=None)
