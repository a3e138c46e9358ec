"""Services over a real SQLite file, with a clock that stands until it is moved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.security.vault import KEY_BYTES, Vault
from trunkline.services.workflows import Workflows
from trunkline.stores.base import Store
from trunkline.stores.sqlite import open_sqlite
from trunkline.testing import FakeClock


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    async with open_sqlite(tmp_path / "trunkline.db", clock=clock) as opened:
        yield opened


@pytest.fixture
def agent_cache(store: Store, clock: FakeClock) -> AgentCache:
    return AgentCache(store.agents, clock)


@pytest.fixture
def registry(store: Store, agent_cache: AgentCache) -> AgentRegistry:
    return AgentRegistry(store, Vault(bytes(KEY_BYTES)), agent_cache)


@pytest.fixture
def workflows(store: Store) -> Workflows:
    return Workflows(store)
