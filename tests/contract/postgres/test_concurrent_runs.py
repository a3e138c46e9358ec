"""
Executors on one PostgreSQL at the same time: only one of them gets each run, timer and message, and none is
blocked.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.contract.samples import (
    event,
    inputs_of,
    insert,
    item,
    new_run,
    put,
    run_id,
    timer,
    transition,
    write,
)
from tests.contract.stores.test_outbox import message

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.base import QueuedInput, Store
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio


async def test_a_run_that_one_executor_has_claimed_is_left_out_by_the_other(one: Store, two: Store) -> None:
    await insert(one, new_run(1), new_run(2))
    await put(one, item(1, "a"), item(2, "a"))
    async with one.transaction() as first, two.transaction() as second:
        assert [run.run_id for run in await first.input_queue.claim_runs(1)] == [run_id(1)]
        assert [run.run_id for run in await second.input_queue.claim_runs(10)] == [run_id(2)]


async def test_runs_that_are_claimed_do_not_hide_those_behind_them(one: Store, two: Store) -> None:
    numbers_ = range(1, 13)
    await insert(one, *map(new_run, numbers_))
    await put(one, *(item(number, "a") for number in numbers_))
    async with one.transaction() as first, two.transaction() as second:
        assert len(await first.input_queue.claim_runs(10)) == 10
        assert [run.run_id for run in await second.input_queue.claim_runs(2)] == [run_id(11), run_id(12)]


async def test_what_was_applied_just_before_a_run_is_claimed_is_not_applied_again(
    one: Store, two: Store
) -> None:
    await insert(one, new_run(1))

    async def drive(store: Store) -> list[bytes]:
        async with store.transaction() as tx:
            woken = await tx.input_queue.claim_runs(10)
            for run in woken:
                applied = [row for row, _ in run.items]
                moved = await tx.runs.write_transitions(
                    [transition(1, expected=run.version, applied=applied)]
                )
                assert moved == set()
            return [payload for run in woken for payload in inputs_of(run)]

    for number in range(40):
        await put(one, item(1, f"k{number}", str(number).encode()))
        taken = await asyncio.gather(drive(one), drive(two), drive(one), drive(two))
        assert [payload for each in taken for payload in each] == [str(number).encode()]
    record = await one.runs.get(run_id(1))
    assert record is not None
    assert record[0].version == 40


async def test_a_run_that_another_process_has_moved_meanwhile_is_returned(one: Store, two: Store) -> None:
    await insert(one, new_run(1), new_run(2))
    async with one.transaction() as tx:
        await tx.runs.load([run_id(1), run_id(2)])
        await write(two, transition(1, events=[event(1)]))
        moved = await tx.runs.write_transitions(
            [transition(2, events=[event(1)]), transition(1, status="PAUSED", events=[event(1)])]
        )
        assert moved == {run_id(1)}
    assert await one.runs.status(run_id(1)) == ("RUNNING", 1)
    assert await one.runs.status(run_id(2)) == ("RUNNING", 1)


async def test_an_idempotency_key_makes_one_run_among_all_processes(one: Store, two: Store) -> None:
    async def start(store: Store, number: int) -> RunId:
        async with store.transaction() as tx:
            (existing,) = await tx.runs.insert([new_run(number, key="k", digest=b"d")])
        return run_id(number) if existing is None else existing.id

    started = await asyncio.gather(*(start((one, two)[number % 2], number) for number in range(1, 9)))
    assert len(set(started)) == 1
    assert [run.id for run in await one.runs.page(limit=10)] == list(set(started))


async def test_two_who_bring_the_same_items_in_another_order_do_not_block_one_another(
    one: Store, two: Store
) -> None:
    await insert(one, *(new_run(number) for number in range(1, 41)))
    for turn in range(5):
        items = [QueuedInput(run_id(number), f"k{turn}", b"") for number in range(1, 41)]
        await asyncio.gather(put(one, *items), put(two, *reversed(items)))
    assert (await one.backlog.count()).inbox == 200


async def test_each_row_of_the_outbox_is_taken_by_one_of_two_relays(one: Store, two: Store) -> None:
    async with one.transaction() as tx:
        await tx.outbox.put([message(1)])
    async with one.transaction() as tx:
        await tx.outbox.put([message(2)])
    async with one.transaction(durable=False) as first, two.transaction(durable=False) as second:
        assert await first.outbox.take(1) == [message(1)]
        assert await second.outbox.take(10) == [message(2)]
    assert (await one.backlog.count()).outbox == 0


async def test_a_timer_fires_once_among_all_executors(one: Store, two: Store, clock: FakeClock) -> None:
    await insert(one, *(new_run(number) for number in range(1, 31)))
    await write(one, *(transition(number, timers=[timer(number, "t", 1)]) for number in range(1, 31)))
    clock.advance(timedelta(seconds=1))

    async def ring(store: Store) -> int:
        async with store.transaction() as tx:
            return await tx.timers.fire_due(20)

    assert sum(await asyncio.gather(ring(one), ring(two), ring(one), ring(two))) == 30
    assert (await one.backlog.count()).inbox == 30


async def test_executors_that_drop_the_timers_that_others_fire_do_not_block_one_another(
    one: Store, two: Store, clock: FakeClock
) -> None:
    await insert(one, new_run(1), new_run(2))
    await write(one, *(transition(number, timers=[timer(number, "t", number)]) for number in (1, 2)))
    clock.advance(timedelta(seconds=5))
    async with one.transaction() as first, two.transaction() as second:
        assert await first.timers.fire_due(1) == 1
        assert await second.timers.fire_due(1) == 1
        # Each has the timer of the run that the other one moves.
        await first.runs.write_transitions([transition(2, expected=1, dropped=["t"])])
        await second.runs.write_transitions([transition(1, expected=1, dropped=["t"])])


async def test_old_runs_are_deleted_by_one_process_at_a_time_and_the_others_take_the_rest(
    one: Store, two: Store
) -> None:
    await insert(one, *(new_run(number) for number in range(1, 7)))
    await write(
        one,
        *(transition(number, status="COMPLETED", finished_at=Instant(number)) for number in range(1, 7)),
    )
    async with one.transaction() as first, two.transaction() as second:
        assert await first.runs.delete_finished(Instant(100), 4) == 4
        assert await second.runs.delete_finished(Instant(100), 4) == 2
    assert await one.runs.page(limit=10) == []
