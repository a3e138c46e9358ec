"""What every store promises about callbacks: queues keep their order, and one process at a time sends from each."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import timedelta

import pytest

from trunkline.clock import after
from trunkline.stores.base import Store
from trunkline.stores.port.automation.callbacks import ClaimedQueue, NewCallback, QueueOutcome
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

LASTS = timedelta(seconds=30)


async def put(store: Store, *callbacks: tuple[str, str]) -> None:
    async with store.transaction() as tx:
        await tx.callbacks.put(
            [NewCallback(queue=queue, kind="k", payload=payload.encode()) for queue, payload in callbacks]
        )


async def claim(store: Store, name: str = "c", *, limit: int = 10, each: int = 10) -> list[ClaimedQueue]:
    async with store.transaction() as tx:
        return await tx.callbacks.claim(name, limit=limit, each=each, lasts=LASTS)


async def settle(
    store: Store,
    queue: ClaimedQueue,
    *,
    ended: Collection[int] | None = None,
    failures: int = 0,
    pause: timedelta = timedelta(0),
) -> bool:
    """Without `ended`, all that was claimed."""
    async with store.transaction() as tx:
        return await tx.callbacks.settle(
            QueueOutcome(
                queue=queue.queue,
                claim=queue.claim,
                ended=[each.id for each in queue.callbacks] if ended is None else ended,
                failures=failures,
                next_attempt_at=after(tx.now, pause),
            )
        )


def told(queues: list[ClaimedQueue]) -> dict[str, list[str]]:
    return {each.queue: [callback.payload.decode() for callback in each.callbacks] for each in queues}


async def test_a_claim_has_the_oldest_callbacks_of_each_queue_in_their_order(store: Store) -> None:
    await put(store, ("a \u0000 ü", "1"), ("b", "1"))
    await put(store, ("b", "2"), ("a \u0000 ü", "2"), ("a \u0000 ü", "3"))
    assert told(await claim(store, each=2)) == {"a \u0000 ü": ["1", "2"], "b": ["1", "2"]}


async def test_a_claimed_queue_is_claimed_again_only_when_the_claim_has_ended(
    store: Store, clock: FakeClock
) -> None:
    await put(store, ("a", "1"))
    (first,) = await claim(store, "first")
    assert await claim(store, "second") == []
    assert not await store.callbacks.are_due()
    clock.advance(LASTS)
    assert await store.callbacks.are_due()
    (second,) = await claim(store, "second")
    # Who has lost the claim changes nothing.
    assert not await settle(store, first)
    assert await settle(store, second, ended=())
    assert told(await claim(store, "third")) == {"a": ["1"]}


async def test_a_claim_can_be_extended_by_its_owner_alone(store: Store, clock: FakeClock) -> None:
    await put(store, ("a", "1"))
    (first,) = await claim(store, "first")
    clock.advance(LASTS / 2)
    async with store.transaction() as tx:
        assert await tx.callbacks.extend(first.queue, first.claim, lasts=LASTS)
        assert not await tx.callbacks.extend(first.queue, "other", lasts=LASTS)
        assert not await tx.callbacks.extend("unknown", first.claim, lasts=LASTS)
    clock.advance(LASTS / 2)
    assert await claim(store, "second") == []
    clock.advance(LASTS / 2)
    (second,) = await claim(store, "second")
    async with store.transaction() as tx:
        assert not await tx.callbacks.extend(first.queue, first.claim, lasts=LASTS)
    assert await settle(store, second)


async def test_what_is_settled_is_gone_and_the_rest_stays_in_order(store: Store) -> None:
    await put(store, ("a", "1"), ("a", "2"), ("a", "3"))
    (queue,) = await claim(store)
    await settle(store, queue, ended=[queue.callbacks[0].id])
    (queue,) = await claim(store, "next")
    assert told([queue]) == {"a": ["2", "3"]}
    await settle(store, queue)
    assert await store.callbacks.queue("a") is None
    assert not await store.callbacks.are_due()


async def test_a_failed_queue_waits_for_its_next_attempt_whatever_is_put_into_it(
    store: Store, clock: FakeClock
) -> None:
    await put(store, ("a", "1"))
    (queue,) = await claim(store)
    await settle(store, queue, ended=(), failures=3, pause=timedelta(seconds=60))
    await put(store, ("a", "2"))
    assert await claim(store, "early") == []
    found = await store.callbacks.queue("a")
    assert found is not None
    assert (found.failures, found.waiting, found.is_claimed, found.kind) == (3, 2, False, "k")
    clock.advance(timedelta(seconds=60))
    (queue,) = await claim(store, "next")
    assert (queue.failures, told([queue])) == (3, {"a": ["1", "2"]})


async def test_a_resumed_queue_is_due_as_if_nothing_had_failed(store: Store) -> None:
    await put(store, ("a", "1"))
    (queue,) = await claim(store)
    await settle(store, queue, ended=(), failures=3, pause=timedelta(hours=24))
    async with store.transaction() as tx:
        await tx.callbacks.resume(["a", "unknown"])
    (queue,) = await claim(store, "next")
    assert queue.failures == 0


async def test_a_resumed_queue_keeps_the_claim_of_its_sender(store: Store) -> None:
    await put(store, ("a", "1"))
    (queue,) = await claim(store)
    async with store.transaction() as tx:
        await tx.callbacks.resume(["a"])
    assert await claim(store, "second") == []
    assert await settle(store, queue)


async def test_a_deleted_queue_takes_its_callbacks_along(store: Store) -> None:
    await put(store, ("a", "1"), ("b", "1"))
    (queue, _) = await claim(store)
    async with store.transaction() as tx:
        await tx.callbacks.delete(["a"])
    assert not await settle(store, queue)
    await put(store, ("a", "2"))
    assert told(await claim(store, "next")) == {"a": ["2"]}


async def test_a_callback_that_comes_while_its_queue_is_settled_as_empty_is_not_lost(
    one: Store, two: Store
) -> None:
    await put(one, ("a", "1"))
    (queue,) = await claim(one)
    async with two.transaction() as tx:
        await tx.callbacks.put([NewCallback(queue="a", kind="k", payload=b"2")])
        settling = asyncio.create_task(settle(one, queue))
        # It waits for the transaction that is putting.
        assert not (await asyncio.wait([settling], timeout=0.2))[0]
    assert await settling
    assert told(await claim(two, "next")) == {"a": ["2"]}


async def test_two_processes_claim_different_queues(one: Store, two: Store) -> None:
    await put(one, ("a", "1"), ("b", "1"))
    async with one.transaction() as tx:
        (mine,) = await tx.callbacks.claim("one", limit=1, each=1, lasts=LASTS)
        (theirs,) = await claim(two, "two", limit=2)
    assert {mine.queue, theirs.queue} == {"a", "b"}
