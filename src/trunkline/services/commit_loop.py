"""
The commit loop: one transaction at a time, each carrying whatever its parts have waiting.

A process is a list of parts. In embedded mode all of them share one loop, so one commit carries an agent's answer, the
run's next decision, the dispatch of the next task and its claim; each role of its own has a loop of its own.
While one commit waits for the disk, work gathers for the next: the busier it gets, the more each commit carries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from time import perf_counter
from typing import Protocol

import structlog

from trunkline.clock import Clock, Instant, after
from trunkline.errors import Unavailable
from trunkline.stores.base import Store, Transaction
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics

log = structlog.stdlib.get_logger()

# A notification may be lost; this poll of the store is the guarantee.
MAX_IDLE = timedelta(seconds=1)
# An unavailable store is tried again at this interval; waiting work is kept.
_RETRY_PAUSE = 0.5
# Short compared with a call of an agent.
_MAX_GATHERING = 0.01


class CommitPart(Protocol):
    """
    One source of work for the loop.

    `work` writes what is waiting into the transaction. Exactly one of `committed` and `rolled_back` follows; after
    the latter the part still has everything it had.
    """

    async def work(self, tx: Transaction) -> None: ...

    def committed(self) -> None: ...

    def rolled_back(self) -> None: ...

    def next_wake(self) -> Instant | None:
        """When the store will have work for this part without a notification."""
        ...


class CommitLoop:
    def __init__(self, store: Store, clock: Clock, metrics: Metrics, *, gathers: bool = False) -> None:
        """`gathers`: a turn costs the same trips to a server whatever it carries, so a busy loop lets work gather."""
        self._store = store
        self._gathers = gathers
        self._last_turn = 0.0
        self._turn_seconds = metrics.turn_seconds
        self._clock = clock
        # Of our clock before the store's, which decides when something is due.
        self._ahead = 0
        self._parts: Sequence[CommitPart] = ()
        self._wake_event = asyncio.Event()
        self._stopping = False
        self._waiting: list[asyncio.Future[None]] = []
        # Why the last turn failed, for /readyz.
        self.failure: str | None = None

    def set_parts(self, parts: Sequence[CommitPart]) -> None:
        """The parts, in the order in which one's output is the next one's input."""
        self._parts = parts

    def wake(self) -> None:
        self._wake_event.set()

    def stop(self) -> None:
        """Ends the loop after a last turn."""
        self._stopping = True
        self._wake_event.set()

    async def wait_for_turn(self) -> None:
        """Returns when a turn has ended that began after this was called: what was under way is done."""
        turned: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turned)
        self.wake()
        await turned

    async def run(self) -> None:
        while True:
            last = self._stopping
            self._wake_event.clear()
            waiting, self._waiting = self._waiting, []
            await self._turn()
            for turned in waiting:
                # The waiting task may have been cancelled.
                if not turned.done():
                    turned.set_result(None)
            if last:
                return
            await self._wait()

    async def _turn(self) -> None:
        started = perf_counter()
        try:
            async with self._store.transaction() as tx:
                self._ahead = self._clock.now() - tx.now
                for part in self._parts:
                    await part.work(tx)
        except asyncio.CancelledError:
            self._each_rolled_back()
            raise
        except Exception as exc:  # noqa: BLE001 - a worker's outermost loop: it is logged, and tried again
            self._each_rolled_back()
            self._log_failure(exc)
            await asyncio.sleep(_RETRY_PAUSE)
            self._wake_event.set()
        else:
            self.failure = None
            self._last_turn = perf_counter() - started
            self._turn_seconds.observe(self._last_turn)
            for part in self._parts:
                part.committed()

    def _log_failure(self, exc: Exception) -> None:
        before, self.failure = self.failure, str(exc)
        if not isinstance(exc, Unavailable):
            log.exception(log_events.TURN_FAILED)
        elif before != self.failure:
            # Once for each change: it is tried again twice a second.
            log.error(log_events.STORE_UNAVAILABLE, error=self.failure, fix=exc.fix)

    def _each_rolled_back(self) -> None:
        for part in self._parts:
            part.rolled_back()

    async def _wait(self) -> None:
        if self._wake_event.is_set():
            if self._gathers and not self._stopping:
                await asyncio.sleep(min(self._last_turn, _MAX_GATHERING))
            return
        now = Instant(self._clock.now() - self._ahead)
        wakes = (part.next_wake() for part in self._parts)
        until = min([wake for wake in wakes if wake is not None], default=after(now, MAX_IDLE))
        seconds = min(max(until - now, 0) / 1_000_000, MAX_IDLE.total_seconds())
        if seconds == 0:
            # Others get their turn even if a timer is always due.
            await asyncio.sleep(0)
            return
        handle = asyncio.get_running_loop().call_later(seconds, self._wake_event.set)
        await self._wake_event.wait()
        handle.cancel()
