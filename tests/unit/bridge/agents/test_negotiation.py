"""Finding an agent's dialect out while the store is away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from trunkline.agents import Agent, Dialect
from trunkline.agents.authentication.auth_config import NO_CREDENTIALS
from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.bridge.agents.negotiation import DialectNegotiator
from trunkline.bridge.agents.tokens import TokenProvider
from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.protocols import AgentAnswer
from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.registry import AgentRegistry, AgentSpec
from trunkline.services.security.vault import KEY_BYTES, Vault
from trunkline.stores.sqlite import open_sqlite
from trunkline.telemetry import log_events
from trunkline.testing import FakeClock
from trunkline.transports.base import StreamedAnswer, StreamLimits

pytestmark = pytest.mark.anyio


class NoCards:
    """A transport to an agent that has nothing to GET."""

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], timeout: float, tls: TlsConfig | None = None
    ) -> AgentAnswer:
        raise AssertionError(f"Sent to {url} within {timeout}: {headers} {body} {tls}")

    async def get(
        self, url: str, headers: Mapping[str, str], timeout: float, tls: TlsConfig | None = None
    ) -> AgentAnswer:
        del url, headers, timeout, tls
        return AgentAnswer(404, {}, b"")

    def stream(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: StreamLimits,
        tls: TlsConfig | None = None,
    ) -> AbstractAsyncContextManager[StreamedAnswer]:
        raise AssertionError(f"Streamed from {url} within {limits}: {headers} {body} {tls}")


class BrokenRegistry(AgentRegistry):
    """On a disk that fails once the agent is registered."""

    async def get(self, name_or_id: str) -> Agent:
        raise Unavailable(f"Nothing can be read: {name_or_id}.")

    async def record_dialect(self, agent: Agent, dialect: Dialect | None) -> bool:
        raise Unavailable(f"Nothing can be written: {agent.name}, {dialect and dialect.protocol}.")


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[BrokenRegistry]:
    clock = FakeClock()
    async with open_sqlite(tmp_path / "trunkline.db", clock=clock) as store:
        yield BrokenRegistry(store, Vault(bytes(KEY_BYTES)), AgentCache(store.agents, clock))


def dialects_of(registry: AgentRegistry) -> DialectNegotiator:
    transport, clock = NoCards(), FakeClock()
    return DialectNegotiator(transport, registry, clock, TokenProvider(transport, clock))


async def test_a_dialect_that_can_be_neither_read_nor_recorded_is_detected_and_used(
    registry: BrokenRegistry,
) -> None:
    agent = await registry.create(AgentSpec(name="A", url="http://a.example/agent"))
    dialects = dialects_of(registry)
    with capture_logs() as logs:
        dialect = await dialects.dialect_of(agent, NO_CREDENTIALS)
    assert dialect.protocol == "simple-a2a"
    assert [line["error"] for line in logs if line["event"] == log_events.STORE_UNAVAILABLE] == [
        f"Nothing can be read: {agent.id}.",
        "Nothing can be written: A, simple-a2a.",
    ]


async def test_an_answer_is_not_lost_because_what_it_proved_cannot_be_recorded(
    registry: BrokenRegistry,
) -> None:
    agent = await registry.create(AgentSpec(name="A", url="http://a.example/agent"))
    proved = Dialect(protocol="jsonrpc-2.0", url=agent.url, evidence="It answered.", decided_at=Instant(0))
    with capture_logs() as logs:
        await dialects_of(registry).adopt(agent, proved)
    assert log_events.STORE_UNAVAILABLE in {line["event"] for line in logs}
