"""An agent ready to be spoken to: what it costs to have one, and what it takes from the card."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from trunkline.agents import Agent
from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.bridge.agents.negotiation import CARD_FRESH_FOR, DialectNegotiator
from trunkline.bridge.agents.resolver import AgentResolver, ResolvedAgent
from trunkline.bridge.agents.tokens import TokenProvider
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.messages import AgentTask, StepError
from trunkline.protocols import AgentAnswer, register_profile
from trunkline.protocols.zone.params_profiles import known_profiles
from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.registry import AgentRegistry, AgentSpec
from trunkline.services.security.vault import KEY_BYTES, Vault
from trunkline.stores.sqlite import open_sqlite
from trunkline.testing import FakeClock
from trunkline.transports.base import StreamedAnswer, StreamLimits, TransportError

pytestmark = pytest.mark.anyio

URL = "http://a.example/agent"
INTERFACE: JsonObject = {
    "url": f"{URL}/v1",
    "protocolBinding": "JSONRPC",
    "protocolVersion": "1.0",
    "tenant": "t-1",
}


class FakeCardServer:
    """A transport to an agent that publishes a card, which a test can change."""

    def __init__(self) -> None:
        self.card: Json = {"name": "A", "supportedInterfaces": [INTERFACE]}
        self.gets: list[Mapping[str, str]] = []
        self.is_away = False

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], timeout: float, tls: TlsConfig | None = None
    ) -> AgentAnswer:
        raise AssertionError(f"Sent to {url} within {timeout}: {headers} {body} {tls}")

    async def get(
        self, url: str, headers: Mapping[str, str], timeout: float, tls: TlsConfig | None = None
    ) -> AgentAnswer:
        del url, timeout, tls
        self.gets.append(headers)
        if self.is_away:
            raise TransportError("agent_unreachable", "Nobody is there.")
        return AgentAnswer(200, {"etag": '"1"'}, encode(self.card))

    def stream(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: StreamLimits,
        tls: TlsConfig | None = None,
    ) -> AbstractAsyncContextManager[StreamedAnswer]:
        raise AssertionError(f"Streamed from {url} within {limits}: {headers} {body} {tls}")


class CountingRegistry(AgentRegistry):
    reads = 0

    async def get(self, name_or_id: str) -> Agent:
        self.reads += 1
        return await super().get(name_or_id)


class ResolverSetup(msgspec.Struct):
    cards: FakeCardServer
    clock: FakeClock
    registry: CountingRegistry
    resolver: AgentResolver

    async def agent(self, **fields: object) -> Agent:
        spec = msgspec.convert({"name": "A", "url": URL, **fields}, AgentSpec)
        return await self.registry.create(spec)

    async def resolved(self, agent: Agent) -> ResolvedAgent:
        resolved = await self.resolver.resolve(agent)
        assert isinstance(resolved, ResolvedAgent), resolved
        return resolved


@asynccontextmanager
async def open_setup(folder: Path) -> AsyncGenerator[ResolverSetup]:
    clock, cards = FakeClock(), FakeCardServer()
    async with open_sqlite(folder / "trunkline.db", clock=clock) as store:
        registry = CountingRegistry(store, Vault(bytes(KEY_BYTES)), AgentCache(store.agents, clock))
        tokens = TokenProvider(cards, clock)
        async with DialectNegotiator(cards, registry, clock, tokens) as dialects:
            yield ResolverSetup(cards, clock, registry, AgentResolver(dialects, registry, tokens))


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[ResolverSetup]:
    async with open_setup(tmp_path) as ready:
        yield ready


async def test_after_the_first_call_an_agent_costs_neither_a_request_nor_a_read(
    setup: ResolverSetup,
) -> None:
    await setup.resolved(await setup.agent())
    agent = await setup.registry.get("A")
    setup.registry.reads = 0
    tasks = len(asyncio.all_tasks())
    resolver = [await setup.resolved(agent) for _ in range(100)]
    assert all(resolved is resolver[0] for resolved in resolver)
    assert (len(setup.cards.gets), setup.registry.reads, len(asyncio.all_tasks())) == (1, 0, tasks)


async def test_when_a_card_may_have_changed_it_is_requested_once_during_the_calls(
    setup: ResolverSetup,
) -> None:
    await setup.resolved(await setup.agent())
    agent = await setup.registry.get("A")
    before = await setup.resolved(agent)
    setup.clock.advance(CARD_FRESH_FOR)
    resolver = [await setup.resolved(agent) for _ in range(100)]
    # None of them has waited for it.
    assert all(resolved is before for resolved in resolver)
    while len(setup.cards.gets) < 2:
        await asyncio.sleep(0)
    assert setup.cards.gets[1]["If-None-Match"] == '"1"'
    assert len(setup.cards.gets) == 2


async def test_the_tenant_that_the_card_names_is_part_of_every_request(setup: ResolverSetup) -> None:
    resolved = await setup.resolved(await setup.agent())
    assert resolved.dialect.tenant == "t-1"
    assert b'"tenant":"t-1"' in resolved.adapter.encode(AgentTask(task_id="t", input_data="x")).body


async def test_the_operators_tenant_goes_before_the_cards(setup: ResolverSetup) -> None:
    resolved = await setup.resolved(await setup.agent(protocol_config={"tenant": "mine"}))
    assert b'"tenant":"mine"' in resolved.adapter.encode(AgentTask(task_id="t", input_data="x")).body


async def test_what_a_pinned_agent_can_do_is_asked_again_when_its_card_could_not_be_read(
    setup: ResolverSetup,
) -> None:
    setup.cards.is_away = True
    setup.cards.card = {"name": "A", "supportedInterfaces": [INTERFACE], "capabilities": {"streaming": True}}
    agent = await setup.agent(protocol="a2a-1.0")
    resolved = await setup.resolved(agent)
    assert (resolved.protocol, resolved.dialect.url, resolved.dialect.streams) == ("a2a-1.0", URL, False)
    assert "Nobody is there." in resolved.dialect.evidence

    setup.cards.is_away = False
    assert await setup.resolved(agent) is resolved
    setup.clock.advance(CARD_FRESH_FOR)
    assert await setup.resolved(agent) is resolved
    while (dialect := (await setup.registry.get("A")).dialect) is None:
        await asyncio.sleep(0)
    assert (dialect.protocol, dialect.url, dialect.streams, dialect.tenant) == ("a2a-1.0", URL, True, "t-1")


async def test_a_process_that_ends_does_not_wait_for_its_questions(tmp_path: Path) -> None:
    async with open_setup(tmp_path) as setup:
        await setup.resolved(await setup.agent())
        agent = await setup.registry.get("A")
        await setup.resolved(agent)
        setup.clock.advance(CARD_FRESH_FOR)
        await setup.resolved(agent)
    assert len(setup.cards.gets) == 1


async def test_a_profile_that_only_another_process_knows_is_reported_as_such(
    setup: ResolverSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("trunkline.protocols.zone.params_profiles._profiles", dict(known_profiles()))
        register_profile("invoice", {})
        agent = await setup.agent(protocol="jsonrpc-2.0", protocol_config={"profile": "invoice"})
    found = await setup.resolver.resolve(agent)
    assert isinstance(found, StepError)
    assert (found.code, "no profile is named 'invoice'" in found.message) == (
        "agent_protocol_unclear",
        True,
    )
    assert "the setting profiles" in found.fix
