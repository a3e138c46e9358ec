"""The intake of events: a turn stores a limited number of them, and a failed turn loses none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from trunkline.errors import Unavailable
from trunkline.services.commit_loop import CommitLoop
from trunkline.services.events.intake import MAX_EVENTS_PER_TURN, EventIntake
from trunkline.stores.base import Store
from trunkline.stores.port.automation.received_events import EventFilter, NewEvent
from trunkline.stores.sqlite.store import open_sqlite
from trunkline.system_clock import SystemClock
from trunkline.telemetry.metrics import Metrics

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with open_sqlite(tmp_path / "trunkline.db") as opened:
        yield opened


def event(number: int) -> NewEvent:
    return NewEvent(id=f"e{number}", source="shop", type="paid", key=None, data=b"null")


async def test_a_turn_carries_a_bounded_number_of_events_and_the_rest_follows(store: Store) -> None:
    intake = EventIntake(CommitLoop(store, SystemClock(), Metrics()))
    requests = [
        asyncio.ensure_future(intake.put([event(300 * request + place) for place in range(300)]))
        for request in range(3)
    ]
    await asyncio.sleep(0)
    stored: list[int] = []
    while not all(request.done() for request in requests):
        async with store.transaction() as tx:
            await intake.work(tx)
        intake.committed()
        stored.append(len(await store.received_events.page(EventFilter(), limit=1_000)))
        await asyncio.sleep(0)
    assert stored == [300, 600, 900]
    assert (
        max(after - before for before, after in zip([0, *stored], stored, strict=False))
        <= MAX_EVENTS_PER_TURN
    )
    assert intake.next_wake() is None


async def test_events_of_a_turn_that_failed_are_stored_by_the_next_one(store: Store) -> None:
    intake = EventIntake(CommitLoop(store, SystemClock(), Metrics()))
    request = asyncio.ensure_future(intake.put([event(1)]))
    await asyncio.sleep(0)

    async def fail() -> None:
        async with store.transaction() as tx:
            await intake.work(tx)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    intake.rolled_back()
    assert not request.done()
    async with store.transaction() as tx:
        await intake.work(tx)
    intake.committed()
    await request
    assert len(await store.received_events.page(EventFilter(), limit=10)) == 1


async def test_an_exported_store_takes_no_events(store: Store) -> None:
    intake = EventIntake(CommitLoop(store, SystemClock(), Metrics()))

    def refuse() -> None:
        raise Unavailable("It has moved.", fix="Use the new one.")

    intake.refuse_all(refuse)
    with pytest.raises(Unavailable):
        await intake.put([event(1)])
