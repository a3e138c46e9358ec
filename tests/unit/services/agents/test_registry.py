"""The registry over a real store: what it takes, what it refuses, and what never comes out of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from trunkline.agents import NO_OPTIONS, Agent, Dialect
from trunkline.clock import Instant
from trunkline.errors import AlreadyExists, ConfigurationError, Invalid, NotFound, StaleVersion
from trunkline.jsontypes import JsonObject
from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.registry import AgentRegistry, AgentSpec, parse_spec, spec_document
from trunkline.services.security.vault import KEY_BYTES, Vault
from trunkline.stores.base import Store

pytestmark = pytest.mark.anyio

CANARY = "canary-7b21"
DIALECT = Dialect(protocol="simple-a2a", url="http://a", evidence="no card", decided_at=Instant(3))


def spec(**fields: object) -> AgentSpec:
    return msgspec.convert({"name": "A", "url": "http://a.example/agent", **fields}, AgentSpec)


def bearer(token: str = CANARY) -> AgentSpec:
    return spec(auth_type="bearer", auth_config={"token": token})


async def test_a_new_agent_has_the_defaults_and_can_be_read(registry: AgentRegistry) -> None:
    created = await registry.create(spec())
    assert created.protocol == "auto"
    assert created.timeout_ms == 30_000
    assert (created.auth_type, created.secret, created.dialect) == ("none", None, None)
    assert created.version == 1
    assert await registry.get("A") == created
    assert await registry.get(created.id) == created


async def test_a_taken_name_is_refused(registry: AgentRegistry) -> None:
    await registry.create(spec())
    with pytest.raises(AlreadyExists):
        await registry.create(spec())


async def test_an_unknown_agent_is_not_found(registry: AgentRegistry) -> None:
    for call in (
        registry.get("X"),
        registry.delete("X"),
        registry.patch("X", {}),
        registry.replace("X", spec()),
    ):
        with pytest.raises(NotFound, match="'X'"):
            await call


async def test_agents_are_listed_by_name_and_protocol(registry: AgentRegistry) -> None:
    await registry.create(spec(name="B"))
    await registry.create(spec(name="A", protocol="jsonrpc-2.0"))
    assert [agent.name for agent in await registry.list(limit=10)] == ["A", "B"]
    assert [agent.name for agent in await registry.list(limit=10, after="A")] == ["B"]
    assert [agent.name for agent in await registry.list(limit=10, protocol="jsonrpc-2.0")] == ["A"]


# --- updates


async def test_replacing_gives_everything_left_out_its_default(registry: AgentRegistry) -> None:
    before = await registry.create(spec(description="old", timeout_ms=5, pool="gpu"))
    after = await registry.replace("A", spec(max_concurrency=7))
    assert (after.description, after.timeout_ms, after.pool, after.max_concurrency) == (None, 30_000, None, 7)
    assert (after.id, after.created_at) == (before.id, before.created_at)
    assert after.version == before.version + 1
    assert await registry.get("A") == after


async def test_a_patch_changes_what_it_names_and_null_gives_the_default(registry: AgentRegistry) -> None:
    await registry.create(spec(description="old", timeout_ms=5, protocol_config={"input_mode": "json"}))
    after = await registry.patch("A", {"description": None, "timeout_ms": 9})
    assert (after.description, after.timeout_ms, after.protocol_config) == (None, 9, {"input_mode": "json"})


async def test_a_patch_reaches_into_objects(registry: AgentRegistry) -> None:
    await registry.create(
        parse_spec({"name": "A", "url": "http://a", "retry": {"max_attempts": 5, "max_delay": "9s"}})
    )
    after = await registry.patch("A", {"retry": {"max_attempts": 2}})
    assert spec_document(after)["retry"] == {
        "max_attempts": 2, "backoff": "exponential", "first_delay": "1s", "max_delay": "9s", "jitter": True,
        "on": ["no_answer", 408, 425, 429, "5xx"],
    }  # fmt: skip


async def test_a_change_that_changes_nothing_keeps_the_version(registry: AgentRegistry) -> None:
    created = await registry.create(bearer())
    assert await registry.patch("A", {}) == created
    assert await registry.replace("A", bearer()) == created
    assert await registry.patch("A", {"auth_config": {"token": CANARY}}) == created


async def test_a_stale_if_match_changes_nothing(registry: AgentRegistry) -> None:
    await registry.create(spec())
    second = await registry.patch("A", {"description": "second"}, if_match=1)
    for call in (
        registry.patch("A", {"description": "third"}, if_match=1),
        registry.replace("A", spec(), if_match=1),
        registry.delete("A", if_match=1),
    ):
        with pytest.raises(StaleVersion):
            await call
    assert await registry.get("A") == second
    await registry.delete("A", if_match=2)


async def test_of_two_writers_with_the_same_if_match_one_wins(registry: AgentRegistry) -> None:
    await registry.create(spec())
    outcomes = await asyncio.gather(
        *(registry.patch("A", {"description": str(n)}, if_match=1) for n in range(5)), return_exceptions=True
    )
    assert sum(isinstance(outcome, Agent) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, StaleVersion) for outcome in outcomes) == 4


async def test_without_if_match_no_patch_is_lost(registry: AgentRegistry) -> None:
    await registry.create(spec())
    patches: list[JsonObject] = [
        {"description": "d"},
        {"timeout_ms": 7},
        {"pool": "p"},
        {"max_concurrency": 2},
    ]
    await asyncio.gather(*(registry.patch("A", patch) for patch in patches))
    agent = await registry.get("A")
    assert (agent.description, agent.timeout_ms, agent.pool, agent.max_concurrency) == ("d", 7, "p", 2)
    assert agent.version == 5


async def test_a_new_name_must_be_free(registry: AgentRegistry) -> None:
    await registry.create(spec(name="A"))
    await registry.create(spec(name="B"))
    with pytest.raises(AlreadyExists):
        await registry.patch("A", {"name": "B"})


# --- what the bridge learns


async def test_a_recorded_dialect_does_not_make_an_etag_stale(registry: AgentRegistry) -> None:
    created = await registry.create(spec())
    assert await registry.record_dialect(created, DIALECT)
    agent = await registry.get("A")
    assert (agent.dialect, agent.version, agent.updated_at) == (DIALECT, 1, created.updated_at)
    assert (await registry.patch("A", {"description": "x"}, if_match=1)).dialect == DIALECT


@pytest.mark.parametrize(
    "patch",
    [
        {"url": "http://b"},
        {"protocol": "jsonrpc-2.0"},
        {"protocol": "simple-a2a", "protocol_config": {}},
        {"endpoint_override": "http://a.example/other"},
        {"allow_card_origin": "http://b.example"},
    ],
)
async def test_a_change_of_the_agent_forgets_the_dialect(registry: AgentRegistry, patch: JsonObject) -> None:
    await registry.record_dialect(await registry.create(spec()), DIALECT)
    assert (await registry.patch("A", patch)).dialect is None


async def test_a_dialect_found_before_a_change_is_dropped(registry: AgentRegistry) -> None:
    seen = await registry.create(spec())
    await registry.patch("A", {"url": "http://b"})
    assert not await registry.record_dialect(seen, DIALECT)
    agent = await registry.get("A")
    assert (agent.url, agent.dialect) == ("http://b", None)


# --- secrets


async def test_a_secret_is_kept_sealed_and_only_the_bridge_can_open_it(
    registry: AgentRegistry, tmp_path: Path
) -> None:
    agent = await registry.create(bearer())
    assert registry.secret_of(agent) == {"token": CANARY}
    assert CANARY not in repr(agent)
    assert CANARY not in repr(bearer())
    assert CANARY not in repr(spec_document(agent))
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert files
    assert not any(CANARY.encode() in content for content in files)


async def test_an_agent_without_authentication_has_no_secret(registry: AgentRegistry) -> None:
    assert registry.secret_of(await registry.create(spec())) is None


async def test_an_update_without_auth_config_keeps_the_secret(registry: AgentRegistry) -> None:
    await registry.create(bearer())
    replaced = await registry.replace("A", spec(auth_type="bearer", description="new"))
    assert registry.secret_of(replaced) == {"token": CANARY}
    patched = await registry.patch("A", {"url": "http://a.example/other", "name": "B"})
    assert registry.secret_of(patched) == {"token": CANARY}


async def test_a_stored_secret_is_never_sent_to_another_host(registry: AgentRegistry) -> None:
    await registry.create(spec(auth_type="headers", auth_config={"X-Key": CANARY}))
    for url in ("http://b.example/agent", "https://a.example/agent", "http://a.example:81/agent"):
        with pytest.raises(Invalid, match="auth_config: must be given again"):
            await registry.patch("A", {"url": url})
    with pytest.raises(Invalid, match="auth_config: must be given again"):
        await registry.replace("A", spec(url="http://b.example", auth_type="headers"))

    moved = await registry.patch("A", {"url": "http://b.example", "auth_config": {"X-Other": "new"}})
    assert registry.secret_of(moved) == {"X-Other": "new"}


@pytest.mark.parametrize(
    "approval",
    [{"endpoint_override": "http://b.example/agent"}, {"allow_card_origin": ["http://b.example"]}],
)
async def test_approving_another_host_requires_the_secret_that_will_be_sent_there(
    registry: AgentRegistry, approval: JsonObject
) -> None:
    await registry.create(bearer())
    with pytest.raises(Invalid, match="auth_config: must be given again"):
        await registry.patch("A", approval)
    with pytest.raises(Invalid, match="auth_config: must be given again"):
        await registry.replace("A", parse_spec({"name": "A", "url": "http://a.example/agent",
                                                "auth_type": "bearer", **approval}))  # fmt: skip
    half: JsonObject = {"auth_config": {}, **approval}
    with pytest.raises(Invalid, match=r"auth_config\.token"):
        await registry.patch("A", half)

    approved = await registry.patch("A", {"auth_config": {"token": "new"}, **approval})
    assert registry.secret_of(approved) == {"token": "new"}
    withdrawn = await registry.patch("A", dict.fromkeys(approval))
    assert registry.secret_of(withdrawn) == {"token": "new"}


async def test_options_are_patched_shown_and_sent_back_like_every_field(registry: AgentRegistry) -> None:
    created = await registry.create(spec())
    shown = spec_document(created)
    assert (shown["resend"], shown["allow_card_origin"], shown["breaker"]) == ("ask_first", [], None)
    await registry.patch("A", {"breaker": True, "rate": {"per_second": 2}})
    patched = await registry.patch("A", {"breaker": {"failures": 2}, "resend": "never"})
    assert spec_document(patched)["breaker"] == {
        "failures": 2, "rate": 0.5, "window": 20, "open_ms": 30_000, "probes": 1, "jsonrpc_errors": False,
    }  # fmt: skip
    assert spec_document(patched)["rate"] == {"per_second": 2.0, "burst": 1}
    assert await registry.replace("A", parse_spec(spec_document(patched))) == patched
    assert (await registry.patch("A", {"breaker": None, "rate": None, "resend": None})).options == NO_OPTIONS


async def test_a_client_secret_is_never_sent_to_another_token_endpoint(registry: AgentRegistry) -> None:
    client: JsonObject = {"token_url": "https://a.example/t", "client_id": "me", "client_secret": CANARY}
    await registry.create(spec(auth_type="oauth2", auth_config=client))
    elsewhere = "https://b.example/t"
    (refused,) = await asyncio.gather(
        registry.patch("A", {"auth_config": {"token_url": elsewhere}}), return_exceptions=True
    )
    assert isinstance(refused, Invalid)
    assert "auth_config.client_secret: must be given again" in str(refused)
    assert registry.secret_of(await registry.get("A")) == client
    same_host = await registry.patch("A", {"auth_config": {"token_url": "https://a.example/v2/t"}})
    assert registry.secret_of(same_host) == {**client, "token_url": "https://a.example/v2/t"}
    moved = await registry.patch("A", {"auth_config": {"token_url": elsewhere, "client_secret": "new"}})
    assert registry.secret_of(moved) == {**client, "token_url": elsewhere, "client_secret": "new"}


async def test_a_patch_of_the_auth_config_is_merged_with_the_one_that_cannot_be_read(
    registry: AgentRegistry,
) -> None:
    await registry.create(spec(auth_type="basic", auth_config={"username": "me", "password": "old"}))
    after = await registry.patch("A", {"auth_config": {"password": "new"}})
    assert registry.secret_of(after) == {"username": "me", "password": "new"}


async def test_another_auth_type_needs_its_own_config(registry: AgentRegistry) -> None:
    await registry.create(bearer())
    with pytest.raises(Invalid, match=r"auth_config\.username"):
        await registry.patch("A", {"auth_type": "basic"})
    after = await registry.patch(
        "A", {"auth_type": "basic", "auth_config": {"username": "me", "password": "pw"}}
    )
    assert registry.secret_of(after) == {"username": "me", "password": "pw"}
    assert (await registry.patch("A", {"auth_type": "none"})).secret is None


async def test_a_secret_cannot_be_taken_away_from_an_agent_that_needs_it(registry: AgentRegistry) -> None:
    await registry.create(bearer())
    with pytest.raises(Invalid, match=r"auth_config\.token"):
        await registry.patch("A", {"auth_config": None})


async def test_a_secret_whose_key_is_lost_can_be_given_again(
    registry: AgentRegistry, store: Store, agent_cache: AgentCache
) -> None:
    agent = await registry.create(bearer())
    later = AgentRegistry(store, Vault(b"\x01" * KEY_BYTES), agent_cache)
    with pytest.raises(ConfigurationError, match="cannot be decrypted"):
        later.secret_of(agent)
    again = await later.patch("A", {"auth_config": {"token": "new"}})
    assert later.secret_of(again) == {"token": "new"}


async def test_no_refusal_repeats_a_secret(registry: AgentRegistry) -> None:
    refused: list[JsonObject] = [
        {"auth_type": "bearer", "auth_config": {"token": f"{CANARY}\n"}},
        {"auth_type": "bearer", "auth_config": {"tokn": CANARY}},
        {"auth_type": "basic", "auth_config": {"username": f"{CANARY}:", "password": CANARY}},
        {"auth_type": "none", "auth_config": {"token": CANARY}},
        {"auth_type": "bearer", "auth_config": CANARY},
    ]
    for fields in refused:
        with pytest.raises(Invalid) as caught:
            await registry.create(parse_spec({"name": "A", "url": "http://a", **fields}))
        assert CANARY not in f"{caught.value} {caught.value.fix} {caught.value.findings}"
