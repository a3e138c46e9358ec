"""
Notifications for watchers of one run or of all: that something has changed, not what; that is in the store.

Who waits for the end of a run also gets its last state, if this process has it: then nothing is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from trunkline.ids import RunId
from trunkline.machine.state import RunState


class RunWatch:
    """One watcher of one run, or of all."""

    def __init__(self, *, end_only: bool = False) -> None:
        self.end_only = end_only
        # Of a run that has ended. It is durable, and must not be changed.
        self.final: RunState | None = None
        self._notified = False
        self._waiter: asyncio.Future[None] | None = None

    def notify(self) -> None:
        self._notified = True
        self._wake()

    async def changed(self, seconds: float) -> bool:
        """Returns when there was a change since the last call, or, with False, after `seconds`."""
        if not self._notified:
            # By hand: a lock, an event and a timeout of asyncio would cost several times as much, for each transition.
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = loop.call_later(seconds, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        notified, self._notified = self._notified, False
        return notified

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class RunWatchers:
    def __init__(self) -> None:
        self._watches: dict[RunId, set[RunWatch]] = {}
        self._of_all: set[RunWatch] = set()
        # The process is stopping: waiting ends.
        self.closed = False

    async def close_at(self, stopping: asyncio.Event) -> None:
        """Ends all waiting when the process is asked to stop."""
        await stopping.wait()
        self.closed = True
        self.notify_all()
        for watches in self._watches.values():
            for watch in watches:
                watch.notify()

    @contextmanager
    def watch(self, run_id: RunId, *, end_only: bool = False) -> Generator[RunWatch]:
        """`end_only`: notified once, when the run has ended."""
        watch = RunWatch(end_only=end_only)
        self._watches.setdefault(run_id, set()).add(watch)
        try:
            yield watch
        finally:
            watches = self._watches[run_id]
            watches.discard(watch)
            if not watches:
                del self._watches[run_id]

    @contextmanager
    def watch_all(self) -> Generator[RunWatch]:
        """Notified when any run has started or changed."""
        watch = RunWatch()
        self._of_all.add(watch)
        try:
            yield watch
        finally:
            self._of_all.discard(watch)

    def notify_all(self) -> None:
        """Some run has started or changed."""
        for watch in self._of_all:
            watch.notify()

    def notify(
        self, run_ids: Iterable[RunId], ended: Mapping[RunId, RunState | None] = MappingProxyType({})
    ) -> None:
        """`ended`: those of them that are final now, with their states if they are known."""
        self.notify_all()
        if not self._watches:
            return
        for run_id in run_ids:
            for watch in self._watches.get(run_id, ()):
                if not watch.end_only:
                    watch.notify()
                elif run_id in ended:
                    watch.final = ended[run_id] or watch.final
                    watch.notify()
