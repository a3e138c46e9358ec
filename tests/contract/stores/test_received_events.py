"""What every store promises about received events: each finds the steps that wait for it, whichever is first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.contract.samples import NOW, insert, new_run, run_id

from trunkline.clock import Instant
from trunkline.stores.base import Store
from trunkline.stores.port.automation.received_events import EventFilter, EventMatch, EventWait, NewEvent

pytestmark = pytest.mark.anyio


def event(id_: str, type_: str = "paid", key: str | None = "42", *, source: str = "shop") -> NewEvent:
    return NewEvent(id=id_, source=source, type=type_, key=key, data=b'{"id":"%s"}' % id_.encode())


def signal(id_: str, run: int, name: str = "go") -> NewEvent:
    source = f"signal/{run_id(run)}"
    return NewEvent(id=id_, source=source, type=name, key=None, data=b"null", run_id=run_id(run))


def wait(
    run: int,
    *types: str,
    key: str | None = "42",
    step: str = "pay",
    last: int | None = None,
    is_signal: bool = False,
) -> EventWait:
    return EventWait(
        run_id=run_id(run),
        step=step,
        attempt=1,
        types=types or ("paid",),
        key=key,
        is_signal=is_signal,
        last=last,
    )


async def put(store: Store, *events: NewEvent, limit: int = 100) -> list[tuple[str, str, str]]:
    async with store.transaction() as tx:
        return told(await tx.received_events.put(events, limit))


async def await_events(store: Store, *waits: EventWait, limit: int = 10) -> list[list[tuple[str, str, str]]]:
    async with store.transaction() as tx:
        return [told(found) for found in await tx.received_events.await_events(waits, limit)]


def told(matches: Sequence[EventMatch]) -> list[tuple[str, str, str]]:
    return [(match.place.run_id, match.place.step, match.event.id) for match in matches]


async def test_an_event_finds_the_steps_that_wait_for_its_type_and_key(store: Store) -> None:
    for number in range(1, 6):
        await insert(store, new_run(number))
    await await_events(
        store,
        wait(1),
        wait(2, key=None),
        wait(3, key="43"),
        wait(4, "sent", "paid"),
        wait(5, "sent"),
        wait(5, step="go", is_signal=True, key=None),
    )
    assert await put(store, event("a")) == [(run_id(n), "pay", "a") for n in (1, 2, 4)]
    assert await put(store, event("b", key=None)) == [(run_id(2), "pay", "b")]
    assert await put(store, event("c", "other")) == []


async def test_an_event_with_the_same_source_and_id_is_one(store: Store) -> None:
    await insert(store, new_run(1))
    await await_events(store, wait(1))
    assert len(await put(store, event("a"), event("a", "other"), event("a", source="else"))) == 2
    assert await put(store, event("a")) == []
    assert len(await store.received_events.page(EventFilter(), limit=10)) == 2


async def test_a_wait_finds_the_events_that_have_arrived_since_its_run_was_accepted(store: Store) -> None:
    await put(store, event("before"))
    await insert(store, new_run(1))
    await put(store, event("a"), event("b", key="43"), event("c", "sent"), event("d", key=None))
    assert await await_events(store, wait(1)) == [[(run_id(1), "pay", "a")]]
    (found,) = await await_events(store, wait(1, "paid", "sent", key=None, step="any"))
    assert [id_ for _, _, id_ in found] == ["a", "b", "c", "d"]


async def test_a_wait_is_read_in_parts_in_the_order_of_arrival(store: Store) -> None:
    await insert(store, new_run(1))
    await put(store, *(event(f"e{number}") for number in range(5)))
    async with store.transaction() as tx:
        (first,) = await tx.received_events.await_events([wait(1)], 3)
    assert [match.event.id for match in first] == ["e0", "e1", "e2"]
    last = first[-1].event.number
    assert await await_events(store, wait(1, last=last), limit=3) == [
        [(run_id(1), "pay", "e3"), (run_id(1), "pay", "e4")]
    ]


async def test_a_signal_is_for_one_run_alone(store: Store) -> None:
    for number in (1, 2):
        await insert(store, new_run(number))
    waits = [wait(number, "go", key=None, is_signal=True) for number in (1, 2)]
    await await_events(store, waits[0], wait(2, "go", key=None, step="event"))
    assert await put(store, signal("s", 1)) == [(run_id(1), "pay", "s")]
    assert await put(store, signal("t", 2)) == []
    assert await await_events(store, waits[1]) == [[(run_id(2), "pay", "t")]]
    assert await put(store, event("e", "go", key=None)) == [(run_id(2), "event", "e")]


async def test_a_step_that_waits_no_more_is_not_found(store: Store) -> None:
    await insert(store, new_run(1))
    await await_events(store, wait(1), wait(1, step="other"))
    async with store.transaction() as tx:
        await tx.received_events.stop_awaiting([(run_id(1), "pay")])
    assert await put(store, event("a")) == [(run_id(1), "other", "a")]


async def test_events_with_many_waiting_steps_are_brought_to_all_of_them_in_parts(store: Store) -> None:
    for number in range(1, 8):
        await insert(store, new_run(number))
    await await_events(store, *(wait(number, key=None) for number in range(1, 8)))
    found = await put(store, event("a"), event("b"), limit=5)
    assert len(found) == 5
    while True:
        async with store.transaction() as tx:
            more = told(await tx.received_events.find_more(4))
        if not more:
            break
        found += more
    assert sorted(found) == sorted((run_id(n), "pay", id_) for n in range(1, 8) for id_ in "ab")


async def test_events_are_listed_newest_first(store: Store) -> None:
    await insert(store, new_run(1))
    await put(store, event("a"), event("b", "sent"), event("c", key="43"), signal("s", 1))
    reads = store.received_events

    async def ids(where: EventFilter, *, before: int | None = None) -> list[str]:
        return [each.id for each in await reads.page(where, limit=2, before=before)]

    assert await ids(EventFilter()) == ["c", "b"]
    second = (await reads.page(EventFilter(), limit=2))[-1].number
    assert await ids(EventFilter(), before=second) == ["a"]
    assert await ids(EventFilter(type="paid", key="42")) == ["a"]
    assert await ids(EventFilter(run_id=run_id(1))) == ["s"]
    found = await reads.get("c")
    assert found is not None
    assert (found.type, found.key, found.source, found.data) == ("paid", "43", "shop", b'{"id":"c"}')
    assert await reads.get("x") is None


async def test_old_events_are_deleted_and_their_numbers_never_come_again(store: Store) -> None:
    await put(store, event("a"), event("b"))
    await insert(store, new_run(1))
    async with store.transaction() as tx:
        assert await tx.received_events.delete(Instant(NOW + 10**9), 1) == 1
        assert await tx.received_events.delete(Instant(NOW + 10**9), 10) == 1
        assert await tx.received_events.delete(Instant(NOW + 10**9), 10) == 0
    await put(store, event("c"))
    assert await await_events(store, wait(1)) == [[(run_id(1), "pay", "c")]]


async def test_an_event_and_a_wait_that_are_written_at_the_same_time_find_each_other(store: Store) -> None:
    rounds = range(1, 21)
    for number in rounds:
        await insert(store, new_run(number))
    found: list[tuple[str, str, str]] = []
    for number in rounds:
        mine = wait(number, f"type{number}")
        arrived, (waited,) = await asyncio.gather(
            put(store, event(f"e{number}", f"type{number}")), await_events(store, mine)
        )
        found += [*arrived, *waited]
    assert sorted(set(found)) == sorted((run_id(number), "pay", f"e{number}") for number in rounds)
