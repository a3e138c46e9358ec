"""What the worker of bulk operations promises on every store: bounded pages, each under its claim."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import msgspec
import pytest
from tests.contract.samples import insert, new_run, run_id, transition, woken, write

from trunkline.executor.bulk_jobs import BulkJobs
from trunkline.ids import RunId
from trunkline.services.commit_loop import CommitLoop
from trunkline.services.migration.routing_table import RoutingTable
from trunkline.services.runs.bulk import BulkAction, BulkJob, BulkOperations, BulkRequest
from trunkline.services.runs.search import RunSearch
from trunkline.services.runs.watchers import RunWatchers
from trunkline.services.workflows import Workflows
from trunkline.stores.base import ParentStep, Store
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

LABEL = ("batch", "x")


class _InterruptedRuns:
    def __init__(self, store: Store, before_page: Callable[[], Awaitable[object]]) -> None:
        self._store, self._before_page = store, before_page

    def __getattr__(self, name: str) -> object:
        return getattr(self._store.runs, name)

    async def page(self, **asked: object) -> object:
        found = await self._store.runs.page(**asked)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as it was given
        await self._before_page()
        return found


class InterruptedStore:
    """A store in which something happens after a page of runs was read, and before it is used."""

    def __init__(self, store: Store, before_page: Callable[[], Awaitable[object]]) -> None:
        self._store = store
        self.runs = _InterruptedRuns(store, before_page)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@asynccontextmanager
async def worker(store: Store, clock: FakeClock) -> AsyncGenerator[BulkJobs]:
    metrics = Metrics()
    loop = CommitLoop(store, clock, metrics)
    async with asyncio.TaskGroup() as group:
        group.create_task(loop.run())
        yield BulkJobs(
            store,
            Workflows(store),
            RoutingTable(store.agent_events, clock),
            clock,
            metrics,
            RunWatchers(),
            loop,
            queued=asyncio.Event(),
        )
        loop.stop()


async def start_runs(store: Store, count: int) -> None:
    labelled = [msgspec.structs.replace(new_run(n), labels=dict([LABEL])) for n in range(1, count + 1)]
    await insert(store, *labelled)


async def start_job(store: Store, action: BulkAction) -> BulkJob:
    request = BulkRequest(action=action, search=RunSearch(labels=(LABEL,)))
    return await BulkOperations(store, lambda: None).start(request)


async def queued_for(store: Store) -> list[RunId]:
    return sorted(run.run_id for run in await woken(store, 10_000))


async def test_a_page_acts_on_a_hundred_runs_at_most(store: Store, clock: FakeClock) -> None:
    await start_runs(store, 250)
    job = await start_job(store, "cancel")
    done: list[int] = []
    async with worker(store, clock) as jobs:
        while await jobs.work():
            done.append(len(await queued_for(store)))
    assert done == [0, 100, 200, 250]
    ended = await BulkOperations(store, lambda: None).get(job.id)
    assert (ended.status, ended.progress.total, ended.progress.succeeded) == ("COMPLETED", 250, 250)


async def test_a_job_that_is_cancelled_in_a_page_acts_on_no_run_of_it(store: Store, clock: FakeClock) -> None:
    await start_runs(store, 3)
    job = await start_job(store, "cancel")
    operations = BulkOperations(store, lambda: None)
    async with worker(store, clock) as jobs:
        assert await jobs.work()
    interrupted = InterruptedStore(store, lambda: operations.cancel(job.id))
    async with worker(cast("Store", interrupted), clock) as jobs:
        assert await jobs.work()
        assert not await jobs.work()
    assert await queued_for(store) == []
    assert (await operations.get(job.id)).status == "CANCELLED"


async def test_a_run_that_is_created_after_the_job_is_left_alone(store: Store, clock: FakeClock) -> None:
    await start_runs(store, 1)
    await start_job(store, "cancel")
    later = RunId("ffffffff-ffff-7fff-bfff-ffffffffffff")
    await insert(store, msgspec.structs.replace(new_run(2), id=later, labels=dict([LABEL])))
    async with worker(store, clock) as jobs:
        while await jobs.work():
            pass
    assert await queued_for(store) == [run_id(1)]


async def test_a_run_that_cannot_be_deleted_is_a_failure_and_the_job_goes_on(
    store: Store, clock: FakeClock
) -> None:
    await start_runs(store, 60)
    for number in range(1, 61):
        await write(store, transition(number, status="COMPLETED", finished_at=clock.now()))
    child = msgspec.structs.replace(new_run(99), parent=_step_of(30))
    await insert(store, child)
    job = await start_job(store, "delete")
    async with worker(store, clock) as jobs:
        while await jobs.work():
            pass
    ended = await BulkOperations(store, lambda: None).get(job.id)
    assert (ended.status, ended.progress.succeeded, ended.progress.failed) == ("COMPLETED", 59, 1)
    assert [failure.run_id for failure in ended.progress.failures] == [run_id(30)]
    assert sorted(run.id for run in await store.runs.page(limit=100)) == [run_id(30), run_id(99)]


def _step_of(number: int) -> ParentStep:
    return ParentStep(run_id=run_id(number), step="a")
