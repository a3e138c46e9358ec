"""What every store promises about input queues and timers."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.contract.samples import (
    NOW,
    inputs_of,
    insert,
    item,
    new_run,
    put,
    run_id,
    timer,
    transition,
    woken,
    write,
)

from trunkline.clock import Instant, after
from trunkline.machine.inputs import RetryDue, encode_input
from trunkline.stores.base import QueuedInput, Store, WokenRun
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio


def payloads(runs: list[WokenRun]) -> dict[str, list[bytes]]:
    return {run.run_id: inputs_of(run) for run in runs}


async def apply_all(store: Store) -> None:
    """Takes everything in, as a driver does."""
    runs = await woken(store)
    await write(
        store,
        *(
            transition(int(run.run_id[-12:]), expected=run.version, applied=[row for row, _ in run.items])
            for run in runs
        ),
    )


async def test_a_woken_run_has_its_version_and_its_items_oldest_first(store: Store) -> None:
    await insert(store, new_run(1), new_run(2), new_run(3))
    await write(store, transition(2))
    await put(store, item(2, "x", b"first"), item(1, "x", b"other"), item(2, "y", b"\x00\xff"))
    runs = await woken(store)
    assert payloads(runs) == {run_id(2): [b"first", b"\x00\xff"], run_id(1): [b"other"]}
    assert {run.run_id: run.version for run in runs} == {run_id(1): 0, run_id(2): 1}


async def test_a_second_item_with_the_same_key_is_dropped(store: Store) -> None:
    await insert(store, new_run(1), new_run(2))
    await put(store, item(1, "k", b"first"), item(1, "k", b"second"))
    await put(store, item(1, "k", b"third"), item(2, "k", b"another run's"))
    assert payloads(await woken(store)) == {run_id(1): [b"first"], run_id(2): [b"another run's"]}


async def test_a_key_that_was_applied_is_remembered_for_as_long_as_its_run(store: Store) -> None:
    await insert(store, new_run(1))
    await put(store, item(1, "k"))
    await apply_all(store)
    assert await woken(store) == []
    await put(store, item(1, "k", b"again"))
    assert await woken(store) == []


async def test_an_item_for_a_run_that_does_not_exist_is_dropped_and_its_neighbours_stay(store: Store) -> None:
    await insert(store, new_run(1))
    await put(store, item(7, "k"), item(1, "k"))
    await insert(store, new_run(7))
    assert payloads(await woken(store)) == {run_id(1): [b"{}"]}


async def test_an_item_is_there_until_the_transition_that_applied_it_is_committed(store: Store) -> None:
    await insert(store, new_run(1))
    await put(store, item(1, "k"))

    async def fail() -> None:
        async with store.transaction() as tx:
            (run,) = await tx.input_queue.claim_runs(10)
            await tx.runs.write_transitions([transition(1, applied=[row for row, _ in run.items])])
            assert await tx.input_queue.claim_runs(10) == []
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    assert [run.run_id for run in await woken(store)] == [run_id(1)]


async def test_a_claim_takes_at_most_so_many_items_and_the_oldest_first(store: Store) -> None:
    await insert(store, new_run(1), new_run(2))
    await put(store, *(item(1 + number % 2, f"k{number}", str(number).encode()) for number in range(6)))
    assert payloads(await woken(store, limit=3)) == {run_id(1): [b"0", b"2"], run_id(2): [b"1"]}


async def test_an_item_that_is_put_in_the_same_transaction_is_woken_in_it(store: Store) -> None:
    async with store.transaction() as tx:
        await tx.runs.insert([new_run(1)])
        await tx.input_queue.put([item(1, "start")])
        assert [run.run_id for run in await tx.input_queue.claim_runs(10)] == [run_id(1)]


async def test_an_item_that_is_woken_where_it_was_put_and_not_applied_is_woken_in_the_next(
    store: Store,
) -> None:
    await insert(store, new_run(1))
    async with store.transaction() as tx:
        await tx.input_queue.put([item(1, "a", b"A"), item(1, "b", b"B")])
        ((row, _), _) = (await tx.input_queue.claim_runs(10))[0].items
        await tx.runs.write_transitions([transition(1, applied=[row])])
    assert payloads(await woken(store)) == {run_id(1): [b"B"]}


async def test_an_item_that_is_not_encoded_is_stored_like_one_that_is(store: Store) -> None:
    await insert(store, new_run(1))
    await put(store, QueuedInput(run_id(1), "retry", RetryDue("a", 2)))
    assert payloads(await woken(store)) == {run_id(1): [encode_input(RetryDue("a", 2))]}


async def test_an_item_that_comes_only_once_waits_in_its_place_if_it_is_not_applied(store: Store) -> None:
    await insert(store, new_run(1), new_run(2))
    async with store.transaction() as tx:
        await tx.input_queue.put([item(1, "a", b"A"), item(1, "b", b"B")])
        await tx.input_queue.put([QueuedInput(run_id(1), "once", b"C", is_once=True), item(1, "d", b"D")])
        await tx.input_queue.put([QueuedInput(run_id(2), "once", b"E", is_once=True)])
        first, _ = sorted(await tx.input_queue.claim_runs(10), key=lambda run: run.run_id)
        await tx.runs.write_transitions([transition(1, applied=[first.items[0][0]])])
    assert payloads(await woken(store)) == {run_id(1): [b"B", b"C", b"D"], run_id(2): [b"E"]}
    # Those that were applied, and those that had to be moved, are remembered all the same.
    await put(store, item(1, "a", b"again"), item(1, "b", b"again"))
    assert payloads(await woken(store))[run_id(1)] == [b"B", b"C", b"D"]


async def test_an_item_that_comes_only_once_is_applied_once(store: Store) -> None:
    async with store.transaction() as tx:
        await tx.runs.insert([new_run(1)])
        await tx.input_queue.put([QueuedInput(run_id(1), "once", b"A", is_once=True)])
        (run,) = await tx.input_queue.claim_runs(10)
        assert inputs_of(run) == [b"A"]
        await tx.runs.write_transitions([transition(1, applied=[row for row, _ in run.items])])
        assert await tx.input_queue.claim_runs(10) == []
    assert await woken(store) == []


async def test_a_run_has_its_present_version_however_it_is_known(store: Store) -> None:
    await insert(store, new_run(1))
    for version in range(3):
        async with store.transaction() as tx:
            await tx.input_queue.put([item(1, f"k{version}")])
            (run,) = await tx.input_queue.claim_runs(10)
            assert run.version == version
            applied = [row for row, _ in run.items]
            assert (
                await tx.runs.write_transitions([transition(1, expected=version, applied=applied)]) == set()
            )


async def take_due(store: Store, limit: int = 100) -> tuple[int, Instant | None]:
    async with store.transaction() as tx:
        return await tx.timers.fire_due(limit), await tx.timers.next_due()


async def test_a_timer_goes_into_the_inbox_when_it_is_due_and_not_before(
    store: Store, clock: FakeClock
) -> None:
    await insert(store, new_run(1))
    await write(store, transition(1, timers=[timer(1, "t", 10, b"ring")]))
    assert await take_due(store) == (0, after(NOW, timedelta(seconds=10)))
    clock.advance(timedelta(seconds=10))
    assert await take_due(store) == (1, None)
    assert payloads(await woken(store)) == {run_id(1): [b"ring"]}
    assert await take_due(store) == (0, None)


async def test_due_timers_fire_in_the_order_of_their_times_and_few_at_once(
    store: Store, clock: FakeClock
) -> None:
    await insert(store, new_run(1), new_run(2))
    await write(
        store,
        transition(1, timers=[timer(1, "c", 3, b"c"), timer(1, "a", 1, b"a"), timer(1, "z", 99)]),
        transition(2, timers=[timer(2, "b", 2, b"b")]),
    )
    clock.advance(timedelta(seconds=5))
    assert await take_due(store, limit=2) == (2, after(NOW, timedelta(seconds=3)))
    assert payloads(await woken(store)) == {run_id(1): [b"a"], run_id(2): [b"b"]}
    assert await take_due(store) == (1, after(NOW, timedelta(seconds=99)))
    assert payloads(await woken(store)) == {run_id(1): [b"a", b"c"], run_id(2): [b"b"]}


async def test_a_timer_that_is_set_again_has_its_new_time(store: Store, clock: FakeClock) -> None:
    await insert(store, new_run(1))
    await write(store, transition(1, timers=[timer(1, "t", 1, b"old")]))
    await write(store, transition(1, expected=1, timers=[timer(1, "t", 20, b"new")]))
    clock.advance(timedelta(seconds=10))
    assert await take_due(store) == (0, after(NOW, timedelta(seconds=20)))
    clock.advance(timedelta(seconds=10))
    await take_due(store)
    assert payloads(await woken(store)) == {run_id(1): [b"new"]}


async def test_a_dropped_timer_never_fires_and_its_namesakes_do(store: Store, clock: FakeClock) -> None:
    await insert(store, new_run(1), new_run(2))
    await write(
        store,
        transition(1, timers=[timer(1, "t", 1), timer(1, "u", 1, b"u")]),
        transition(2, timers=[timer(2, "t", 1, b"other")]),
    )
    await write(store, transition(1, expected=1, dropped=["t", "never set"]))
    clock.advance(timedelta(seconds=1))
    await take_due(store)
    assert payloads(await woken(store)) == {run_id(1): [b"u"], run_id(2): [b"other"]}


async def test_a_timer_that_is_set_and_dropped_in_one_transition_never_fires(
    store: Store, clock: FakeClock
) -> None:
    await insert(store, new_run(1))
    await write(store, transition(1, timers=[timer(1, "t", 1)], dropped=["t"]))
    clock.advance(timedelta(seconds=1))
    assert await take_due(store) == (0, None)


async def test_a_timer_and_another_item_of_the_same_key_do_not_meet(store: Store, clock: FakeClock) -> None:
    await insert(store, new_run(1))
    await put(store, item(1, "cancel", b"wish"))
    await write(store, transition(1, timers=[timer(1, "cancel", 1, b"overdue")]))
    clock.advance(timedelta(seconds=1))
    await take_due(store)
    assert payloads(await woken(store)) == {run_id(1): [b"wish", b"overdue"]}
