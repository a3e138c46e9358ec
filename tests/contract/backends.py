"""
Every backend that the contract suites run on.

A new one is a function here and a line in its table: from then on all suites hold it to the same promises.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import pytest
from tests.contract.kafka.kafka_harness import kafka_harness

from trunkline.brokers.base import Broker, TakeResults, TakeTasks
from trunkline.brokers.kafka import KafkaConnection
from trunkline.brokers.memory import MemoryBroker
from trunkline.clock import Clock
from trunkline.messages import TopicNames
from trunkline.stores.base import Store, Transaction
from trunkline.stores.postgres import open_postgres
from trunkline.stores.sqlite import open_sqlite

# Opens the same store every time: what one opening wrote, the next one finds.
OpenStore: TypeAlias = Callable[[], AbstractAsyncContextManager[Store]]
StorePlace: TypeAlias = Callable[[pytest.FixtureRequest, Clock], OpenStore]


class BrokerHarness(NamedTuple):
    """A broker, and a way to wait until all that was published is in the hands of its takers."""

    broker: Broker[Transaction]
    arrive: Callable[[], Awaitable[None]]


OpenBroker: TypeAlias = Callable[
    [Store, TakeTasks[Transaction], TakeResults[Transaction]], AbstractAsyncContextManager[BrokerHarness]
]
BrokerPlace: TypeAlias = Callable[[pytest.FixtureRequest], OpenBroker]


def sqlite(request: pytest.FixtureRequest, clock: Clock) -> OpenStore:
    folder: Path = request.getfixturevalue("tmp_path")
    return lambda: open_sqlite(folder / "trunkline.db", clock=clock)


def postgres(request: pytest.FixtureRequest, clock: Clock) -> OpenStore:
    url: str = request.getfixturevalue("postgres_url")
    return lambda: open_postgres(url, clock=clock)


def memory(_request: pytest.FixtureRequest) -> OpenBroker:
    @asynccontextmanager
    async def open_memory(
        _store: Store, take_tasks: TakeTasks[Transaction], take_results: TakeResults[Transaction]
    ) -> AsyncGenerator[BrokerHarness]:
        broker: MemoryBroker[Transaction] = MemoryBroker()
        broker.deliver_tasks_to(take_tasks)
        broker.deliver_results_to(take_results)
        yield BrokerHarness(broker, _delivered_immediately)

    return open_memory


async def _delivered_immediately() -> None:
    """It has arrived when it is published."""


def kafka(request: pytest.FixtureRequest) -> OpenBroker:
    connection = KafkaConnection(servers=str(request.getfixturevalue("kafka_servers")))
    names: TopicNames = request.getfixturevalue("topics")

    @asynccontextmanager
    async def open_kafka(
        store: Store, take_tasks: TakeTasks[Transaction], take_results: TakeResults[Transaction]
    ) -> AsyncGenerator[BrokerHarness]:
        async with kafka_harness(connection, names, store, take_tasks, take_results) as (broker, arrive):
            yield BrokerHarness(broker, arrive)

    return open_kafka


STORES: Mapping[str, StorePlace] = MappingProxyType({"sqlite": sqlite, "postgres": postgres})
BROKERS: Mapping[str, BrokerPlace] = MappingProxyType({"memory": memory, "kafka": kafka})
