"""
Work of requests that takes long, such as validating a workflow of thousands of steps: few threads, a short queue.

Without the limits, a client that repeats such a request takes the processor from all runs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from trunkline.errors import Overloaded, TooManyRequests
from trunkline.services.operations.audit_log import current_actor

# One more would only slow down the first: threads share one interpreter.
_MAX_THREADS = 2
MAX_QUEUED = 64
MAX_QUEUED_PER_CALLER = 16

_Args = ParamSpec("_Args")
_Done = TypeVar("_Done")


class HeavyWork:
    def __init__(
        self, *, max_queued: int = MAX_QUEUED, max_queued_per_caller: int = MAX_QUEUED_PER_CALLER
    ) -> None:
        """The limits count what is in progress as well. Without API keys, all requests have one caller."""
        self._threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="heavy")
        self._max_queued = max_queued
        self._max_queued_per_caller = max_queued_per_caller
        self._queued: Counter[str | None] = Counter()

    async def run(self, work: Callable[_Args, _Done], *args: _Args.args, **options: _Args.kwargs) -> _Done:
        """Raises `TooManyRequests` or `Overloaded` instead of waiting in a long queue."""
        caller = current_actor()
        if self._queued.total() >= self._max_queued:
            raise Overloaded(f"{self._max_queued} requests that take long are in progress.")
        if caller is not None and self._queued[caller] >= self._max_queued_per_caller:
            raise TooManyRequests(
                f"{self._max_queued_per_caller} requests of the API key {caller} that take long are in progress."
            )
        self._queued[caller] += 1
        # A thread does not end with its request, so neither does its place.
        return await asyncio.shield(self._counted(caller, lambda: work(*args, **options)))

    def _counted(self, caller: str | None, work: Callable[[], _Done]) -> asyncio.Future[_Done]:
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)

        def release(_: object) -> None:
            self._queued[caller] -= 1
            if not self._queued[caller]:
                del self._queued[caller]

        future.add_done_callback(release)
        return future
