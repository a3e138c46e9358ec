"""
Commits in a thread of its own, since a commit waits for the disk.

Not an executor of the standard library: its futures cost more than everything else around a small transaction.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue


class _Commit:
    """One commit under way."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.waiter: asyncio.Future[None] = self.loop.create_future()
        self.error: BaseException | None = None
        self.done = False

    def settle(self) -> None:
        self.done = True
        if not self.waiter.done():
            self.waiter.set_result(None)


class Committer:
    def __init__(self, commit: Callable[[], object]) -> None:
        self._commit = commit
        self._asked: SimpleQueue[_Commit | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="sqlite-commit", daemon=True)
        self._thread.start()

    async def commit(self) -> asyncio.CancelledError | None:
        """
        Returns, or raises what the commit has raised, when the disk has answered, whatever happens to the caller.

        A cancellation that came meanwhile is returned: by then it is durable all the same.
        """
        commit = _Commit()
        self._asked.put(commit)
        cancelled: asyncio.CancelledError | None = None
        while not commit.done:
            try:
                await commit.waiter
            except asyncio.CancelledError as exc:
                cancelled = exc
                commit.waiter = commit.loop.create_future()
        if commit.error is not None:
            raise commit.error
        return cancelled

    def close(self) -> None:
        self._asked.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (commit := self._asked.get()) is not None:
            try:
                self._commit()
            except BaseException as exc:  # noqa: BLE001 - it is raised again where the commit was asked for
                commit.error = exc
            commit.loop.call_soon_threadsafe(commit.settle)
