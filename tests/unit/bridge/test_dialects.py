"""Finding an agent's dialect out while the store is away."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from trunkline.agents import Agent, Dialect
from trunkline.agents.auth import NO_CREDENTIALS
from trunkline.bridge.dialects import Dialects
from trunkline.errors import Unavailable
from trunkline.protocols import AgentAnswer
from trunkline.services.directory import AgentDirectory
from trunkline.services.registry import AgentSpec, Registry
from trunkline.services.vault import KEY_BYTES, Vault
from trunkline.stores.sqlite import open_sqlite
from trunkline.telemetry import names
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio


class NoCards:
    """A transport to an agent that has nothing to GET."""

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> AgentAnswer:
        raise AssertionError(f"Sent to {url} within {timeout}: {headers} {body}")

    async def get(self, url: str, headers: Mapping[str, str], timeout: float) -> AgentAnswer:
        del url, headers, timeout
        return AgentAnswer(404, {}, b"")


class ReadOnlyRegistry(Registry):
    """On a disk that is full."""

    async def record_dialect(self, agent: Agent, dialect: Dialect | None) -> bool:
        raise Unavailable(f"Nothing can be written: {agent.name}, {dialect and dialect.protocol}.")


async def test_a_dialect_that_cannot_be_recorded_is_spoken_all_the_same(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_sqlite(tmp_path / "trunkline.db", clock=clock) as store:
        registry = ReadOnlyRegistry(store, Vault(bytes(KEY_BYTES)), AgentDirectory(store, clock))
        agent = await registry.create(AgentSpec(name="A", url="http://a.example/agent"))
        with capture_logs() as logs:
            dialect = await Dialects(NoCards(), registry, clock).of(agent, NO_CREDENTIALS)
    assert dialect.protocol == "simple-a2a"
    assert [line["error"] for line in logs if line["event"] == names.STORE_UNAVAILABLE] == [
        "Nothing can be written: A, simple-a2a."
    ]
