"""Bridges on one PostgreSQL at the same time: only one of them gets each task, for as long as its lease lasts."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.contract.bridges import DEAD, LEASE, ME, answer, claim, done, hold, numbers, register, stop
from tests.contract.samples import insert, key_of, new_run, queue, run_id, task

from trunkline.stores.base import Store, TaskKey
from trunkline.stores.port.transfer import TASKS
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

OTHER = "another bridge"


async def test_a_task_is_claimed_by_one_of_two_bridges(one: Store, two: Store) -> None:
    await queue(one, *(task(number) for number in range(1, 41)))
    await hold(one, ME)
    await hold(one, OTHER)
    claims = await asyncio.gather(*(claim(*pair, limit=7) for pair in ((one, ME), (two, OTHER)) * 4))
    keys = [each.key for claimed in claims for each in claimed]
    assert len(keys) == len(set(keys))


async def test_an_agent_never_has_more_calls_than_it_allows_over_all_bridges(one: Store, two: Store) -> None:
    await register(one, "A", 3)
    await queue(one, *(task(number) for number in range(1, 41)))
    for _ in range(10):
        mine, others = await asyncio.gather(claim(one, ME), claim(two, OTHER))
        backlog = await one.backlog.count()
        assert backlog.claimed_tasks <= 3
        await answer(one, *map(done, mine), owner=ME)
        await answer(one, *map(done, others), owner=OTHER)


async def test_a_bridge_that_finds_an_agent_locked_looks_again_at_once(
    one: Store, two: Store, clock: FakeClock
) -> None:
    await register(one, "A", 1)
    await queue(one, task(1), task(2))
    await hold(one, ME)
    await hold(one, OTHER)
    async with one.transaction() as first, two.transaction() as second:
        claimed = await first.tasks.claim(ME, 1)
        assert len(claimed) == 1
        assert await second.tasks.claim(OTHER, 10) == []
        again = await second.tasks.next_poll()
    assert again is not None
    assert clock.now() <= again <= clock.now() + 100_000
    await answer(one, *map(done, claimed))
    assert numbers(await claim(two, OTHER)) == {run_id(2)}


async def test_bridges_claim_from_an_agent_with_free_slots_at_the_same_moment(one: Store, two: Store) -> None:
    await register(one, "A", 100)
    await queue(one, *(task(number) for number in range(1, 101)))
    await hold(one, ME)
    await hold(one, OTHER)
    async with one.transaction() as first, two.transaction() as second:
        mine = await first.tasks.claim(ME, 100)
        others = await second.tasks.claim(OTHER, 100)
        again = await second.tasks.next_poll()
    assert mine
    assert others
    assert numbers(mine).isdisjoint(numbers(others))
    # Each has had its share, and there is more.
    assert again is not None


async def test_a_bridge_looks_again_for_no_agent_that_has_no_slot(one: Store, two: Store) -> None:
    await register(one, "A", 1)
    await queue(one, task(1), task(2))
    await claim(one, ME)
    await hold(two, OTHER)
    async with one.transaction() as first, two.transaction() as second:
        assert await first.tasks.claim(ME, 10) == []
        assert await second.tasks.claim(OTHER, 10) == []
        assert await second.tasks.next_poll() is None


async def test_the_last_slots_are_for_one_bridge_alone(one: Store, two: Store) -> None:
    # Of two bridges each may claim one without a wait while two slots are free.
    await register(one, "A", 3)
    await queue(one, *(task(number) for number in range(1, 11)))
    await hold(one, ME)
    await hold(one, OTHER)
    async with one.transaction() as slow:
        assert len(await slow.tasks.claim(ME, 10)) == 1
        async with two.transaction() as quick:
            assert len(await quick.tasks.claim(OTHER, 10)) == 1
        async with two.transaction() as quick:
            assert len(await quick.tasks.claim(OTHER, 10)) == 1
        async with two.transaction() as last:
            # One slot is free, and who has looked earlier may be using it.
            assert await last.tasks.claim(OTHER, 10) == []
            assert await last.tasks.next_poll() is not None
    assert len(await claim(two, OTHER)) == 0


async def test_a_claim_needs_a_lease_that_lasts(one: Store, clock: FakeClock) -> None:
    await queue(one, task(1))
    await hold(one, ME)
    clock.advance(LEASE)
    async with one.transaction() as tx:
        assert await tx.tasks.claim(ME, 10) == []
        await tx.leases.hold(ME, LEASE)
        assert len(await tx.tasks.claim(ME, 10)) == 1


async def test_tasks_of_a_bridge_whose_lease_has_passed_are_taken_by_one_of_the_others(
    one: Store, two: Store, clock: FakeClock
) -> None:
    await queue(one, *(task(number, at_most_once=number % 2 == 0) for number in range(1, 9)))
    await hold(one, "frozen", LEASE)
    async with one.transaction() as tx:
        held = await tx.tasks.claim("frozen", 10)
    clock.advance(LEASE - timedelta(seconds=1))
    await hold(one, ME)
    await hold(one, OTHER)

    async def reclaim(store: Store, owner: str) -> list[TaskKey]:
        async with store.transaction() as tx:
            return [each.key for each in (await tx.tasks.reclaim(owner)).in_doubt]

    assert await reclaim(one, ME) == []
    clock.advance(timedelta(seconds=1))
    both = await asyncio.gather(reclaim(one, ME), reclaim(two, OTHER), reclaim(one, ME), reclaim(two, OTHER))
    in_doubt = [key for keys in both for key in keys]
    assert sorted(in_doubt, key=str) == sorted((each.key for each in held if each.task.at_most_once), key=str)
    again = await claim(one, ME)
    assert {each.key for each in again} == {each.key for each in held if not each.task.at_most_once}
    # The frozen one wakes up: what was taken from it is not its own, what is in doubt still is.
    late = await answer(one, *map(done, held), owner="frozen")
    assert late == {each.key for each in again}


async def test_nothing_is_reclaimed_while_the_database_has_not_been_up_for_long(one: Store) -> None:
    await queue(one, task(1))
    await claim(one, DEAD)
    async with one.transaction() as tx:
        await tx.tasks.reclaim(ME, timedelta(days=3650))
    assert await claim(one) == []
    async with one.transaction() as tx:
        await tx.tasks.reclaim(ME)
    assert len(await claim(one)) == 1


async def test_a_stop_meets_a_task_that_another_bridge_is_just_taking_in(one: Store, two: Store) -> None:
    await insert(one, *(new_run(number) for number in range(1, 21)))
    for number in range(1, 21):
        stopped, _ = await asyncio.gather(stop(one, key_of(task(number))), queue(two, task(number)))
        assert [each.was for each in stopped] in ([], ["queued"])
        assert await claim(one) == []


async def test_a_stop_for_a_run_that_is_gone_leaves_nothing(one: Store) -> None:
    assert await stop(one, key_of(task(1))) == []
    async with one.transaction() as tx:
        assert [row async for batch in tx.transfer.dump(TASKS) for row in batch] == []
