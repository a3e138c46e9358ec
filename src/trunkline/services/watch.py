"""Doorbells for those who watch a run: they say that something changed, never what; the store has that."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from trunkline.ids import RunId


class Watch:
    """One watcher of one run."""

    def __init__(self) -> None:
        self._bell = asyncio.Event()

    def ring(self) -> None:
        self._bell.set()

    async def changed(self, seconds: float) -> None:
        """Returns when the run has changed since the last call, or after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        except TimeoutError:
            return
        finally:
            self._bell.clear()


class Watchers:
    def __init__(self) -> None:
        self._watches: dict[RunId, set[Watch]] = {}

    @contextmanager
    def watch(self, run_id: RunId) -> Generator[Watch]:
        watch = Watch()
        self._watches.setdefault(run_id, set()).add(watch)
        try:
            yield watch
        finally:
            watches = self._watches[run_id]
            watches.discard(watch)
            if not watches:
                del self._watches[run_id]

    def ring(self, run_ids: Iterable[RunId]) -> None:
        if not self._watches:
            return
        for run_id in run_ids:
            for watch in self._watches.get(run_id, ()):
                watch.ring()
