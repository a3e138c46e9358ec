"""
A commit happens, and the connection breaks before anybody hears of it.

The process is told that it failed, keeps what it had, and does it again: nothing may be lost, stuck or done twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from structlog.testing import capture_logs

from trunkline.errors import Unavailable
from trunkline.jsontypes import JsonObject
from trunkline.stores.base import Store, Transaction
from trunkline.testing import ScriptedAgent, jsonrpc_task, running_system, simple_success
from trunkline.wiring import Interceptors

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

RUNS = 30


class LostCommitReplies:
    """A store whose every fourth commit seems to fail, and has happened."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._commits = 0
        self.unheard = 0

    def transaction(self, *, durable: bool = True) -> AbstractAsyncContextManager[Transaction]:
        return self._transaction(durable=durable)

    @asynccontextmanager
    async def _transaction(self, *, durable: bool) -> AsyncGenerator[Transaction]:
        async with self._store.transaction(durable=durable) as tx:
            yield tx
        self._commits += 1
        if self._commits % 4 == 0:
            self.unheard += 1
            raise Unavailable("on purpose")

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


async def test_what_was_committed_unheard_is_done_once(tmp_path: Path) -> None:
    lossy_stores: list[LostCommitReplies] = []

    def between(store: Store) -> Store:
        lossy_stores.append(LostCommitReplies(store))
        return cast("Store", lossy_stores[0])

    async with (
        ScriptedAgent(simple_success("a")) as first,
        ScriptedAgent(jsonrpc_task("b")) as second,
    ):
        with capture_logs():
            async with running_system(tmp_path / "plain") as system:
                await system.register("First", first.url, protocol="simple-a2a")
                await system.register("Second", second.url, protocol="jsonrpc-2.0")
                steps: JsonObject = {
                    "one": {"agent": "First"},
                    "two": {"agent": "Second", "needs": ["one"]},
                    "three": {"agent": "First", "needs": ["two"], "delivery": "at_most_once"},
                }
                await system.save({"name": "three", "steps": steps})
            async with running_system(tmp_path / "plain", interceptors=Interceptors(store=between)) as system:
                runs = await asyncio.gather(
                    *(system.run("three", {"n": n}, timeout=timedelta(minutes=4)) for n in range(RUNS))
                )
                wires = [await system.items(f"/runs/{run['id']}/wire") for run in runs]
                histories = [await system.items(f"/runs/{run['id']}/events") for run in runs]
    assert lossy_stores[0].unheard
    assert Counter(run["status"] for run in runs) == {"COMPLETED": RUNS}
    called = Counter(str(call.id) for agent in (first, second) for call in agent.calls)
    assert called == Counter(f"{run['id']}/{step}/0" for run in runs for step in ("one", "two", "three"))
    assert [len(wire) for wire in wires] == [3] * RUNS
    for history in histories:
        assert [event["seq"] for event in history] == list(range(1, len(history) + 1))
        assert Counter(event["type"] for event in history)["StepCompleted"] == 3
