"""What every store promises about agents."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.contract.bridges import register
from tests.contract.samples import id_of

from trunkline.agents import Agent, AgentOptions, BreakerPolicy, Dialect, DialectProbe, RateLimit
from trunkline.clock import Instant
from trunkline.errors import AlreadyExists
from trunkline.publish_options import DEFAULT_PUBLISH_OPTIONS, PublishOptions
from trunkline.retry_policy import RetryPolicy
from trunkline.stores.base import Store

pytestmark = pytest.mark.anyio

FULL = Agent(
    id="018f0000-0000-7000-8000-000000000001",
    name="Full",
    url="https://agents.example:8443/agent?x=1",
    created_at=Instant(1),
    updated_at=Instant(2),
    version=7,
    description="Says \u0007 things: ü, 漢字, '; DROP TABLE agents; --",
    protocol="jsonrpc-2.0",
    protocol_config={"method": "message/send", "nested": [1, 2.5, None, True, {"a": "b"}]},
    auth_type="bearer",
    secret=b"\x00\x01\xff",
    timeout_ms=5_000,
    retry=RetryPolicy(
        max_attempts=5, backoff="linear", first_delay=timedelta(milliseconds=100), on=("any", -32000)
    ),
    max_concurrency=3,
    pool="gpu",
    dialect=Dialect(
        protocol="a2a-1.0",
        url="https://agents.example",
        evidence="card",
        decided_at=Instant(9),
        card_url="https://agents.example/.well-known/agent-card.json",
        card_etag='W/"1"',
        card_digest="d1",
        streams=True,
        pushes=True,
        tenant="t",
        tried=(DialectProbe(at=Instant(8), tried="GET /card", answered="HTTP 200"),),
    ),
    options=AgentOptions(
        transport="stdio",
        resend="never",
        endpoint_override="https://elsewhere.example/a/",
        allow_card_origin=("https://cards.example", "http://b.example:81"),
        rate=RateLimit(per_second=2.5, burst=3),
        breaker=BreakerPolicy(failures=2, jsonrpc_errors=True),
        repeatable=True,
    ),
    publish=PublishOptions(name="Full \0", streaming=False, security="public"),
)


def bare(name: str, *, protocol: str = "auto") -> Agent:
    return Agent(
        id=id_of(name),
        name=name,
        url="http://a",
        created_at=Instant(1),
        updated_at=Instant(1),
        protocol=protocol,
    )


async def insert(store: Store, *agents: Agent) -> None:
    async with store.transaction() as tx:
        for agent in agents:
            await tx.agents.insert(agent)


async def test_every_field_comes_back_as_it_was_written(store: Store) -> None:
    await insert(store, FULL, bare("Bare"))
    assert await store.agents.get("Full") == FULL
    assert await store.agents.get("Bare") == bare("Bare")


async def test_an_agent_is_found_by_name_and_by_id_and_the_name_comes_first(store: Store) -> None:
    same_name = msgspec.structs.replace(bare("Impostor"), name=FULL.id)
    await insert(store, FULL)
    assert await store.agents.get(FULL.id) == FULL
    await insert(store, same_name)
    assert await store.agents.get(FULL.id) == same_name
    assert await store.agents.get("Nobody") is None


async def test_names_are_distinguished_by_case(store: Store) -> None:
    await insert(store, bare("Agent"), bare("agent"))
    assert await store.agents.get("agent") == bare("agent")


async def test_a_taken_name_is_refused_and_the_transaction_leaves_nothing(store: Store) -> None:
    await insert(store, bare("Taken"))
    double = msgspec.structs.replace(bare("Other"), name="Taken")
    with pytest.raises(AlreadyExists, match="An agent named 'Taken' already exists"):
        await insert(store, bare("New"), double)
    assert await store.agents.get("New") is None


async def test_renaming_to_a_taken_name_is_refused(store: Store) -> None:
    await insert(store, bare("A"), bare("B"))
    with pytest.raises(AlreadyExists):
        async with store.transaction() as tx:
            await tx.agents.update(msgspec.structs.replace(bare("A"), name="B"), 1)
    assert await store.agents.get("A") == bare("A")


async def test_an_update_writes_every_field(store: Store) -> None:
    before = msgspec.structs.replace(bare("Before"), id=FULL.id)
    await insert(store, before)
    async with store.transaction() as tx:
        assert await tx.agents.update(FULL, expected_version=1)
    assert await store.agents.get(FULL.id) == FULL
    assert await store.agents.get("Before") is None


async def test_an_update_of_another_version_writes_nothing(store: Store) -> None:
    await insert(store, FULL)
    async with store.transaction() as tx:
        changed = msgspec.structs.replace(FULL, url="http://other", version=8)
        assert not await tx.agents.update(changed, expected_version=6)
        assert not await tx.agents.update(
            msgspec.structs.replace(changed, id=id_of("nobody")), expected_version=7
        )
    assert await store.agents.get("Full") == FULL


async def test_a_deleted_agent_is_gone_and_its_name_is_free(store: Store) -> None:
    await insert(store, bare("A"))
    async with store.transaction() as tx:
        assert await tx.agents.delete(id_of("A"))
        assert not await tx.agents.delete(id_of("A"))
        await tx.agents.insert(msgspec.structs.replace(bare("A"), id=id_of("another")))
    agent = await store.agents.get("A")
    assert agent is not None
    assert agent.id == id_of("another")


async def test_lists_are_in_the_order_of_names_and_go_on_after_the_last_one_seen(store: Store) -> None:
    await insert(store, *(bare(name) for name in ("c", "a", "é", "b", "B")))
    assert [agent.name for agent in await store.agents.page(limit=10)] == ["B", "a", "b", "c", "é"]
    assert [agent.name for agent in await store.agents.page(limit=2)] == ["B", "a"]
    assert [agent.name for agent in await store.agents.page(limit=2, after="a")] == ["b", "c"]
    assert await store.agents.page(limit=2, after="é") == []


async def test_a_list_can_be_of_one_protocol(store: Store) -> None:
    await insert(store, bare("a"), bare("b", protocol="simple-a2a"), bare("c", protocol="simple-a2a"))
    assert [agent.name for agent in await store.agents.page(limit=10, protocol="simple-a2a")] == ["b", "c"]
    assert [agent.name for agent in await store.agents.page(limit=10, protocol="simple-a2a", after="b")] == [
        "c"
    ]
    assert await store.agents.page(limit=10, protocol="jsonrpc-2.0") == []


async def test_a_list_can_be_of_those_that_are_published(store: Store) -> None:
    published = [msgspec.structs.replace(bare(name), publish=DEFAULT_PUBLISH_OPTIONS) for name in ("c", "a")]
    await insert(store, bare("b"), *published)
    assert await store.agents.page(limit=10, published=True) == published[::-1]
    assert await store.agents.page(limit=10, after="a", published=True) == published[:1]
    assert await store.agents.page(limit=10, protocol="a2a-1.0", published=True) == []


async def test_many_names_are_looked_up_at_once(store: Store) -> None:
    await register(store, "A")
    await register(store, "B\u20ac")
    assert await store.agents.known(["A", "B\u20ac", "C", "\x00"]) == {"A", "B\u20ac"}
    assert await store.agents.known([]) == set()
