"""The intake of the commit loop: what it accepts is durable, and no caller waits forever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.id_generation import new_id
from trunkline.ids import RunId
from trunkline.machine.inputs import RunRequested
from trunkline.services.commit_loop import CommitLoop
from trunkline.services.runs.intake import TIMEOUT, Intake
from trunkline.stores.base import NewRun, Store, Transaction
from trunkline.stores.sqlite import open_sqlite
from trunkline.system_clock import SystemClock
from trunkline.telemetry.metrics import Metrics

pytestmark = pytest.mark.anyio


class FullDisk:
    """A part of the loop that fails its turns as long as it is told to."""

    def __init__(self) -> None:
        self.is_full = True
        self.failed = asyncio.Event()

    async def work(self, tx: Transaction) -> None:
        del tx
        if self.is_full:
            raise Unavailable("The disk is full.")

    def committed(self) -> None:
        pass

    def rolled_back(self) -> None:
        self.failed.set()

    def next_wake(self) -> Instant | None:
        return None


@asynccontextmanager
async def loop_on(store: Store, timeout: timedelta = TIMEOUT) -> AsyncGenerator[tuple[Intake, FullDisk]]:
    loop = CommitLoop(store, SystemClock(), Metrics())
    intake, disk = Intake(loop, timeout=timeout), FullDisk()
    loop.set_parts([intake, disk])
    async with asyncio.TaskGroup() as group:
        group.create_task(loop.run())
        try:
            yield intake, disk
        finally:
            disk.is_full = False
            loop.stop()


def run() -> NewRun:
    return NewRun(
        id=RunId(new_id()),
        workflow_id="w",
        workflow_name="w",
        workflow_version=1,
        input=b"{}",
        correlation_id="c",
        created_at=Instant(1),
    )


async def test_a_short_outage_only_takes_longer(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "db") as store, loop_on(store) as (intake, disk):
        started = asyncio.create_task(intake.start(wanted := run(), RunRequested()))
        await disk.failed.wait()
        disk.is_full = False
        assert await started is None
        assert [record.id for record in await store.runs.page(limit=10)] == [wanted.id]


async def test_what_is_not_taken_in_time_is_refused_with_the_reason_and_never_taken(tmp_path: Path) -> None:
    short = timedelta(milliseconds=100)
    async with open_sqlite(tmp_path / "db") as store, loop_on(store, short) as (intake, disk):
        with pytest.raises(Unavailable, match=r"The disk is full\."):
            await intake.start(run(), RunRequested())
        disk.is_full = False
        later = run()
        while not await store.runs.page(limit=10):
            with suppress(Unavailable):
                await intake.start(later, RunRequested())
        assert [record.id for record in await store.runs.page(limit=10)] == [later.id]
