"""What every store promises about deleting runs: whole runs with their children, bounded, and none that goes on."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.contract.bridges import ME, claim, register
from tests.contract.samples import NOW, insert, key_of, new_run, queue, run_id, task, transition, write

from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.stores.base import Dispatch, ParentStep, Store

pytestmark = pytest.mark.anyio


async def start(store: Store, number: int, parent: int | None = None, *, ended: bool = True) -> None:
    run = new_run(number)
    if parent is not None:
        above = ParentStep(run_id=run_id(parent), step="a")
        run = msgspec.structs.replace(run, parent=above, block=None)
    await insert(store, msgspec.structs.replace(run, labels={"n": str(number)}))
    if ended:
        await write(store, transition(number, status="COMPLETED", finished_at=NOW))


async def delete(store: Store, *numbers: int, limit: int = 100) -> list[int]:
    """The numbers of the runs that one call has deleted."""
    async with store.transaction() as tx:
        deleted = await tx.runs.delete_lowest([run_id(number) for number in numbers], limit)
    return sorted(int(each[-12:]) for each in deleted)


async def left(store: Store) -> list[int]:
    return sorted(int(run.id[-12:]) for run in await store.runs.page(limit=100))


async def test_runs_are_deleted_with_what_belongs_to_them(store: Store) -> None:
    await start(store, 1)
    await start(store, 2)
    assert await delete(store, 1) == [1]
    assert await left(store) == [2]
    assert await store.runs.get(run_id(1)) is None
    assert await delete(store, 1) == []


async def test_children_are_deleted_before_their_parents(store: Store) -> None:
    await start(store, 1)
    for number in (2, 3):
        await start(store, number, parent=1)
    await start(store, 4, parent=2)
    await start(store, 9)
    assert await delete(store, 1) == [4]
    assert await delete(store, 1) == [2, 3]
    assert await delete(store, 1) == [1]
    assert await left(store) == [9]


async def test_one_call_deletes_no_more_than_its_limit(store: Store) -> None:
    await start(store, 1)
    for number in range(2, 9):
        await start(store, number, parent=1)
    deleted = [await delete(store, 1, limit=3) for _ in range(4)]
    assert [len(each) for each in deleted] == [3, 3, 1, 1]
    assert await left(store) == []


async def test_a_run_that_has_not_ended_stays(store: Store) -> None:
    await start(store, 1, ended=False)
    await start(store, 2)
    await start(store, 3, parent=2, ended=False)
    assert await delete(store, 1, 2) == []
    assert await left(store) == [1, 2, 3]


async def test_a_run_with_a_call_in_flight_stays(store: Store) -> None:
    for number in (1, 2, 3):
        await start(store, number, ended=False)
    await register(store, "A", 10)
    await queue(store, task(1), task(2))
    assert len(await claim(store, ME, 1)) == 1
    for number in (1, 2, 3):
        await write(store, transition(number, status="COMPLETED", finished_at=NOW))
    async with store.transaction() as tx:
        sent = task(3)
        await tx.dispatches.put([Dispatch(key_of(sent), run_id(3), encode(sent))], timedelta(seconds=30))
    assert await delete(store, 1, 2, 3) == []
    assert await left(store) == [1, 2, 3]


async def test_ids_that_no_run_has_delete_nothing(store: Store) -> None:
    await start(store, 1)
    async with store.transaction() as tx:
        assert await tx.runs.delete_lowest([], 10) == set()
        assert await tx.runs.delete_lowest([RunId("no id"), run_id(7)], 10) == set()
    assert await left(store) == [1]
