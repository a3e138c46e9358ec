"""Run states kept in memory."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.executor.executor_harness import ExecutorHarness

from trunkline.clock import after
from trunkline.executor.run_state_cache import RunStateCache
from trunkline.stores.base import WokenRun

pytestmark = pytest.mark.anyio

ONE = "{name: w, steps: {a: {agent: A}}}"


async def test_a_kept_state_is_used_at_its_own_version_only_and_by_one_at_a_time(
    executor: ExecutorHarness,
) -> None:
    run_id = await executor.start(ONE)
    states = RunStateCache(executor.workflows)
    present = [WokenRun(run_id, 1, [])]
    async with executor.store.transaction() as tx:
        first = (await states.load(tx, present))[run_id]
        states.keep(first)
        assert (await states.load(tx, present))[run_id] is first
        assert (await states.load(tx, present))[run_id] is not first
        first.version = 0
        states.keep(first)
        assert (await states.load(tx, present))[run_id].version == 1


async def test_what_is_kept_is_bounded_and_the_oldest_goes_first(executor: ExecutorHarness) -> None:
    ids = [await executor.start(ONE) for _ in range(3)]
    states = RunStateCache(executor.workflows, most_kept=2)
    woken = [WokenRun(run_id, 1, []) for run_id in ids]
    async with executor.store.transaction() as tx:
        loaded = await states.load(tx, woken)
        for run_id in ids:
            states.keep(loaded[run_id])
        again = await states.load(tx, woken)
    assert [again[run_id] is loaded[run_id] for run_id in ids] == [False, True, True]


async def test_what_is_kept_is_bounded_by_its_size_too(executor: ExecutorHarness) -> None:
    ids = [await executor.start(ONE) for _ in range(3)]
    woken = [WokenRun(run_id, 1, []) for run_id in ids]
    async with executor.store.transaction() as tx:
        size = (await RunStateCache(executor.workflows).load(tx, woken))[ids[0]].size_bytes
        states = RunStateCache(executor.workflows, max_bytes=3 * size)
        loaded = await states.load(tx, woken)
        loaded[ids[1]].input = b"1" * (size + 1)
        loaded[ids[2]].input = b"1" * (3 * size + 1)
        for run_id in ids:
            states.keep(loaded[run_id])
        again = await states.load(tx, woken)
        assert [again[run_id] is loaded[run_id] for run_id in ids] == [True, True, False]
        loaded[ids[1]].input = b"1" * (2 * size + 1)
        for run_id in ids[:2]:
            states.keep(loaded[run_id])
        again = await states.load(tx, woken)
    assert [again[run_id] is loaded[run_id] for run_id in ids] == [False, True, False]


async def test_a_finished_run_is_not_kept(executor: ExecutorHarness) -> None:
    run_id = await executor.start(ONE)
    states = RunStateCache(executor.workflows)
    async with executor.store.transaction() as tx:
        state = (await states.load(tx, [WokenRun(run_id, 1, [])]))[run_id]
        state.status = "COMPLETED"
        states.keep(state)
        assert (await states.load(tx, [WokenRun(run_id, 1, [])]))[run_id] is not state


async def test_a_run_that_was_deleted_meanwhile_is_missing(executor: ExecutorHarness) -> None:
    run_id = await executor.start(ONE)
    await executor.answer(executor.task("a"), "success")
    await executor.turn()
    async with executor.store.transaction() as tx:
        await tx.runs.delete_finished(after(executor.clock.now(), timedelta(seconds=1)), 10)
        assert await RunStateCache(executor.workflows).load(tx, [WokenRun(run_id, 2, [])]) == {}
