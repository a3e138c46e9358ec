"""
The threads for handlers that are not coroutines.

Daemons, unlike those of the standard library's executor: a thread cannot be stopped, and one whose handler never ends
must not keep the process from ending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Handlers that block wait for others most of the time.
MOST_THREADS = 64


class DaemonThreadPool(Executor):
    def __init__(self, most: int = MOST_THREADS) -> None:
        self._most = most
        self._number = 0
        self._idle = threading.Semaphore(0)
        self._asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def perform() -> None:
            # False when it was given up before its turn came.
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except BaseException as exc:  # noqa: BLE001 - it is raised again where the future is awaited
                    future.set_exception(exc)

        self._asked.put(perform)
        if not self._idle.acquire(blocking=False) and self._number < self._most:
            self._number += 1
            threading.Thread(target=self._run, name=f"zone-{self._number}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Idle threads end at once; the others end after their current call, without waiting for them."""
        del wait, cancel_futures
        for _ in range(self._number):
            self._asked.put(None)

    def _run(self) -> None:
        while (perform := self._asked.get()) is not None:
            perform()
            self._idle.release()
