"""
A store whose every statement waits: clients, agents and timers get their turn in the middle of a transaction.

SQLite never waits inside one, so this is how a store over a network shows what the commit loop relies on.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import aiohttp
import pytest
from tests.crash.agents import CrashTestAgents
from tests.crash.client import TrunklineClient
from tests.crash.conftest import register_everything
from tests.crash.history_checker import RequestedRun, violations
from tests.crash.history_reader import read_history
from tests.crash.workflows import KINDS, WatchedRun, WorkflowKind

from trunkline.stores.base import Store, Transaction
from trunkline.testing import running_system
from trunkline.wiring import Interceptors

pytestmark = pytest.mark.anyio

RUNS = 60
# Only a run that is stuck takes so long.
TIMEOUT_SECONDS = 90


class _WaitingStore:
    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        async with self._inner.transaction() as tx:
            yield cast("Transaction", _WaitingTransaction(tx))


class _WaitingTransaction:
    """A transaction, or one of its groups."""

    def __init__(self, inner: object) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        attribute: object = getattr(self._inner, name)
        if not callable(attribute) and not isinstance(attribute, int):
            return _WaitingTransaction(attribute)
        if not inspect.iscoroutinefunction(attribute):
            return attribute
        method = cast("Callable[..., Awaitable[object]]", attribute)

        async def waiting(*arguments: object, **named: object) -> object:
            await asyncio.sleep(0.002)
            answer = await method(*arguments, **named)
            await asyncio.sleep(0.002)
            return answer

        return waiting


async def _see_to_its_end(
    client: TrunklineClient, agents: CrashTestAgents, kind: WorkflowKind, want: RequestedRun
) -> None:
    want.run_id = await client.start(kind.name, want.key)
    async for event in client.follow(want.run_id):
        await kind.react(WatchedRun(client, agents, want), event)


async def test_what_arrives_during_a_transaction_waits_for_the_next(
    tmp_path: Path, agents: CrashTestAgents, session: aiohttp.ClientSession
) -> None:
    agents.forget()
    interceptors = Interceptors(store=lambda store: cast("Store", _WaitingStore(store)))
    async with running_system(tmp_path / "data", interceptors=interceptors) as system:
        client = TrunklineClient(session, system.url)
        await register_everything(client, agents)
        wanted: list[RequestedRun] = []
        async with asyncio.timeout(TIMEOUT_SECONDS), asyncio.TaskGroup() as group:
            for number in range(RUNS):
                kind = KINDS[number % len(KINDS)]
                wanted.append(kind.wanted(f"{kind.name}-{number}"))
                group.create_task(_see_to_its_end(client, agents, kind, wanted[-1]))
        history = await read_history(client, wanted, agents.calls, {})
    assert violations(history) == []
