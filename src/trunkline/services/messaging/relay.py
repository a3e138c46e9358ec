"""
Publishes the outbox: what this process has committed, from memory; what others have left, from the store.

A row is deleted only when its messages are acknowledged: with the next turn of a commit loop, or, for what others have
left, in one transaction around the sending. So a relay that dies leaves everything for another one. What is sent twice
is applied once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import NamedTuple

import structlog

from trunkline.brokers.base import Producer, Undelivered
from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.messages import OutgoingMessage
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.messaging import OutboxBatch
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

_MAX_BATCH = 500
# More than that is left to those who read the store, this relay among them.
_MAX_OFFERED = 5_000
# Longer than a sending takes while all is well. If it takes longer, others may send the same once more.
RESERVED = timedelta(seconds=2)
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
        self._offered: list[OutboxBatch] = []
        self._offered_messages = 0
        self._sent = SentBatches([], [])
        # When to look for what others have left.
        self._look_at = 0.0

    @property
    def failure(self) -> str | None:
        """Why something cannot be sent at present, for /readyz."""
        return self._unavailable or next((hold.reason for hold in self._holds.values()), None)

    def wake(self) -> None:
        """Something is in the outbox without a reservation."""
        self._look_at = 0.0
        self._wake_event.set()

    def offer(self, batch: OutboxBatch) -> None:
        """Sends what has been committed and reserved."""
        if self._offered_messages + len(batch.messages) <= _MAX_OFFERED:
            self._offered.append(batch)
            self._offered_messages += len(batch.messages)
            self._wake_event.set()

    def take_offered(self) -> list[OutboxBatch]:
        offered, self._offered, self._offered_messages = self._offered, [], 0
        return offered

    def take_sent(self) -> SentBatches:
        """What is to be changed in the outbox; a caller that cannot gives it back."""
        sent, self._sent = self._sent, SentBatches([], [])
        return sent

    def give_back(self, sent: SentBatches) -> None:
        self._sent.rows.extend(sent.rows)
        self._sent.left.extend(sent.left)

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
            pause = _MAX_IDLE
            if not await self._send_offered() or (self._look_at <= monotonic() and not await self._look()):
                pause = self._next_pause()
            await self._wait(pause, stopping)
        if self._unavailable is None and await self._send_offered():
            await self._publish_all()

    async def _look(self) -> bool:
        self._look_at = monotonic() + _MAX_IDLE
        return await self._publish_all()

    async def _send_offered(self) -> bool:
        """From memory. What does not arrive stays in the outbox; False when the broker is away."""
        offered = self.take_offered()
        if not offered:
            return True
        now = monotonic()
        messages = [message for batch in offered for message in batch.messages]
        ready = [message for message in messages if not self._is_held(message.topic, now)]
        try:
            undelivered = await self._produce(ready) if ready else []
        except Unavailable as exc:
            self._log_unavailable(exc)
            return False
        except Exception as exc:
            # As for what is read from the store: it is tried again from there.
            log.exception(log_events.TURN_FAILED)
            self._unavailable = str(exc)
            return False
        if ready:
            self._update_holds(ready, undelivered)
            self._log_available()
        arrived = {id(message) for message in ready} - {id(message) for message, _ in undelivered}
        self._sent.left.extend(message for message in messages if id(message) not in arrived)
        self._sent.rows.extend(row for batch in offered for row in batch.rows)
        return True

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
        held_batches = 0
        while held_batches < _MAX_HELD_BATCHES:
            sent = self.take_sent()
            try:
                async with self._store.transaction(durable=False) as tx:
                    await sent.apply(tx)
                    taken = await tx.outbox.take(_MAX_BATCH)
                    kept = await self._send(tx, taken) if taken else 0
            except Unavailable as exc:
                self.give_back(sent)
                self._log_unavailable(exc)
                return False
            except Exception as exc:
                self.give_back(sent)
                # A worker's outermost loop: it is logged, and tried again.
                log.exception(log_events.TURN_FAILED)
                self._unavailable = str(exc)
                return False
            self._log_available()
            if len(taken) < _MAX_BATCH:
                return True
            held_batches = held_batches + 1 if kept == len(taken) else 0
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
                log.info(log_events.BROKER_AVAILABLE, topic=topic)

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
            log.info(log_events.BROKER_AVAILABLE)
        self._unavailable = None
        self._pause = _FIRST_PAUSE


class _BrokerUnavailable(Unavailable):
    """The broker cannot be reached, as opposed to the store."""


class SentBatches(NamedTuple):
    """Rows of the outbox whose messages have been sent, and those of them that have not arrived."""

    rows: list[int]
    left: list[OutgoingMessage]

    async def apply(self, tx: Transaction) -> None:
        """What is left is for another relay, in rows of its own."""
        if self.rows:
            await tx.outbox.delete(self.rows)
        if self.left:
            await tx.outbox.put(self.left)


class _TopicHold(NamedTuple):
    """A topic that takes nothing at present."""

    reason: str
    until: float
    pause: float


class OutboxSender:
    """
    The last part of a commit loop that publishes: hands what a turn has put into the outbox to the relay.

    It also deletes what has arrived since the turn before, so that a sending costs no transaction of its own.
    """

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._batch = OutboxBatch()
        self._sent = SentBatches([], [])
        self._is_working = False

    async def work(self, tx: Transaction) -> None:
        if self._is_working:
            # It would send what another loop has not committed yet.
            raise RuntimeError("An OutboxSender belongs to one commit loop.")
        self._is_working = True
        self._batch = await tx.outbox.reserve(RESERVED)
        # After that: what could not be sent a moment ago is not sent again at once.
        self._sent = self._relay.take_sent()
        await self._sent.apply(tx)

    def committed(self) -> None:
        if self._batch.messages:
            self._relay.offer(self._batch)
        self._forget()

    def rolled_back(self) -> None:
        self._relay.give_back(self._sent)
        self._forget()

    def _forget(self) -> None:
        self._is_working = False
        self._batch = OutboxBatch()
        self._sent = SentBatches([], [])

    def next_wake(self) -> Instant | None:
        return None
