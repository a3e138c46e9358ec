"""
Every backend that the contract suites run on.

A new one is a function here and a line in its table: from then on all suites hold it to the same promises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import pytest

from trunkline.brokers.base import Broker, TakeResults, TakeTasks
from trunkline.brokers.memory import MemoryBroker
from trunkline.clock import Clock
from trunkline.stores.base import Store, Transaction
from trunkline.stores.postgres import open_postgres
from trunkline.stores.sqlite import open_sqlite

# Opens the same store every time: what one opening wrote, the next one finds.
OpenStore: TypeAlias = Callable[[], AbstractAsyncContextManager[Store]]
StorePlace: TypeAlias = Callable[[pytest.FixtureRequest, Clock], OpenStore]
MakeBroker: TypeAlias = Callable[[TakeTasks[Transaction], TakeResults[Transaction]], Broker[Transaction]]


def sqlite(request: pytest.FixtureRequest, clock: Clock) -> OpenStore:
    folder: Path = request.getfixturevalue("tmp_path")
    return lambda: open_sqlite(folder / "trunkline.db", clock=clock)


def postgres(request: pytest.FixtureRequest, clock: Clock) -> OpenStore:
    url: str = request.getfixturevalue("postgres_url")
    return lambda: open_postgres(url, clock=clock)


def memory(take_tasks: TakeTasks[Transaction], take_results: TakeResults[Transaction]) -> Broker[Transaction]:
    broker: MemoryBroker[Transaction] = MemoryBroker()
    broker.deliver_tasks_to(take_tasks)
    broker.deliver_results_to(take_results)
    return broker


STORES: Mapping[str, StorePlace] = MappingProxyType({"sqlite": sqlite, "postgres": postgres})
BROKERS: Mapping[str, MakeBroker] = MappingProxyType({"memory": memory})
