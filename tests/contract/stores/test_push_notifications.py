"""What every store promises about push notifications: the task is polled at once, whichever bridge has claimed it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.contract.bridges import LATER, answer, claim, done, hold, register, stop, taken
from tests.contract.samples import insert, new_run, queue, run_id, task

from trunkline.clock import after
from trunkline.messages import TaskKey
from trunkline.services.agents.push_notifications import PushNotifications, PushTokenKey
from trunkline.services.security.vault import KEY_BYTES
from trunkline.stores.base import ClaimedTask, Store, TaskAnswer
from trunkline.telemetry.metrics import Metrics

VAULT_KEY = bytes(range(KEY_BYTES))

pytestmark = pytest.mark.anyio


async def claimed_one(store: Store) -> ClaimedTask:
    await register(store, "A")
    await insert(store, new_run(1))
    await hold(store, "me")
    await queue(store, task(1))
    (claimed,) = await claim(store)
    return claimed


async def ring(store: Store, key: TaskKey) -> bool:
    async with store.transaction() as tx:
        return await tx.tasks.poll_soon(key)


async def test_a_remote_task_is_asked_for_at_once(store: Store) -> None:
    claimed = await claimed_one(store)
    await answer(store, taken(claimed, LATER))
    assert await claim(store) == []
    assert await ring(store, claimed.key)
    assert [again.key for again in await claim(store)] == [claimed.key]


async def test_a_push_before_the_remote_task_is_known_is_not_lost(store: Store) -> None:
    claimed = await claimed_one(store)
    assert await ring(store, claimed.key)
    await answer(store, taken(claimed, LATER))
    assert [again.key for again in await claim(store)] == [claimed.key]


async def test_a_push_outlives_what_is_written_during_the_call(store: Store) -> None:
    claimed = await claimed_one(store)
    assert await ring(store, claimed.key)
    held = TaskAnswer(key=claimed.key, epoch=claimed.epoch, holds=True, remote_task_id="remote")
    await answer(store, held)
    await answer(store, taken(claimed, LATER))
    assert [again.key for again in await claim(store)] == [claimed.key]


async def test_a_push_during_a_poll_causes_one_more_poll(store: Store) -> None:
    claimed = await claimed_one(store)
    await answer(store, taken(claimed, LATER))
    await ring(store, claimed.key)
    (asking,) = await claim(store)
    await ring(store, claimed.key)
    await answer(store, taken(asking, LATER, 2))
    again = await claim(store)
    assert [each.key for each in again] == [claimed.key]
    await answer(store, taken(again[0], LATER, 3))
    assert await claim(store) == [], "one ring, one question"


async def test_the_bridge_knows_when_to_look_after_a_push(store: Store) -> None:
    claimed = await claimed_one(store)
    await ring(store, claimed.key)
    await answer(store, taken(claimed, LATER))
    async with store.transaction() as tx:
        poll = await tx.tasks.next_poll()
        assert poll is not None
        assert poll <= tx.now
        assert poll < after(LATER, -timedelta(seconds=1))


async def test_a_push_for_a_finished_or_unknown_task_changes_nothing(store: Store) -> None:
    claimed = await claimed_one(store)
    await answer(store, done(claimed))
    assert not await ring(store, claimed.key)
    assert not await ring(store, TaskKey("none", 1))
    assert await claim(store) == []
    assert [stopped.was for stopped in await stop(store, claimed.key)] == ["done"]


async def push(hooks: PushNotifications, key: TaskKey, times: int) -> None:
    tokens = PushTokenKey(VAULT_KEY)
    sent = (hooks.receive(tokens.address_of(key), tokens.token_of(key)) for _ in range(times))
    assert await asyncio.gather(*sent) == ["asked"] * times


def push_notifications(store: Store, min_interval_seconds: float) -> PushNotifications:
    return PushNotifications(
        PushTokenKey(VAULT_KEY), store, Metrics(), public_url=None, min_interval_seconds=min_interval_seconds
    )


async def test_notifications_that_arrive_together_are_written_once(store: Store) -> None:
    key = (await claimed_one(store)).key
    hooks, woken = push_notifications(store, 0.01), list[str]()
    hooks.on_push(lambda: woken.append("bridge"))
    await push(hooks, key, 500)
    # Later ones may tell of something new, so they are written too.
    await push(hooks, key, 500)
    assert len(await store.exchanges.page(run_id(1), after=0, limit=1_000)) == len(woken) == 2


async def test_notifications_without_pause_wait_for_the_interval(store: Store) -> None:
    key = (await claimed_one(store)).key
    hooks = push_notifications(store, 3_600)
    await push(hooks, key, 1)
    waiting = asyncio.create_task(push(hooks, key, 100))
    # Of other tasks: they do not wait for this one. Transactions take turns, so that theirs come after any of this one.
    tokens = PushTokenKey(VAULT_KEY)
    for attempt in range(key.attempt + 1, key.attempt + 11):
        other = TaskKey(key.task_id, attempt)
        assert await hooks.receive(tokens.address_of(other), tokens.token_of(other)) == "over"
    assert not waiting.done()
    assert len(await store.exchanges.page(run_id(1), after=0, limit=1_000)) == 1
    waiting.cancel()
