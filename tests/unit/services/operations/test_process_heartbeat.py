"""A process reports that it is alive, and that it has stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from structlog.testing import capture_logs

from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.services.operations.process_heartbeat import ProcessHeartbeat
from trunkline.stores.base import Store, Transaction
from trunkline.stores.port.operations import Process
from trunkline.stores.sqlite import open_sqlite

pytestmark = pytest.mark.anyio

PROCESS = Process(
    id="018f0000-0000-7000-8000-000000000001",
    name="host:1",
    roles=("api",),
    version="1",
    started_at=Instant(0),
)
SOON = timedelta(milliseconds=1)


class UnavailableStore:
    """A store that cannot be reached for the first few times."""

    def __init__(self, store: Store, refusals: int) -> None:
        self._store = store
        self._left = refusals

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncGenerator[Transaction]:
        if self._left:
            self._left -= 1
            raise Unavailable("It is away.")
        async with self._store.transaction(durable=durable) as tx:
            yield tx


async def until_seen(store: Store) -> None:
    async with asyncio.timeout(60):
        while not await store.processes.page(limit=10):
            await asyncio.sleep(0.001)


async def test_it_is_listed_while_it_runs_and_not_after(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "trunkline.db") as store:
        beating = asyncio.create_task(ProcessHeartbeat(store, PROCESS, SOON).run())
        await until_seen(store)
        (seen,) = await store.processes.page(limit=10)
        assert (seen.name, seen.alive) == ("host:1", True)
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
        assert await store.processes.page(limit=10) == []


async def test_an_unavailable_store_is_retried_and_logged_once(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "trunkline.db") as store:
        away = cast("Store", UnavailableStore(store, refusals=3))
        with capture_logs() as logs:
            beating = asyncio.create_task(ProcessHeartbeat(away, PROCESS, SOON).run())
            await until_seen(store)
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating
        assert [line["error"] for line in logs] == ["It is away."]
