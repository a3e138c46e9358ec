"""A store of every backend, with a fake clock, and a connection to Kafka."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from tests.contract.backends import BROKERS, STORES, OpenBroker, OpenStore

from trunkline.brokers.kafka import KafkaConnection
from trunkline.stores.base import Store
from trunkline.stores.postgres import open_postgres
from trunkline.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=list(STORES))
def open_store(request: pytest.FixtureRequest, clock: FakeClock) -> OpenStore:
    return STORES[str(request.param)](request, clock)


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncGenerator[Store]:
    async with open_store() as opened:
        yield opened


@pytest.fixture(params=list(BROKERS))
def open_broker(request: pytest.FixtureRequest) -> OpenBroker:
    return BROKERS[str(request.param)](request)


@pytest.fixture
def is_shared(request: pytest.FixtureRequest) -> bool:
    """Several processes use the store at a time."""
    assert isinstance(request.node, pytest.Function)
    return request.node.callspec.params["open_store"] != "sqlite"


@pytest.fixture
async def stores(postgres_url: str, clock: FakeClock) -> AsyncGenerator[tuple[Store, Store]]:
    """Two processes at one PostgreSQL, as far as the database can tell."""
    async with (
        open_postgres(postgres_url, clock=clock) as one,
        open_postgres(postgres_url, clock=clock) as two,
    ):
        yield one, two


@pytest.fixture
def one(stores: tuple[Store, Store]) -> Store:
    return stores[0]


@pytest.fixture
def two(stores: tuple[Store, Store]) -> Store:
    return stores[1]


@pytest.fixture
def database(postgres_url: str) -> str:
    return postgres_url.rpartition("/")[2]


@pytest.fixture
def connection(kafka_servers: str) -> KafkaConnection:
    return KafkaConnection(servers=kafka_servers)
