"""
Publishes the outbox: takes what no other relay has taken, sends it, and deletes it only when it is acknowledged.

Taking and deleting are one transaction around the sending, so a relay that dies leaves everything as it was. What is
sent twice is applied once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import NamedTuple

import structlog

from trunkline.brokers.base import Producer, Undelivered
from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.messages import OutgoingMessage
from trunkline.stores.base import Store, Transaction
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

_MAX_BATCH = 500
# A wake-up may be lost, and other processes may have left messages.
_MAX_IDLE = 1.0
_FIRST_PAUSE = 0.5
_MAX_PAUSE = 5.0
# How long a stop waits for a last sending.
LAST_SECONDS = 1.0
# What waits for a topic that is on hold is taken and put back on the way to what can be sent; so often in a row.
_MAX_HELD_BATCHES = 20


class Relay:
    def __init__(self, store: Store, producer: Producer, *, last_seconds: float = LAST_SECONDS) -> None:
        self._store = store
        self._producer = producer
        self._last_seconds = last_seconds
        self._wake_event = asyncio.Event()
        self._holds: dict[str, _TopicHold] = {}
        self._pause = _FIRST_PAUSE
        self._unavailable: str | None = None

    @property
    def trouble(self) -> str | None:
        """Why something cannot be sent at present, for /readyz."""
        return self._unavailable or next((hold.reason for hold in self._holds.values()), None)

    def wake(self) -> None:
        self._wake_event.set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Until `stopping` is set and what is left has been sent, if it can be at once; others send the rest."""
        async with asyncio.TaskGroup() as group:
            work = group.create_task(self._work(stopping))
            await stopping.wait()
            self._wake_event.set()
            await asyncio.wait([work], timeout=self._last_seconds)
            work.cancel()

    async def _work(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            self._wake_event.clear()
            nap = _MAX_IDLE if await self._publish_all() else self._next_pause()
            await self._wait(nap, stopping)
        if self._unavailable is None:
            await self._publish_all()

    def _next_pause(self) -> float:
        pause, self._pause = self._pause, min(self._pause * 2, _MAX_PAUSE)
        return pause

    async def _wait(self, seconds: float, stopping: asyncio.Event) -> None:
        # While the broker is unavailable only a stop shortens the pause.
        woken = stopping if self._unavailable else self._wake_event
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await woken.wait()

    async def _publish_all(self) -> bool:
        """Sends all that can be sent; False when the broker or the store is away."""
        in_vain = 0
        while in_vain < _MAX_HELD_BATCHES:
            try:
                async with self._store.transaction(durable=False) as tx:
                    taken = await tx.outbox.take(_MAX_BATCH)
                    kept = await self._send(tx, taken) if taken else 0
            except Unavailable as exc:
                self._log_unavailable(exc)
                return False
            except Exception as exc:
                # A worker's outermost loop: it is logged, and tried again.
                log.exception(log_events.TURN_FAILED)
                self._unavailable = str(exc)
                return False
            self._log_available()
            if len(taken) < _MAX_BATCH:
                return True
            in_vain = in_vain + 1 if kept == len(taken) else 0
        return True

    async def _send(self, tx: Transaction, taken: Sequence[OutgoingMessage]) -> int:
        """How many of them stay in the outbox."""
        now = monotonic()
        held = [message for message in taken if self._is_held(message.topic, now)]
        ready = [message for message in taken if not self._is_held(message.topic, now)]
        undelivered = await self._produce(ready) if ready else []
        self._update_holds(ready, undelivered)
        kept = [*held, *(message for message, _ in undelivered)]
        if kept:
            await tx.outbox.put(kept)
        return len(kept)

    async def _produce(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
        try:
            return await self._producer.send(messages)
        except Unavailable as exc:
            raise _BrokerUnavailable(exc.message, fix=exc.fix) from exc

    def _is_held(self, topic: str, now: float) -> bool:
        hold = self._holds.get(topic)
        return hold is not None and now < hold.until

    def _update_holds(self, sent: Sequence[OutgoingMessage], undelivered: Sequence[Undelivered]) -> None:
        """A topic that takes nothing is left alone for a while; one that takes some is none of these."""
        given_up = Counter(message.topic for message, _ in undelivered)
        reasons = {message.topic: reason for message, reason in undelivered}
        for topic, number in Counter(message.topic for message in sent).items():
            if given_up[topic] == number:
                self._hold(topic, reasons[topic], number)
            elif self._holds.pop(topic, None) is not None:
                log.info(log_events.BROKER_BACK, topic=topic)

    def _hold(self, topic: str, reason: str, number: int) -> None:
        before = self._holds.get(topic)
        if before is None or before.reason != reason:
            log.error(log_events.MESSAGES_UNDELIVERED, topic=topic, messages=number, error=reason)
        pause = _FIRST_PAUSE if before is None else min(before.pause * 2, _MAX_PAUSE)
        self._holds[topic] = _TopicHold(reason, monotonic() + pause, pause)

    def _log_unavailable(self, exc: Unavailable) -> None:
        if self._unavailable is None:
            event = (
                log_events.BROKER_UNAVAILABLE
                if isinstance(exc, _BrokerUnavailable)
                else log_events.STORE_UNAVAILABLE
            )
            log.error(event, error=exc.message, fix=exc.fix)
        self._unavailable = exc.message

    def _log_available(self) -> None:
        if self._unavailable is not None:
            log.info(log_events.BROKER_BACK)
        self._unavailable = None
        self._pause = _FIRST_PAUSE


class _BrokerUnavailable(Unavailable):
    """The broker cannot be reached, as opposed to the store."""


class _TopicHold(NamedTuple):
    """A topic that takes nothing at present."""

    reason: str
    until: float
    pause: float


class OutboxNotifier:
    """
    The last part of a commit loop that publishes: wakes the relay once a turn is committed.

    Before that the relay would find nothing. To look in vain costs it less than every writer to say what it wrote.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring

    async def work(self, tx: Transaction) -> None:
        del tx

    def committed(self) -> None:
        self._ring()

    def rolled_back(self) -> None:
        """There is nothing to publish."""

    def next_wake(self) -> Instant | None:
        return None
