"""What every store promises about child runs."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.contract.samples import NOW, insert, item, new_run, run_id, transition, woken, write

from trunkline.clock import after
from trunkline.machine.state import RunStatus
from trunkline.stores.base import NewRun, ParentStep, Store

pytestmark = pytest.mark.anyio

LATER = after(NOW, timedelta(seconds=1))


def child(number: int, parent: int) -> NewRun:
    return msgspec.structs.replace(new_run(number), parent=ParentStep(run_id(parent), "call"), depth=1)


async def finish(store: Store, *numbers: int) -> None:
    await write(
        store,
        *(transition(number, expected=1, status="COMPLETED", finished_at=NOW) for number in numbers),
    )


async def test_a_run_and_its_first_item_come_with_the_transition_that_begins_it(store: Store) -> None:
    await insert(store, new_run(1))
    async with store.transaction() as tx:
        await tx.input_queue.put([item(1, "start")])
        await tx.input_queue.claim_runs(10)
        await tx.runs.write_transitions([transition(1)])
        assert await tx.runs.insert([child(2, 1)]) == [None]
        await tx.input_queue.put([item(2, "start"), item(2, "cancel")])
    assert {run.run_id: len(run.items) for run in await woken(store)} == {run_id(1): 1, run_id(2): 2}


async def test_without_the_transition_that_begins_it_there_is_no_run(store: Store) -> None:
    await insert(store, new_run(1))

    async def fail() -> None:
        async with store.transaction() as tx:
            await tx.runs.write_transitions([transition(1)])
            await tx.runs.insert([child(2, 1)])
            await tx.input_queue.put([item(2, "start")])
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    assert await store.runs.get(run_id(2)) is None
    assert await woken(store) == []


@pytest.mark.parametrize("status", ["PENDING", "RUNNING", "WAITING", "PAUSED"])
async def test_a_run_that_waits_for_another_has_a_reason_to_wake(store: Store, status: RunStatus) -> None:
    await insert(store, new_run(1), child(2, 1), new_run(3))
    await write(store, transition(1), transition(3, status="COMPLETED", finished_at=NOW))
    if status != "PENDING":
        await write(store, transition(2, status=status))
    # Of the child alone nothing is known but that it goes on.
    assert (await store.backlog.count()).without_wake_reason == (status in {"PENDING", "RUNNING"})


async def test_a_run_whose_child_has_ended_unheard_has_no_reason_to_wake(store: Store) -> None:
    await insert(store, new_run(1), child(2, 1))
    await write(store, transition(1), transition(2))
    await finish(store, 2)
    assert (await store.backlog.count()).without_wake_reason == 1


async def test_retention_keeps_a_run_for_as_long_as_the_one_that_has_begun_it_goes_on(store: Store) -> None:
    await insert(store, new_run(1), child(2, 1), child(3, 9))
    await write(store, transition(1), transition(2), transition(3))
    await finish(store, 2, 3)
    async with store.transaction() as tx:
        assert await tx.runs.delete_finished(LATER, 10) == 1
    assert [run.id for run in await store.runs.page(limit=10)] == [run_id(2), run_id(1)]
    await finish(store, 1)
    async with store.transaction() as tx:
        assert await tx.runs.delete_finished(LATER, 10) == 2


async def test_what_a_child_tells_a_run_that_is_gone_is_dropped(store: Store) -> None:
    await insert(store, child(2, 1))
    async with store.transaction() as tx:
        await tx.input_queue.put([item(1, "child/2")])
    assert (await store.backlog.count()).inbox == 0


async def test_the_root_of_a_run_is_found_over_parents_and_retries(store: Store) -> None:
    retried = msgspec.structs.replace(new_run(3), retry_of=run_id(2))
    await insert(store, new_run(1), child(2, 1), retried, child(4, 3), new_run(5), child(6, 9))
    roots = {number: await store.runs.root(run_id(number)) for number in range(1, 8)}
    first, alone = run_id(1), run_id(5)
    assert roots == {1: first, 2: first, 3: first, 4: first, 5: alone, 6: run_id(6), 7: None}
