"""What every store promises about a part of a transaction that is undone."""

from __future__ import annotations

import pytest
from tests.contract.bridges import ME, claim, hold
from tests.contract.samples import (
    event,
    insert,
    item,
    new_run,
    queue,
    queued,
    run_id,
    task,
    transition,
    woken,
)

from trunkline.messages import OutgoingMessage
from trunkline.stores.base import Store, Transaction

pytestmark = pytest.mark.anyio

MESSAGE = OutgoingMessage("topic", "key", b"value")


async def fail_inside(tx: Transaction, number: int) -> None:
    """Does a bit of everything for a run, and fails."""
    async with tx.savepoint():
        await tx.input_queue.put([item(number, "inside")])
        await tx.tasks.put([queued(task(number, step="b"))])
        await tx.outbox.put([MESSAGE])
        await tx.runs.write_transitions([transition(number, events=[event(1)])])
        raise RuntimeError("on purpose")


async def test_what_fails_inside_is_undone_and_the_rest_is_written(store: Store) -> None:
    await insert(store, new_run(1), new_run(2))
    async with store.transaction() as tx:
        await tx.input_queue.put([item(1, "before")])
        with pytest.raises(RuntimeError, match="on purpose"):
            await fail_inside(tx, 2)
        await tx.input_queue.put([item(1, "after")])
    assert [(run.run_id, len(run.items)) for run in await woken(store)] == [(run_id(1), 2)]
    assert await store.runs.status(run_id(2)) == ("PENDING", 0)
    assert await claim(store) == []
    async with store.transaction() as tx:
        assert await tx.outbox.take(10) == []


async def test_what_succeeds_inside_is_written(store: Store) -> None:
    async with store.transaction() as tx, tx.savepoint():
        await tx.runs.insert([new_run(1)])
        await tx.input_queue.put([item(1, "inside")])
        await tx.tasks.put([queued(task(1))])
    assert [run.run_id for run in await woken(store)] == [run_id(1)]
    assert [each.task for each in await claim(store)] == [task(1)]


async def test_what_was_put_before_can_be_taken_after_a_part_that_failed(store: Store) -> None:
    await hold(store, ME)
    await queue(store, task(1))
    await claim(store)
    async with store.transaction() as tx:
        await tx.input_queue.put([item(1, "before")])
        await tx.tasks.put([queued(task(1, step="c"))])
        with pytest.raises(RuntimeError, match="on purpose"):
            await fail_inside(tx, 1)
        (run,) = await tx.input_queue.claim_runs(10)
        assert (run.version, len(run.items)) == (0, 1)
        assert [each.task.step for each in await tx.tasks.claim(ME, 10)] == ["c"]
        assert (
            await tx.runs.write_transitions(
                [transition(1, events=[event(1)], applied=[row for row, _ in run.items])]
            )
            == set()
        )
    assert await store.runs.status(run_id(1)) == ("RUNNING", 1)
    assert await woken(store) == []


async def test_one_part_after_another_stands_or_falls_by_itself(store: Store) -> None:
    await insert(store, *(new_run(number) for number in range(4)))
    async with store.transaction() as tx:
        for number in range(4):
            if number % 2:
                with pytest.raises(RuntimeError, match="on purpose"):
                    await fail_inside(tx, number)
            else:
                async with tx.savepoint():
                    await tx.input_queue.put([item(number, "inside")])
    assert [run.run_id for run in await woken(store)] == [run_id(0), run_id(2)]
