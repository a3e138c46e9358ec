"""What every store promises about push notification configs: none misses a transition that comes after it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest
from tests.contract.samples import NOW, event, insert, new_run, run_id, transition, write

from trunkline.clock import after
from trunkline.services.callbacks.task_updates import put_task_updates, queue_of
from trunkline.stores.base import Store
from trunkline.stores.port.push_configs import PushConfig, PushConfigKey
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

KEY = PushConfigKey(run_id(1), "ü %")


def config(number: int = 1, name: str = "c", *, seconds: int = 0) -> PushConfig:
    return PushConfig(
        key=PushConfigKey(run_id(number), name),
        sealed=f"\x00{name}".encode(),
        created_at=after(NOW, timedelta(seconds=seconds)),
    )


async def put(store: Store, *configs: PushConfig, most: int = 10) -> list[bool]:
    async with store.transaction() as tx:
        return [await tx.push_configs.put(each, most=most) for each in configs]


async def names(store: Store, number: int = 1) -> list[str]:
    return [each.key.id for each in await store.push_configs.of_task(run_id(number))]


async def test_configs_come_back_as_they_were_put_oldest_first(store: Store) -> None:
    await insert(store, new_run(1), new_run(2))
    second, first, other = config(name="ü %", seconds=1), config(name="x"), config(2, "x")
    assert await put(store, second, first, other) == [True, True, True]
    assert await store.push_configs.of_task(run_id(1)) == [first, second]
    assert await store.push_configs.get(KEY) == second
    assert await store.push_configs.get(PushConfigKey(run_id(2), "ü %")) is None
    async with store.transaction() as tx:
        keys = await tx.push_configs.keys_of([run_id(1), run_id(2), run_id(3)])
    assert sorted(keys) == sorted([second.key, first.key, other.key])
    page = await store.push_configs.page(limit=2)
    rest = await store.push_configs.page(limit=2, after=page[-1].key)
    assert [each.key for each in (*page, *rest)] == [first.key, second.key, other.key]


async def test_a_task_has_a_limited_number_of_configs_and_replacing_one_is_not_another(store: Store) -> None:
    await insert(store, new_run(1))
    assert await put(store, config(name="a"), config(name="b"), config(name="c"), most=2) == [
        True,
        True,
        False,
    ]
    changed = msgspec.structs.replace(config(name="a"), sealed=b"changed")
    assert await put(store, changed, most=2) == [True]
    assert await names(store) == ["a", "b"]
    assert await store.push_configs.get(changed.key) == changed
    assert await put(store, config(3)) == [False]


async def test_failures_are_noted_and_forgotten_when_a_config_is_enabled_or_replaced(
    store: Store, clock: FakeClock
) -> None:
    await insert(store, new_run(1))
    await put(store, config())
    key = config().key

    async def note(failures: int, *, disable: bool) -> PushConfig | None:
        async with store.transaction() as tx:
            await tx.push_configs.note(key, failures, "HTTP 500", disable=disable)
        return await store.push_configs.get(key)

    failing = await note(2, disable=False)
    assert failing is not None
    assert (failing.failures, failing.error, failing.disabled_at) == (2, "HTTP 500", None)
    disabled_at = clock.now()
    await note(3, disable=True)
    clock.advance(timedelta(seconds=9))
    disabled = await note(4, disable=True)
    assert disabled is not None
    assert disabled.disabled_at == disabled_at
    async with store.transaction() as tx:
        assert await tx.push_configs.enable(key)
        assert not await tx.push_configs.enable(KEY)
    assert await store.push_configs.get(key) == config()
    await note(5, disable=True)
    await put(store, config())
    assert await store.push_configs.get(key) == config()


async def test_only_the_same_content_is_encrypted_again(store: Store) -> None:
    await insert(store, new_run(1))
    await put(store, config())
    async with store.transaction() as tx:
        assert not await tx.push_configs.reseal(config().key, b"new", expected=b"other")
        assert await tx.push_configs.reseal(config().key, b"new", expected=config().sealed)
    found = await store.push_configs.get(config().key)
    assert found is not None
    assert found.sealed == b"new"


async def test_a_config_goes_when_it_is_deleted_and_with_its_run(store: Store) -> None:
    await insert(store, new_run(1))
    await put(store, config(name="a"), config(name="b"))
    async with store.transaction() as tx:
        await tx.push_configs.delete(PushConfigKey(run_id(1), "a"))
        await tx.push_configs.delete(PushConfigKey(run_id(1), "a"))
        await tx.push_configs.delete(PushConfigKey(run_id(7), "a"))
    assert await names(store) == ["b"]
    await write(store, transition(1, status="COMPLETED", finished_at=NOW))
    async with store.transaction() as tx:
        assert await tx.runs.delete_finished(after(NOW, timedelta(1)), limit=10) == 1
    assert await names(store) == []


async def test_a_transition_puts_its_updates_into_the_queue_of_each_config(store: Store) -> None:
    await insert(store, new_run(1), new_run(2))
    await put(store, config(name="a"), config(name="b"))
    changes = [
        transition(1, events=[event(1, "RunStarted"), event(2), event(3, "RunCompleted")]),
        transition(2, events=[event(1, "RunStarted")]),
    ]
    async with store.transaction() as tx:
        await tx.runs.write_transitions(changes)
        await put_task_updates(tx, changes)
        claimed = await tx.callbacks.claim("c", limit=10, each=10, lasts=timedelta(seconds=30))
    told = {each.queue: [callback.payload for callback in each.callbacks] for each in claimed}
    expected = [b"1", b"3"]
    assert told == {queue_of(config(name=name).key): expected for name in ("a", "b")}


async def test_a_config_that_comes_while_a_transition_is_written_waits_for_it(one: Store, two: Store) -> None:
    await insert(one, new_run(1))
    change = transition(1, events=[event(1, "RunStarted")])
    async with one.transaction() as tx:
        await tx.runs.write_transitions([change])
        await put_task_updates(tx, [change])
        putting = asyncio.create_task(put(two, config()))
        # A later transition would not see it, and this one has not: it waits.
        assert not (await asyncio.wait([putting], timeout=0.2))[0]
    assert await putting == [True]
    later = transition(1, expected=1, events=[event(2, "RunCompleted")])
    async with one.transaction() as tx:
        await tx.runs.write_transitions([later])
        await put_task_updates(tx, [later])
    queue = await two.callbacks.queue(queue_of(config().key))
    assert queue is not None
    assert queue.waiting == 1


async def test_a_transition_sees_a_config_that_was_put_while_it_waited(one: Store, two: Store) -> None:
    await insert(one, new_run(1))
    change = transition(1, events=[event(1, "RunStarted")])

    async def move() -> None:
        async with two.transaction() as tx:
            await tx.runs.write_transitions([change])
            await put_task_updates(tx, [change])

    async with one.transaction() as tx:
        assert await tx.push_configs.put(config(), most=10)
        moving = asyncio.create_task(move())
        assert not (await asyncio.wait([moving], timeout=0.2))[0]
    await moving
    queue = await one.callbacks.queue(queue_of(config().key))
    assert queue is not None
    assert queue.waiting == 1
