"""The cache between the bridge and the store: fast, and never wrong for long."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

import msgspec
import pytest

from trunkline.agents import Agent
from trunkline.clock import Instant
from trunkline.services.agents.cache import FRESH_FOR, AgentCache
from trunkline.services.agents.registry import AgentRegistry, AgentSpec
from trunkline.stores.base import Store
from trunkline.stores.port.agents.registry import AgentReads
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

MOMENT = timedelta(microseconds=1)


async def change_behind_the_back(store: Store, agent: Agent) -> Agent:
    """As another process does it."""
    changed = msgspec.structs.replace(agent, url="http://elsewhere", version=agent.version + 1)
    async with store.transaction() as tx:
        assert await tx.agents.update(changed, agent.version)
    return changed


async def test_a_change_of_another_process_is_seen_after_two_seconds(
    store: Store, registry: AgentRegistry, agent_cache: AgentCache, clock: FakeClock
) -> None:
    agent = await registry.create(AgentSpec(name="A", url="http://a"))
    assert await agent_cache.get("A") == agent
    changed = await change_behind_the_back(store, agent)

    clock.advance(FRESH_FOR - MOMENT)
    assert await agent_cache.get("A") == agent
    clock.advance(MOMENT)
    assert await agent_cache.get("A") == changed


async def test_a_change_of_this_process_is_seen_at_once(
    registry: AgentRegistry, agent_cache: AgentCache
) -> None:
    assert await agent_cache.get("A") is None
    agent = await registry.create(AgentSpec(name="A", url="http://a"))
    assert await agent_cache.get("A") == agent

    patched = await registry.patch("A", {"url": "http://b"})
    assert await agent_cache.get("A") == patched

    renamed = await registry.patch("A", {"name": "B"})
    assert await agent_cache.get("A") is None
    assert await agent_cache.get("B") == renamed

    await registry.delete("B")
    assert await agent_cache.get("B") is None


async def test_an_unknown_name_is_remembered_for_two_seconds(
    store: Store, agent_cache: AgentCache, clock: FakeClock
) -> None:
    assert await agent_cache.get("A") is None
    agent = Agent(id="1", name="A", url="http://a", created_at=Instant(1), updated_at=Instant(1))
    async with store.transaction() as tx:
        await tx.agents.insert(agent)
    assert await agent_cache.get("A") is None
    clock.advance(FRESH_FOR)
    assert await agent_cache.get("A") == agent


async def test_what_was_read_while_a_change_was_written_is_not_kept(store: Store, clock: FakeClock) -> None:
    old = Agent(id="1", name="A", url="http://a", created_at=Instant(1), updated_at=Instant(1))
    async with store.transaction() as tx:
        await tx.agents.insert(old)

    class SlowReads:
        """Agents of which one is changed between a read and its return."""

        async def get(self, name_or_id: str) -> Agent | None:
            found = await store.agents.get(name_or_id)
            if found == old:
                await change_behind_the_back(store, old)
                agent_cache.forget("A")
            return found

    agent_cache = AgentCache(cast("AgentReads", SlowReads()), clock)
    assert await agent_cache.get("A") == old
    seen = await agent_cache.get("A")
    assert seen is not None
    assert seen.url == "http://elsewhere"
