"""
Retention: deletes what is old enough, in small batches: finished runs with their files, firings of
triggers, deliveries of subscriptions, jobs, agent activity, audit entries, received events, cached outputs.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from trunkline.clock import after
from trunkline.errors import Unavailable
from trunkline.executor.output_cache import DEFAULT_MAX_BYTES, MAX_OUTPUTS
from trunkline.ids import RunId
from trunkline.stores.base import Store
from trunkline.stores.blobs import BlobStore
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# Small enough that no other transaction waits noticeably.
_RUNS_A_BATCH = 50
_RUNS_A_LOOK = 500
_ENTRIES_A_BATCH = 500
_ROUND = timedelta(seconds=60)
# Deliveries of subscriptions are kept for no longer than this.
DELIVERIES = timedelta(days=7)
# Of jobs that have ended.
JOBS = timedelta(days=30)
# As long as they are tried, with room for one that is sent again by hand.
_SHORTEST_DELIVERIES = timedelta(days=2)
# What agents had to do is shown minute by minute for no longer than this.
ACTIVITY = timedelta(days=1)
# Longer than the longest period of a rate: the bucket is full again.
_IDLE_RATE = timedelta(hours=2)


class Retention:
    def __init__(
        self,
        store: Store,
        keep: timedelta,
        blobs: BlobStore | None,
        pause: timedelta = _ROUND,
        *,
        keep_audit: timedelta = timedelta(0),
        keep_events: timedelta = timedelta(0),
        max_cache_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        self._store = store
        self._keep = keep
        self._keep_audit = keep_audit
        self._keep_events = keep_events
        self._max_cache_bytes = max_cache_bytes
        self._blobs = blobs
        self._pause = pause.total_seconds()

    async def run(self, stopping: asyncio.Event) -> None:
        """Until `stopping`; a period of 0 keeps all but deliveries, jobs and outputs in the cache."""
        while not stopping.is_set():
            try:
                if self._keep:
                    await self._delete_old(stopping)
                await self._delete_old_deliveries(stopping)
                await self._delete_old_jobs(stopping)
                await self._evict_outputs()
                if self._keep_audit:
                    await self._delete_old_audit(stopping)
                if self._keep_events:
                    await self._delete_old_events(stopping)
            except Unavailable as exc:
                log.error(log_events.STORE_UNAVAILABLE, error=str(exc), fix=exc.fix)
            try:
                async with asyncio.timeout(self._pause):
                    await stopping.wait()
            except TimeoutError:
                continue

    async def _delete_old(self, stopping: asyncio.Event) -> None:
        total = 0
        async with self._store.transaction() as tx:
            await tx.activity.forget(after(tx.now, -min(self._keep, ACTIVITY)))
        while not stopping.is_set():
            async with self._store.transaction() as tx:
                deleted = await tx.runs.delete_finished(after(tx.now, -self._keep), _RUNS_A_BATCH)
            total += deleted
            if deleted < _RUNS_A_BATCH:
                break
        await self._delete_old_firings(stopping)
        async with self._store.transaction() as tx:
            await tx.start_queue.forget_rates(after(tx.now, -_IDLE_RATE))
        if total:
            log.info(log_events.RUNS_DELETED, runs=total)
            if self._blobs is not None:
                await self._delete_files(self._blobs, stopping)

    async def _delete_old_firings(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            async with self._store.transaction() as tx:
                deleted = await tx.triggers.forget_firings(after(tx.now, -self._keep), _ENTRIES_A_BATCH)
            if deleted < _ENTRIES_A_BATCH:
                return

    async def _delete_old_deliveries(self, stopping: asyncio.Event) -> None:
        keep = max(min(self._keep or DELIVERIES, DELIVERIES), _SHORTEST_DELIVERIES)
        while not stopping.is_set():
            async with self._store.transaction() as tx:
                deleted = await tx.subscriptions.forget_deliveries(after(tx.now, -keep), _ENTRIES_A_BATCH)
            if deleted < _ENTRIES_A_BATCH:
                return

    async def _delete_old_jobs(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            async with self._store.transaction() as tx:
                deleted = await tx.jobs.delete(after(tx.now, -JOBS), _ENTRIES_A_BATCH)
            if deleted < _ENTRIES_A_BATCH:
                return

    async def _evict_outputs(self) -> None:
        async with self._store.transaction() as tx:
            await tx.output_cache.evict(max_outputs=MAX_OUTPUTS, max_bytes=self._max_cache_bytes)

    async def _delete_old_audit(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            async with self._store.transaction() as tx:
                deleted = await tx.audit.delete(after(tx.now, -self._keep_audit), _ENTRIES_A_BATCH)
            if deleted < _ENTRIES_A_BATCH:
                return

    async def _delete_old_events(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            async with self._store.transaction() as tx:
                deleted = await tx.received_events.delete(after(tx.now, -self._keep_events), _ENTRIES_A_BATCH)
            if deleted < _ENTRIES_A_BATCH:
                return

    async def _delete_files(self, blobs: BlobStore, stopping: asyncio.Event) -> None:
        """Of the runs that are gone: those whose files a process could not delete before it died are found too."""
        last: RunId | None = None
        while not stopping.is_set():
            runs = await blobs.runs(limit=_RUNS_A_LOOK, after=last)
            if not runs:
                return
            async with self._store.transaction() as tx:
                gone = await tx.runs.unknown(runs)
            for run_id in gone:
                await blobs.delete(run_id)
            last = runs[-1]
