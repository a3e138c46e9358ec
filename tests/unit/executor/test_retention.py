"""Finished runs go when they are old enough."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from tests.unit.executor.executor_harness import ExecutorHarness

from trunkline.clock import after
from trunkline.executor.retention import DELIVERIES, Retention
from trunkline.services.operations.audit_log import audit_entry
from trunkline.stores.blobs.folder import BlobFolder
from trunkline.stores.port.agents.activity import AgentMinute, minute_of
from trunkline.stores.port.automation.subscriptions import Delivery

pytestmark = pytest.mark.anyio

ONE = "{name: w, steps: {a: {agent: A}}}"


async def finished(executor: ExecutorHarness) -> None:
    await executor.start(ONE)
    await executor.answer(executor.task("a"), "success")
    await executor.turn()


async def sweep_down_to(executor: ExecutorHarness, runs: int, keep: timedelta, files: BlobFolder) -> None:
    stopping = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(Retention(executor.store, keep, files).run(stopping))
        while len(await executor.store.runs.page(limit=1_000)) > runs:
            # The next turn at the writer is the sweeper's.
            async with executor.store.transaction():
                await asyncio.sleep(0)
        stopping.set()


async def test_runs_that_ended_long_ago_are_deleted_and_all_others_stay(
    executor: ExecutorHarness, tmp_path: Path
) -> None:
    for _ in range(120):
        await finished(executor)
    executor.clock.advance(timedelta(days=2))
    await finished(executor)
    await executor.start(ONE)
    await sweep_down_to(executor, 2, timedelta(days=1), BlobFolder(tmp_path))
    assert (await executor.store.backlog.count()).runs_by_status == {"COMPLETED": 1, "RUNNING": 1}


async def test_the_files_of_a_run_go_with_it(executor: ExecutorHarness, tmp_path: Path) -> None:
    files = BlobFolder(tmp_path)
    await finished(executor)
    (old,) = await executor.store.runs.page(limit=10)
    kept = await files.put(old.id, b"an old file")
    executor.clock.advance(timedelta(days=2))
    await executor.start(ONE)
    young = next(run for run in await executor.store.runs.page(limit=10) if run.id != old.id)
    also_kept = await files.put(young.id, b"a young file")
    stopping = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(Retention(executor.store, timedelta(days=1), files).run(stopping))
        while await files.get(old.id, kept) is not None:
            await asyncio.sleep(0.01)
        stopping.set()
    assert await files.get(young.id, also_kept) == b"a young file"


async def test_what_agents_had_to_do_is_forgotten_after_a_day(
    executor: ExecutorHarness, tmp_path: Path
) -> None:
    begin = minute_of(executor.clock.now())
    for _ in range(2):
        noted = AgentMinute(
            agent="A", minute=minute_of(executor.clock.now()), calls=1, failures=0, total_ms=1, longest_ms=1
        )
        async with executor.store.transaction() as tx:
            await tx.activity.record("a bridge", [noted])
        executor.clock.advance(timedelta(hours=20))
    stopping = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(Retention(executor.store, timedelta(days=30), BlobFolder(tmp_path)).run(stopping))
        while len(left := await executor.store.activity.minutes(0, ["A"])) > 1:
            await asyncio.sleep(0.01)
        stopping.set()
    assert [each.minute - begin for each in left] == [20 * 60]


async def test_who_has_changed_what_is_forgotten_in_its_own_time(
    executor: ExecutorHarness, tmp_path: Path
) -> None:
    for name in ("old", "young"):
        async with executor.store.transaction() as tx:
            await tx.audit.put([audit_entry("agent", "create", name)])
        executor.clock.advance(timedelta(days=20))
    keeps_runs = Retention(executor.store, timedelta(0), BlobFolder(tmp_path), keep_audit=timedelta(days=30))
    await finished(executor)
    stopping = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(keeps_runs.run(stopping))
        while await executor.store.audit.page(limit=1, subject="old"):
            await asyncio.sleep(0.01)
        stopping.set()
    assert await executor.store.audit.page(limit=1, subject="young") != []
    assert (await executor.store.backlog.count()).runs_by_status == {"COMPLETED": 1}


async def test_a_period_of_zero_keeps_everything_but_old_deliveries(
    executor: ExecutorHarness, tmp_path: Path
) -> None:
    await finished(executor)
    executor.clock.advance(timedelta(days=1_000))
    delivery = Delivery(
        id="0190a0b0-0000-7000-8000-000000000001",
        subscription_id="0190a0b0-0000-7000-8000-000000000002",
        event_id="e",
        type="t",
        run_id=None,
        event=b"{}",
        created_at=after(executor.clock.now(), -DELIVERIES),
        status="delivered",
    )
    young = msgspec.structs.replace(
        delivery, id="0190a0b0-0000-7000-8000-000000000003", created_at=executor.clock.now()
    )
    async with executor.store.transaction() as tx:
        await tx.subscriptions.put_deliveries([delivery, young])
    executor.clock.advance(timedelta(seconds=1))
    stopping = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(Retention(executor.store, timedelta(0), BlobFolder(tmp_path)).run(stopping))
        while await executor.store.subscriptions.delivery(delivery.id) is not None:
            await asyncio.sleep(0.01)
        stopping.set()
    assert await executor.store.subscriptions.delivery(young.id) == young
    assert (await executor.store.backlog.count()).runs_by_status == {"COMPLETED": 1}
