"""
Takes records from a broker into the store: a part of the commit loop.

A whole batch goes into the turn's transaction, and its offsets move when that is committed. A record that cannot be
read, or that the store refuses, goes to the dead letters, raw and with its reason, and the others go on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from time import monotonic
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec
import structlog

from trunkline.brokers.base import RecordSource, TakeResults, TakeTasks, TaskMessage
from trunkline.clock import Instant, after
from trunkline.errors import Unavailable
from trunkline.messages import AgentResult, BrokerRecord, TaskKey
from trunkline.messages.codec import (
    MessageReference,
    UnreadableMessage,
    decode_result,
    decode_task,
    read_result,
    read_task,
)
from trunkline.services.messaging.dead_letters import dead_letter, put_dead_letters
from trunkline.services.messaging.orphan_messages import Orphan, OrphanMessages
from trunkline.services.subscriptions.reporter import ChangeReporter
from trunkline.stores.base import Transaction
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics

log = structlog.stdlib.get_logger()

# Bounds the time for which one transaction holds its locks.
_MAX_PER_TURN = 500
# The same, where reading takes long: the rest is for the next turn.
_MAX_READING_SECONDS = 0.05
_MAX_BYTES_PER_TURN = 16 * 1024 * 1024
# How long a source of other systems rests that has brought as many dead letters as may be kept.
_REST = timedelta(seconds=5)
_NOW = Instant(0)

AnyMessage = TypeVar("AnyMessage")
AnyMessage_contra = TypeVar("AnyMessage_contra", contravariant=True)

Take: TypeAlias = Callable[[Transaction, Sequence[AnyMessage]], Awaitable[None]]
Lookup: TypeAlias = Callable[[Transaction, Collection[TaskKey]], Awaitable[Mapping[TaskKey, bytes]]]


class RecordCodec(NamedTuple, Generic[AnyMessage]):
    """How the records of one topic become messages."""

    read: Callable[[BrokerRecord], AnyMessage | MessageReference]
    # What a record that only names a message refers to.
    look_up: Lookup
    decode: Callable[[bytes], AnyMessage]


class OrphanSearch(Protocol[AnyMessage_contra]):
    async def find(
        self, tx: Transaction, messages: Sequence[AnyMessage_contra]
    ) -> Sequence[Orphan | None]: ...

    def count_late(self, number: int) -> None: ...


class _Delivery(NamedTuple, Generic[AnyMessage]):
    record: BrokerRecord
    message: AnyMessage


class _DeadRecord(NamedTuple):
    record: BrokerRecord
    category: str
    reason: str


class Deliveries(Generic[AnyMessage]):
    """
    A part of the commit loop, before those that use what it brings.

    `take` must leave nothing behind outside the transaction when it fails: it is called again with fewer messages.
    """

    def __init__(
        self,
        source: RecordSource,
        reading: RecordCodec[AnyMessage],
        take: Take[AnyMessage],
        metrics: Metrics,
        orphans: OrphanSearch[AnyMessage] | None = None,
        reporter: ChangeReporter | None = None,
        max_dead_letters: int | None = None,
    ) -> None:
        """
        `reporter`: for the subscriptions to dead letters. `max_dead_letters`: with so many in the store, a record that
        would be one more waits, and so do those behind it.
        """
        self._source = source
        self._codec = reading
        self._take = take
        self._metrics = metrics
        # None: whatever is for a run that there is not is left to `take`.
        self._orphans = orphans
        self._reporter = reporter
        self._max_dead_letters = max_dead_letters
        self._rests_until: Instant | None = None
        self._late = 0
        self._carried: Sequence[BrokerRecord] = ()
        self._dead: list[_DeadRecord] = []
        # A savepoint costs two round trips: it is set in the turn after one that failed.
        self._careful = False

    @property
    def failure(self) -> str | None:
        """Why nothing is taken at present."""
        if self._rests_until is None:
            return self._source.failure
        return (
            f"The store has {self._max_dead_letters:,} dead letters or more, so records that cannot be read wait, and "
            "those behind them. Replay or delete dead letters: trunkline dead-letters list."
        )

    async def work(self, tx: Transaction) -> None:
        self._dead = []
        if self._rests_until is not None and tx.now < self._rests_until:
            return
        self._carried = self._source.waiting(_MAX_PER_TURN)
        if not self._carried:
            return
        deliveries = await self._known(tx, await self._read(tx, self._carried))
        if await self._has_no_room(tx):
            self._forget()
            self._rests_until = after(tx.now, _REST)
            return
        self._rests_until = None
        if deliveries and self._careful:
            await self._take_carefully(tx, deliveries)
        elif deliveries:
            await self._take(tx, [delivery.message for delivery in deliveries])
        if self._dead:
            letters = [dead_letter(dead.record, dead.reason, tx.now) for dead in self._dead]
            await put_dead_letters(tx, letters, self._reporter)

    def committed(self) -> None:
        for dead in self._dead:
            self._metrics.dead_letters.labels(dead.category).inc()
            log.error(
                log_events.DEAD_LETTER,
                topic=dead.record.topic,
                partition=dead.record.partition,
                offset=dead.record.offset,
                reason=dead.reason,
            )
        if self._orphans is not None:
            self._orphans.count_late(self._late)
        for record in self._carried:
            self._metrics.records_consumed.labels(record.topic).inc()
        self._source.settle(self._carried)
        self._careful = False
        self._forget()

    def rolled_back(self) -> None:
        self._careful = True
        self._forget()

    def next_wake(self) -> Instant | None:
        if self._rests_until is not None:
            return self._rests_until
        return _NOW if self._source.waiting(1) else None

    async def _has_no_room(self, tx: Transaction) -> bool:
        most = self._max_dead_letters
        return most is not None and bool(self._dead) and await tx.dead_letters.count(most) >= most

    def _forget(self) -> None:
        self._carried = ()
        self._dead = []
        self._late = 0

    async def _known(
        self, tx: Transaction, deliveries: list[_Delivery[AnyMessage]]
    ) -> list[_Delivery[AnyMessage]]:
        """Those whose runs exist."""
        if self._orphans is None or not deliveries:
            return deliveries
        found = await self._orphans.find(tx, [delivery.message for delivery in deliveries])
        for (record, _), orphan in zip(deliveries, found, strict=True):
            if orphan is not None and orphan.is_late:
                self._late += 1
            elif orphan is not None:
                self._dead.append(_DeadRecord(record, "no_run", orphan.reason))
        return [delivery for delivery, orphan in zip(deliveries, found, strict=True) if orphan is None]

    async def _read(self, tx: Transaction, records: Sequence[BrokerRecord]) -> list[_Delivery[AnyMessage]]:
        found: list[tuple[BrokerRecord, AnyMessage | MessageReference]] = []
        until, size = monotonic() + _MAX_READING_SECONDS, 0
        for number, record in enumerate(records):
            size += len(record.value or b"")
            if number and (size > _MAX_BYTES_PER_TURN or monotonic() > until):
                self._carried = records[:number]
                break
            try:
                found.append((record, self._codec.read(record)))
            except UnreadableMessage as exc:
                # One that is too large to read is too large to keep.
                kept = record if exc.category != "too_large" else msgspec.structs.replace(record, value=None)
                self._dead.append(_DeadRecord(kept, exc.category, exc.reason))
        keys = {message.key for _, message in found if isinstance(message, MessageReference)}
        payloads: Mapping[TaskKey, bytes] = await self._codec.look_up(tx, keys) if keys else {}
        deliveries: list[_Delivery[AnyMessage]] = []
        for record, message in found:
            if not isinstance(message, MessageReference):
                deliveries.append(_Delivery(record, message))
            elif message.key in payloads:
                deliveries.append(_Delivery(record, self._codec.decode(payloads[message.key])))
            # Otherwise it is settled already: a second delivery.
        return deliveries

    async def _take_carefully(self, tx: Transaction, deliveries: Sequence[_Delivery[AnyMessage]]) -> None:
        """Halves what is refused until the bad record is alone."""
        try:
            async with tx.savepoint():
                await self._take(tx, [delivery.message for delivery in deliveries])
        except Unavailable:
            raise
        except Exception as exc:  # noqa: BLE001 - whatever it is that the store cannot take, the others must go on
            if len(deliveries) == 1:
                self._dead.append(_DeadRecord(deliveries[0].record, "refused", _refusal(exc)))
                return
            middle = len(deliveries) // 2
            await self._take_carefully(tx, deliveries[:middle])
            await self._take_carefully(tx, deliveries[middle:])


def _refusal(exc: Exception) -> str:
    # The first line only: what follows may quote the data.
    words = (str(exc).splitlines() or [""])[0]
    return (
        f"The store rejected it: {type(exc).__name__}: {words}. Replay it after you have fixed the "
        "cause, or delete it."
    )


async def _dispatched(tx: Transaction, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
    return await tx.dispatches.payloads(keys)


async def _stored_results(tx: Transaction, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
    return await tx.tasks.results(keys)


_TASKS: RecordCodec[TaskMessage] = RecordCodec(read_task, _dispatched, decode_task)
_RESULTS: RecordCodec[AgentResult] = RecordCodec(read_result, _stored_results, decode_result)


def task_deliveries(
    source: RecordSource,
    take: TakeTasks[Transaction],
    metrics: Metrics,
    orphans: OrphanMessages | None = None,
    reporter: ChangeReporter | None = None,
) -> Deliveries[TaskMessage]:
    return Deliveries(source, _TASKS, take, metrics, orphans, reporter)


def result_deliveries(
    source: RecordSource,
    take: TakeResults[Transaction],
    metrics: Metrics,
    orphans: OrphanMessages | None = None,
    reporter: ChangeReporter | None = None,
) -> Deliveries[AgentResult]:
    return Deliveries(source, _RESULTS, take, metrics, orphans, reporter)
