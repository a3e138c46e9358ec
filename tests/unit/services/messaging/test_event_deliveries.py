"""Records of event sources into the store: what a turn carries, and how many dead letters may come of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.services.messaging.test_deliveries import FakeSource, letters, turn

from trunkline.messages import BrokerRecord
from trunkline.services.commit_loop import CommitLoop
from trunkline.services.events.intake import EventIntake
from trunkline.services.events.sources import event_sources
from trunkline.services.messaging.deliveries import Deliveries
from trunkline.services.messaging.event_deliveries import MappedRecord, event_deliveries
from trunkline.stores.base import Store
from trunkline.stores.port.automation.received_events import EventFilter
from trunkline.stores.sqlite.store import open_sqlite
from trunkline.system_clock import SystemClock
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

NO_EVENT = b"{"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncGenerator[Store]:
    async with open_sqlite(tmp_path / "trunkline.db", clock=clock) as opened:
        yield opened


def part_of(
    store: Store, records: FakeSource, *, max_bytes: int = 1_000, max_dead_letters: int = 10
) -> Deliveries[MappedRecord]:
    (source,) = event_sources(
        [{"topic": "orders", "type": "a", "data": "1", "max_bytes": max_bytes}],
        servers="kafka:1",
        own_topics=[],
    )
    intake = EventIntake(CommitLoop(store, SystemClock(), Metrics()))
    return event_deliveries(records, source, intake, Metrics(), max_dead_letters=max_dead_letters)


def record(offset: int, value: bytes = b"1") -> BrokerRecord:
    return BrokerRecord(topic="orders", partition=0, offset=offset, key=None, value=value)


async def events(store: Store) -> list[str]:
    return [event.id for event in await store.received_events.page(EventFilter(), limit=100)]


async def test_a_record_that_comes_twice_is_one_event(store: Store) -> None:
    part = part_of(store, FakeSource(record(1), record(1), record(2)))
    await turn(store, part)
    await turn(store, part_of(store, FakeSource(record(2))))
    assert await events(store) == ["orders:0:2", "orders:0:1"]


async def test_large_records_are_for_several_turns(store: Store) -> None:
    large = b'"' + b"x" * (9 << 20) + b'"'
    records = FakeSource(*(record(number, large) for number in range(3)))
    part = part_of(store, records, max_bytes=10 << 20)
    stored: list[int] = []
    while part.next_wake() is not None:
        await turn(store, part)
        stored.append(len(await events(store)))
    assert stored == [1, 2, 3]


async def test_the_value_of_a_record_that_is_too_large_is_not_kept(store: Store) -> None:
    await turn(store, part_of(store, FakeSource(record(1, b"1" * 11)), max_bytes=10))
    found = [(letter.value, "11 bytes" in letter.reason) for letter in await letters(store)]
    assert found == [(None, True)]


async def test_records_wait_while_there_are_too_many_dead_letters(store: Store, clock: FakeClock) -> None:
    records = FakeSource(record(1, NO_EVENT), record(2, NO_EVENT))
    part = part_of(store, records, max_dead_letters=2)
    await turn(store, part)
    records.records = [record(3, NO_EVENT), record(4)]
    await turn(store, part)
    assert (len(records.records), await events(store)) == (2, [])
    assert part.failure is not None
    assert "2 dead letters or more" in part.failure
    wake = part.next_wake()
    assert wake is not None
    assert wake > clock.now()
    async with store.transaction() as tx:
        await tx.dead_letters.take((await letters(store))[0].id)
    clock.advance(timedelta(microseconds=wake - clock.now()))
    await turn(store, part)
    assert (records.records, await events(store), part.failure) == ([], ["orders:0:4"], None)
    assert [letter.offset for letter in await letters(store)] == [2, 3]
