"""
The heartbeat of this process in a store that several processes share, so that operators can see which are alive.

It decides only which executor a notification wakes. Whose calls other bridges may take over depends on leases
(`bridge.lease_heartbeat`).
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from datetime import timedelta

import structlog

from trunkline.errors import Unavailable
from trunkline.stores.base import Store
from trunkline.stores.port.operations import Process, SeenProcess
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# What people know this process by.
PROCESS_NAME = f"{socket.gethostname()}:{os.getpid()}"
# Three missed beats.
ALIVE_FOR = timedelta(seconds=15)
_BEAT_EVERY = timedelta(seconds=5)
# For as long people can see that one was there and has not said good-bye.
_KEPT = timedelta(hours=1)


# More than any system has at a time.
_MOST_PROCESSES = 1_000


class ProcessHeartbeat:
    def __init__(
        self,
        store: Store,
        process: Process,
        beat_every: timedelta = _BEAT_EVERY,
        *,
        on_seen: Callable[[Sequence[SeenProcess]], None] | None = None,
    ) -> None:
        """`on_seen` gets all processes after each beat."""
        self._on_seen = on_seen
        self._store = store
        self._process = process
        self._beat_every = beat_every.total_seconds()
        self._failure: str | None = None

    async def run(self) -> None:
        """Until cancelled; then it says good-bye."""
        try:
            while True:
                await self._try_to_beat()
                await asyncio.sleep(self._beat_every)
        finally:
            await self._leave()

    async def _try_to_beat(self) -> None:
        try:
            async with self._store.transaction(durable=False) as tx:
                await tx.processes.heartbeat(self._process, ALIVE_FOR, _KEPT)
            if self._on_seen is not None:
                self._on_seen(await self._store.processes.page(limit=_MOST_PROCESSES))
        except Unavailable as exc:
            # Once for each change: it is tried again all the time.
            if self._failure != exc.message:
                self._failure = exc.message
                log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
        else:
            self._failure = None

    async def _leave(self) -> None:
        try:
            async with self._store.transaction(durable=False) as tx:
                await tx.processes.delete(self._process.id)
        except Unavailable as exc:
            # It counts as gone soon anyway.
            log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)


class WakeShare:
    """
    Which notifications of queued inputs an executor acts on: a batch of them wakes one process, not all.

    The others look once a second anyway. So it does no harm if two executors count differently for a moment, because
    one of them has just started or died: a batch then wakes both of them, or waits for that look.
    """

    def __init__(self, process_id: str) -> None:
        self._process_id = process_id
        # Among the executors that are alive, in the order of their ids, and how many they are.
        self._place, self._number = 0, 1

    def see(self, processes: Sequence[SeenProcess]) -> None:
        executors = sorted(seen.id for seen in processes if seen.alive and "executor" in seen.roles)
        if self._process_id in executors:
            self._place, self._number = executors.index(self._process_id), len(executors)
        else:
            self._place, self._number = 0, 1

    def is_ours(self, wakes: int | None) -> bool:
        return wakes is None or wakes % self._number == self._place
