"""
The lease on everything that this bridge has claimed, renewed while the process lives.

A beat has a transaction of its own: a slow turn of the commit loop does not cost us our calls.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import NamedTuple

import structlog

from trunkline.clock import Instant, after
from trunkline.errors import Unavailable
from trunkline.services.operations.process_heartbeat import PROCESS_NAME
from trunkline.stores.base import Store
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

_RETRY_PAUSE = timedelta(seconds=0.5)
# After an outage of the store every lease may have expired though no bridge has died: each has this long to renew its
# own, ten tries, before any takes over the tasks of another.
RECLAIM_GRACE = timedelta(seconds=5)


class Lease(NamedTuple):
    """Three missed beats: a bridge that is alive but slow keeps its calls."""

    lasts: timedelta = timedelta(seconds=15)
    beat_every: timedelta = timedelta(seconds=5)


class Heartbeat:
    def __init__(self, store: Store, owner: str, lease: Lease) -> None:
        self._store = store
        self._owner = owner
        self._lease = lease
        self._renewed_at: Instant | None = None
        self._stable_from = Instant(0)
        self._failure: str | None = None

    async def beat(self) -> None:
        # A crash may undo a beat; no bridge takes over anything before the next one is due.
        async with self._store.transaction(durable=False) as tx:
            await tx.leases.hold(self._owner, self._lease.lasts, PROCESS_NAME)
            now = tx.now
        if self._renewed_at is not None and now > after(self._renewed_at, self._lease.lasts):
            self._stable_from = after(now, RECLAIM_GRACE)
            log.warning(log_events.LEASE_LOST, seconds=round((now - self._renewed_at) / 1_000_000, 1))
        self._renewed_at = now

    def has_stable_lease(self, now: Instant) -> bool:
        """Our own lease has not lapsed of late: one that has is the dead one's own fault."""
        return self._renewed_at is not None and self._stable_from <= now <= after(
            self._renewed_at, self._lease.lasts
        )

    async def run(self) -> None:
        """Until cancelled; then the lease is given back."""
        try:
            while True:  # noqa: ASYNC110 - a pace, not a wait for something
                await asyncio.sleep((await self._try_to_beat()).total_seconds())
        finally:
            await self._release()

    async def _try_to_beat(self) -> timedelta:
        try:
            await self.beat()
        except Unavailable as exc:
            # Once for each change: it is tried again twice a second.
            if self._failure != exc.message:
                self._failure = exc.message
                log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
            return _RETRY_PAUSE
        except Exception:
            log.exception(log_events.TURN_FAILED)
            return _RETRY_PAUSE
        self._failure = None
        return self._lease.beat_every

    async def _release(self) -> None:
        try:
            async with self._store.transaction() as tx:
                await tx.leases.release(self._owner)
        except Unavailable as exc:
            # It passes by itself.
            log.error(log_events.STORE_UNAVAILABLE, error=str(exc), fix=exc.fix)
