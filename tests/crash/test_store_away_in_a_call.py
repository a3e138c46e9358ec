"""The store goes away between the claim of a task and its call: the call waits, and nothing fails."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from trunkline.agents import Agent
from trunkline.errors import Unavailable
from trunkline.stores.base import Store
from trunkline.testing import ScriptedAgent, running_system, simple_success
from trunkline.wiring import Interceptors

pytestmark = pytest.mark.anyio

ONE = "name: one\nsteps:\n  only: {agent: A}\n"


class UnavailableStore:
    """A store that cannot be asked for an agent twice in a row."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.refused = 0

        self.agents = UnavailableAgents(self, store)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


class UnavailableAgents:
    def __init__(self, away: UnavailableStore, store: Store) -> None:
        self._away = away
        self._agents = store.agents

    def __getattr__(self, name: str) -> object:
        return getattr(self._agents, name)

    async def get(self, name_or_id: str) -> Agent | None:
        if self._away.refused < 2:
            self._away.refused += 1
            raise Unavailable("on purpose")
        return await self._agents.get(name_or_id)


async def test_a_call_whose_agent_cannot_be_looked_up_waits_for_the_store(tmp_path: Path) -> None:
    stores: list[UnavailableStore] = []

    def between(store: Store) -> Store:
        stores.append(UnavailableStore(store))
        return cast("Store", stores[0])

    async with ScriptedAgent(simple_success("done")) as agent:
        async with running_system(tmp_path / "data") as system:
            await system.register("A", agent.url, protocol="simple-a2a")
            await system.save(ONE)
        async with running_system(tmp_path / "data", interceptors=Interceptors(store=between)) as system:
            run = await system.run("one")
    assert run["status"] == "COMPLETED"
    assert (stores[0].refused, len(agent.calls)) == (2, 1)
