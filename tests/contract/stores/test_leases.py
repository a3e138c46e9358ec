"""
What every store promises about who may call: leases, pools, tasks in doubt, and agents whose secret is missing.

Where one process owns the store, its lock takes the place of leases: everybody else is gone.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.contract.bridges import (
    DEAD,
    LEASE,
    ME,
    agents_of,
    answer,
    claim,
    done,
    hold,
    numbers,
    reclaim,
    register,
    release,
    stop,
    taken,
)
from tests.contract.samples import key_of, queue, queued, run_id, task, transition, write

from trunkline.stores.base import ReclaimedTasks, Store
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

OTHER = "another process"
NOTHING = ReclaimedTasks(in_doubt=[], stopped=[])


# --- leases


async def test_what_a_living_process_has_claimed_is_not_taken_from_it(
    store: Store, clock: FakeClock, is_shared: bool
) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store, OTHER)
    clock.advance(LEASE - timedelta(seconds=1))
    await reclaim(store)
    if is_shared:
        assert await claim(store) == []
        assert await answer(store, done(claimed), owner=OTHER) == set()
    else:
        assert [each.key for each in await claim(store)] == [claimed.key]


async def test_a_lease_that_is_renewed_lasts(store: Store, clock: FakeClock, is_shared: bool) -> None:
    if not is_shared:
        return
    await queue(store, task(1))
    await claim(store, OTHER)
    for _ in range(10):
        clock.advance(LEASE - timedelta(seconds=1))
        await hold(store, OTHER)
        await reclaim(store)
        assert await claim(store) == []


async def test_when_a_lease_has_passed_others_take_what_it_held(store: Store, clock: FakeClock) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store, OTHER)
    clock.advance(LEASE + timedelta(seconds=1))
    assert await reclaim(store) == NOTHING
    (again,) = await claim(store)
    assert (again.key, again.epoch) == (claimed.key, claimed.epoch + 1)
    assert await answer(store, done(claimed), owner=OTHER) == {claimed.key}


async def test_a_late_answer_counts_while_no_other_bridge_has_claimed_the_task(
    store: Store, clock: FakeClock
) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store, OTHER)
    clock.advance(LEASE * 3)
    assert await answer(store, done(claimed), owner=OTHER) == set()
    assert await reclaim(store) == NOTHING
    assert await claim(store) == []


async def test_a_bridge_that_has_lost_its_lease_claims_nothing(
    store: Store, clock: FakeClock, is_shared: bool
) -> None:
    await hold(store, ME)
    await queue(store, task(1))
    clock.advance(LEASE + timedelta(seconds=1))
    async with store.transaction() as tx:
        assert len(await tx.tasks.claim(ME, 10)) == (0 if is_shared else 1)
    if is_shared:
        assert len(await claim(store)) == 1


async def test_a_lease_that_was_given_back_is_over_at_once(store: Store) -> None:
    await queue(store, task(1))
    await claim(store, OTHER)
    await release(store, OTHER)
    await release(store, "nobody")
    await reclaim(store)
    assert len(await claim(store)) == 1


# --- tasks in doubt


async def test_the_late_answer_to_a_task_in_doubt_counts_once(store: Store) -> None:
    await queue(store, task(1, at_most_once=True))
    (claimed,) = await claim(store, DEAD)
    (doubted,) = (await reclaim(store)).in_doubt
    assert (doubted.key, doubted.epoch) == (claimed.key, claimed.epoch)
    assert await claim(store) == []
    assert await answer(store, done(claimed), owner=ME) == {claimed.key}
    late = msgspec.structs.replace(done(claimed), result=b"late")
    assert await answer(store, late, owner=DEAD) == set()
    assert await answer(store, late, owner=DEAD) == {claimed.key}
    async with store.transaction() as tx:
        assert await tx.tasks.results([claimed.key]) == {claimed.key: b"late"}


async def test_a_task_is_put_in_doubt_once_and_stays_known(store: Store) -> None:
    await queue(store, task(1, at_most_once=True))
    await claim(store, DEAD)
    assert len((await reclaim(store)).in_doubt) == 1
    assert await reclaim(store) == NOTHING
    async with store.transaction() as tx:
        await tx.tasks.keep_results({key_of(task(1)): b"unknown"})
    assert await queue(store, task(1, at_most_once=True)) == [b"unknown"]
    assert await claim(store) == []


async def test_a_task_in_doubt_does_not_keep_a_slot_of_its_agent(store: Store) -> None:
    await register(store, "A", 1)
    await queue(store, task(1, at_most_once=True), task(2))
    assert numbers(await claim(store, DEAD)) == {run_id(1)}
    await reclaim(store)
    assert numbers(await claim(store)) == {run_id(2)}


# --- pools


async def test_a_bridge_takes_only_tasks_of_its_pools(store: Store) -> None:
    await queue(store, task(1), task(2, pool="gpu"), task(3, pool="eu"), task(4, agent="B", pool="gpu"))
    assert numbers(await claim(store, pools=["gpu"])) == {run_id(2), run_id(4)}
    assert await claim(store, pools=["gpu"]) == []
    assert numbers(await claim(store, pools=[None])) == {run_id(1)}
    await queue(store, task(5), task(6, pool="gpu"))
    assert numbers(await claim(store, pools=[None, "eu"])) == {run_id(3), run_id(5)}
    assert numbers(await claim(store)) == {run_id(6)}


async def test_a_bridge_asks_only_for_tasks_of_its_pools(store: Store, clock: FakeClock) -> None:
    await queue(store, task(1, pool="gpu"), task(2))
    for each in await claim(store):
        await answer(store, taken(each))
    clock.advance(timedelta(seconds=30))
    assert numbers(await claim(store, pools=["gpu"])) == {run_id(1)}
    assert numbers(await claim(store, pools=[None])) == {run_id(2)}


# --- stopping what others hold


async def test_the_bridge_that_holds_a_task_learns_that_it_was_stopped(store: Store) -> None:
    await queue(store, task(1), task(2))
    claimed = {each.task.run_id: each for each in await claim(store, OTHER)}
    async with store.transaction() as tx:
        assert await tx.tasks.stopping(OTHER) == []
    await stop(store, key_of(task(1)), owner=ME)
    async with store.transaction() as tx:
        assert await tx.tasks.stopping(OTHER) == [claimed[run_id(1)]]
        assert await tx.tasks.stopping(ME) == []
    await answer(store, done(claimed[run_id(1)]), owner=OTHER)
    async with store.transaction() as tx:
        assert await tx.tasks.stopping(OTHER) == []


async def test_a_task_that_is_to_end_stays_with_its_holder_though_the_agent_goes_on(store: Store) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store, OTHER)
    await stop(store, key_of(task(1)), owner=ME)
    assert await answer(store, taken(claimed), owner=OTHER) == set()
    async with store.transaction() as tx:
        (stopping,) = await tx.tasks.stopping(OTHER)
    assert (stopping.key, stopping.epoch, stopping.remote_task_id) == (claimed.key, claimed.epoch, "remote-1")
    assert await answer(store, done(stopping), owner=OTHER) == set()
    async with store.transaction() as tx:
        assert await tx.tasks.stopping(OTHER) == []


async def test_the_bridge_that_holds_a_task_learns_that_its_run_has_ended(store: Store) -> None:
    await queue(store, task(1), task(2))
    claimed = {each.task.run_id: each for each in await claim(store)}
    await write(store, transition(1, status="CANCELLED"))
    async with store.transaction() as tx:
        assert await tx.tasks.stopping(ME) == [claimed[run_id(1)]]
        assert await tx.tasks.held(ME) == [claimed[run_id(2)]]


async def test_a_task_of_a_run_that_has_ended_is_asked_for_once_more_and_kept(
    store: Store, clock: FakeClock
) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await answer(store, taken(claimed))
    await write(store, transition(1, status="CANCELLED"))
    clock.advance(timedelta(seconds=30))
    (asked,) = await claim(store)
    assert await answer(store, taken(asked)) == set()
    async with store.transaction() as tx:
        (stopping,) = await tx.tasks.stopping(ME)
    assert stopping.remote_task_id == "remote-1"


async def test_news_of_a_task_are_kept_from_question_to_question(store: Store, clock: FakeClock) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await answer(store, msgspec.structs.replace(taken(claimed), result=b"working"))
    clock.advance(timedelta(seconds=30))
    (asked,) = await claim(store)
    await answer(store, taken(asked))
    assert await queue(store, task(1)) == [b"working"]


async def test_a_bridge_can_ask_which_claims_it_holds(store: Store) -> None:
    await queue(store, task(1), task(2), task(3))
    claimed = {each.task.run_id: each for each in await claim(store, ME)}
    await stop(store, key_of(task(1)), owner=ME)
    await answer(store, done(claimed[run_id(2)]))
    async with store.transaction() as tx:
        assert await tx.tasks.held(ME) == [claimed[run_id(3)]]
        assert await tx.tasks.held(OTHER) == []


# --- secrets that are not here


async def test_tasks_of_an_agent_whose_secret_is_missing_wait_until_it_is_set(store: Store) -> None:
    agent = await register(store, "A", auth_type="bearer")
    await register(store, "B")
    await queue(store, task(1), task(2, agent="B"), task(3, agent="nobody"))
    assert agents_of(await claim(store)) == {"B": 1, "nobody": 1}
    assert (await store.backlog.count()).tasks_without_secret == 1
    async with store.transaction() as tx:
        await tx.agents.update(msgspec.structs.replace(agent, secret=b"sealed", version=2), 1)
    assert numbers(await claim(store)) == {run_id(1)}
    assert (await store.backlog.count()).tasks_without_secret == 0


async def test_a_task_that_is_made_and_claimed_in_one_transaction_waits_for_a_secret_too(
    store: Store,
) -> None:
    await register(store, "A", auth_type="basic")
    await hold(store, ME)
    await queue(store, task(1, agent="B"))
    await claim(store)
    async with store.transaction() as tx:
        made = [task(1, step="b"), task(1, step="c", agent="B")]
        await tx.tasks.put([queued(each) for each in made])
        assert agents_of(await tx.tasks.claim(ME, 10)) == {"B": 1}
    assert (await store.backlog.count()).tasks_without_secret == 1


async def test_an_agent_whose_secret_is_missing_is_not_asked_either(store: Store, clock: FakeClock) -> None:
    agent = await register(store, "A")
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await answer(store, taken(claimed))
    async with store.transaction() as tx:
        await tx.agents.update(msgspec.structs.replace(agent, auth_type="bearer", version=2), 1)
    clock.advance(timedelta(seconds=30))
    assert await claim(store) == []
    assert (await store.backlog.count()).tasks_without_secret == 1
    async with store.transaction() as tx:
        # Nobody is to wake for it.
        assert await tx.tasks.next_poll() is None
        await tx.agents.update(
            msgspec.structs.replace(agent, auth_type="bearer", secret=b"sealed", version=3), 2
        )
    assert [each.remote_task_id for each in await claim(store)] == ["remote-1"]
