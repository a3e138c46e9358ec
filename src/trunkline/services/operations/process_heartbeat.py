"""
The heartbeat of this process in a store that several processes share, so that operators can see which are alive.

Nothing is decided by it: whose calls other bridges may take over depends on leases (`bridge.heartbeat`).
"""

from __future__ import annotations

import asyncio
import os
import socket
from datetime import timedelta

import structlog

from trunkline.errors import Unavailable
from trunkline.stores.base import Store
from trunkline.stores.port.operations import Process
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# What people know this process by.
PROCESS_NAME = f"{socket.gethostname()}:{os.getpid()}"
# Three missed beats.
LASTS = timedelta(seconds=15)
_BEAT_EVERY = timedelta(seconds=5)
# For as long people can see that one was there and has not said good-bye.
_KEPT = timedelta(hours=1)


class ProcessHeartbeat:
    def __init__(self, store: Store, process: Process, beat_every: timedelta = _BEAT_EVERY) -> None:
        self._store = store
        self._process = process
        self._beat_every = beat_every.total_seconds()
        self._trouble: str | None = None

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
                await tx.processes.heartbeat(self._process, LASTS, _KEPT)
        except Unavailable as exc:
            # Once for each change: it is tried again all the time.
            if self._trouble != exc.message:
                self._trouble = exc.message
                log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
        else:
            self._trouble = None

    async def _leave(self) -> None:
        try:
            async with self._store.transaction(durable=False) as tx:
                await tx.processes.delete(self._process.id)
        except Unavailable as exc:
            # It counts as gone soon anyway.
            log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
