"""Kafka for the contract suites: outbox, relay, the real broker and the consumers, pumped until all has arrived."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from trunkline.brokers.base import Producer, RecordSource, TakeResults, TakeTasks, Undelivered
from trunkline.brokers.kafka import KafkaBroker, KafkaConnection, open_producer, open_source
from trunkline.errors import Unavailable
from trunkline.messages import BrokerRecord, OutgoingMessage, TopicNames
from trunkline.services.commit_loop import CommitPart
from trunkline.services.messaging.deliveries import result_deliveries, task_deliveries
from trunkline.services.messaging.relay import Relay
from trunkline.stores.base import Store, Transaction
from trunkline.telemetry.metrics import Metrics


class CountingProducer:
    """Counts what has arrived at the broker."""

    def __init__(self, inner: Producer) -> None:
        self._inner = inner
        self.sent = 0

    async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
        undelivered = await self._inner.send(messages)
        self.sent += len(messages) - len(undelivered)
        return undelivered


class CountingSource:
    """Counts what is settled."""

    def __init__(self, inner: RecordSource) -> None:
        self._inner = inner
        self.settled = 0

    @property
    def failure(self) -> str | None:
        return self._inner.failure

    def waiting(self, limit: int) -> Sequence[BrokerRecord]:
        return self._inner.waiting(limit)

    def settle(self, records: Sequence[BrokerRecord]) -> None:
        self.settled += len(records)
        self._inner.settle(records)

    def on_arrival(self, notify: Callable[[], None]) -> None:
        self._inner.on_arrival(notify)


class KafkaPump:
    def __init__(self, store: Store, producer: CountingProducer, sources: Sequence[CountingSource]) -> None:
        self._store = store
        self._producer = producer
        self._sources = sources
        self._arrival = asyncio.Event()
        for source in sources:
            source.on_arrival(self._arrival.set)

    async def until_all_has_arrived(self, parts: Sequence[CommitPart]) -> None:
        while (await self._store.backlog.count()).outbox:
            await send_all(Relay(self._store, self._producer, last_seconds=60))
        while sum(source.settled for source in self._sources) < self._producer.sent:
            self._arrival.clear()
            if not any(source.waiting(1) for source in self._sources):
                await self._arrival.wait()
            await commit_turn(self._store, parts)


async def send_all(relay: Relay) -> None:
    """What a relay does that is told to stop."""
    stopping = asyncio.Event()
    stopping.set()
    await relay.run(stopping)


async def commit_turn(store: Store, parts: Sequence[CommitPart]) -> None:
    """One turn of the commit loop, which goes on after one that failed."""
    try:
        async with store.transaction() as tx:
            for part in parts:
                await part.work(tx)
    except Exception as exc:
        if isinstance(exc, Unavailable):
            raise
        for part in parts:
            part.rolled_back()
    else:
        for part in parts:
            part.committed()


async def no_pool(_agent: str) -> str | None:
    return None


@asynccontextmanager
async def kafka_harness(
    connection: KafkaConnection,
    names: TopicNames,
    store: Store,
    take_tasks: TakeTasks[Transaction],
    take_results: TakeResults[Transaction],
) -> AsyncGenerator[tuple[KafkaBroker, Callable[[], asyncio.Future[None]]]]:
    async with (
        open_producer(connection) as opened,
        open_source(connection, group=f"{names.tasks}.bridge", topics=[names.tasks]) as tasks,
        open_source(connection, group=f"{names.results}.executor", topics=[names.results]) as results,
    ):
        producer, sources = CountingProducer(opened), [CountingSource(tasks), CountingSource(results)]
        pump = KafkaPump(store, producer, sources)
        metrics = Metrics()
        parts: list[CommitPart] = [
            task_deliveries(sources[0], take_tasks, metrics),
            result_deliveries(sources[1], take_results, metrics),
        ]

        def arrive() -> asyncio.Future[None]:
            return asyncio.ensure_future(pump.until_all_has_arrived(parts))

        yield KafkaBroker(names, no_pool), arrive
