"""A stop that comes in the middle of the commit that claims a task: its call is one of those that may end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from trunkline.stores.base import ClaimedTask, Store, Transaction
from trunkline.testing import ScriptedAgent, running_system, simple_success
from trunkline.wiring import Interceptors

pytestmark = pytest.mark.anyio

ONE = "name: one\nsteps:\n  only: {agent: A}\n"


class SlowCommitStore:
    """A store whose first commit of a claim takes until it is let go."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.has_claimed = asyncio.Event()
        self.go_on = asyncio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncGenerator[Transaction]:
        async with self._store.transaction(durable=durable) as tx:
            watched = _ObservedTransaction(tx)
            yield cast("Transaction", watched)
            if watched.tasks.claimed:
                self.has_claimed.set()
                await self.go_on.wait()


class _ObservedTransaction:
    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.tasks = _WatchedTasks(tx)

    def __getattr__(self, name: str) -> object:
        return getattr(self._tx, name)


class _WatchedTasks:
    def __init__(self, tx: Transaction) -> None:
        self._tasks = tx.tasks
        self.claimed: Sequence[ClaimedTask] = ()

    def __getattr__(self, name: str) -> object:
        return getattr(self._tasks, name)

    async def claim(self, *arguments: object) -> Sequence[ClaimedTask]:
        self.claimed = await self._tasks.claim(*arguments)  # pyright: ignore[reportArgumentType] - handed on
        return self.claimed


async def test_a_call_that_is_claimed_while_the_stop_comes_ends_first_and_is_not_made_again(
    tmp_path: Path,
) -> None:
    stores: list[SlowCommitStore] = []

    def between(store: Store) -> Store:
        stores.append(SlowCommitStore(store))
        return cast("Store", stores[0])

    async with ScriptedAgent(simple_success("done")) as agent:
        async with running_system(tmp_path / "data") as system:
            await system.register("A", agent.url, protocol="simple-a2a")
            await system.save(ONE)
        stack = AsyncExitStack()
        running = running_system(
            tmp_path / "data", interceptors=Interceptors(store=between), stop_timeout="60s"
        )
        system = await stack.enter_async_context(running)
        starting = asyncio.create_task(system.start("one"))
        await stores[0].has_claimed.wait()
        stopping = asyncio.create_task(stack.aclose())
        await system.embedded.stopping.wait()
        # Whoever waits for the calls to end has had a look at them.
        await asyncio.sleep(0)
        stores[0].go_on.set()
        await stopping
        await asyncio.gather(starting, return_exceptions=True)
        assert len(agent.calls) == 1

        async with running_system(tmp_path / "data") as system:
            (run,) = await system.items("/runs")
            assert (await system.wait_for(str(run["id"])))["status"] == "COMPLETED"
        assert len(agent.calls) == 1
