"""Agents that are registered by their URL alone, wherever they live and whatever version they speak."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from tests.scenarios.web_sites import (
    AgentSite,
    SiteCard,
    Speaker,
    card_v03,
    card_v1,
    refused,
    speaks_v03,
    speaks_v1,
    speaks_v1_http,
)

from trunkline.bridge.agents.negotiation import CARD_FRESH_FOR
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing import FakeClock, RunningSystem, ScriptedAgent, running_system
from trunkline.testing.agents import EndlessReply, Hangup, Script
from trunkline.testing.system import error_of, objects_in, step_of

pytestmark = pytest.mark.anyio

CARD = "/.well-known/agent-card.json"
OLD_CARD = "/.well-known/agent.json"
CANARY = "canary-93f1"
ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent", "retry": {"max_attempts": 1}}}}


async def register(system: RunningSystem, url: str, **fields: Json) -> None:
    await system.register("Agent", url, **fields)
    await system.save(ONE)


async def shown(system: RunningSystem) -> JsonObject:
    dialect = (await system.call("GET", "/agents/Agent")).json["dialect"]
    assert isinstance(dialect, dict)
    return dialect


async def used_protocol(system: RunningSystem) -> str:
    """The protocol of the step, after one successful run."""
    run = await system.run("one")
    assert run["status"] == "COMPLETED", run["error"]
    return str(step_of(run, "only")["protocol"])


def tried(dialect: JsonObject) -> list[tuple[str, str]]:
    return [(str(probe["tried"]), str(probe["answered"])) for probe in objects_in(dialect["tried"])]


# --- where an agent lives


@pytest.mark.parametrize("registered", ["/agents/one", "/agents/one/"])
@pytest.mark.parametrize("written", ["/agents/one", "/agents/one/"])
@pytest.mark.parametrize("served", ["/agents/one", "/agents/one/"])
async def test_behind_a_prefix_it_works_with_a_trailing_slash_and_without(
    system: RunningSystem, registered: str, written: str, served: str
) -> None:
    async with AgentSite() as site:
        site.cards[f"/agents/one{CARD}"] = SiteCard(card_v03(site.url + written))
        site.speakers[served] = speaks_v03
        await register(system, site.url + registered)
        assert [await used_protocol(system) for _ in range(2)] == ["a2a-0.3", "a2a-0.3"]
        assert (await shown(system))["url"] == site.url + served
    # Once redirected at most: what has worked is where the next one goes.
    assert [seen.path for seen in site.asked("POST", 200)] == [served, served]
    assert len(site.asked("POST", 307)) == (served != registered)


async def test_a_card_at_the_root_leads_to_an_agent_under_a_path(system: RunningSystem) -> None:
    async with AgentSite() as site:
        site.cards[CARD] = SiteCard(card_v03("/deep/rpc"))
        site.speakers["/deep/rpc"] = speaks_v03
        await register(system, f"{site.url}/deep/agent")
        assert await used_protocol(system) == "a2a-0.3"
        dialect = await shown(system)
    assert (dialect["url"], dialect["card_url"]) == (f"{site.url}/deep/rpc", site.url + CARD)
    assert tried(dialect) == [("GET /deep/agent" + CARD, "HTTP 404"), ("GET " + CARD, "HTTP 200, a card")]


async def test_an_agent_behind_a_proxy_is_found_where_the_operator_says_though_its_card_has_another_path(
    system: RunningSystem,
) -> None:
    async with AgentSite() as site:
        site.cards[f"/proxied{CARD}"] = SiteCard(card_v03(f"{site.url}/"))
        site.speakers["/proxied"] = speaks_v03
        await register(system, f"{site.url}/proxied")
        assert await used_protocol(system) == "a2a-0.3"
        assert (await shown(system))["url"] == f"{site.url}/proxied"


async def test_an_old_card_under_its_old_name_is_found(system: RunningSystem) -> None:
    async with AgentSite() as site:
        site.cards[f"/a{OLD_CARD}"] = SiteCard(card_v03(f"{site.url}/a", version=None))
        site.speakers["/a"] = speaks_v03
        await register(system, f"{site.url}/a")
        assert await used_protocol(system) == "a2a-0.2"


async def test_an_agent_with_a_card_of_1_0_is_called_in_1_0(system: RunningSystem) -> None:
    async with AgentSite() as site:
        interfaces = ((f"{site.url}/03", "JSONRPC", "0.3"), (f"{site.url}/10", "JSONRPC", "1.0"))
        site.cards[CARD] = SiteCard(card_v1(*interfaces), etag='"1"')
        site.speakers |= {"/03": speaks_v03, "/10": speaks_v1}
        await register(system, site.url)
        assert await used_protocol(system) == "a2a-1.0"
        dialect = await shown(system)
    assert (dialect["url"], dialect["card_etag"], dialect["streams"]) == (f"{site.url}/10", '"1"', False)
    assert site.asked("POST")[0].headers["A2A-Version"] == "1.0"


async def test_an_agent_whose_card_offers_only_http_is_called_over_http(system: RunningSystem) -> None:
    async with AgentSite() as site:
        site.cards[f"/a{CARD}"] = SiteCard(card_v1((f"{site.url}/a/", "HTTP+JSON", "1.0")))
        site.speakers["/a/message:send"] = speaks_v1_http
        await register(system, f"{site.url}/a")
        assert await used_protocol(system) == "a2a-1.0-http"


# --- where a card may send us


async def test_a_card_that_names_localhost_is_refused_with_both_ways_to_approve_it(
    system: RunningSystem,
) -> None:
    async with AgentSite() as site:
        local = f"http://localhost:{site.port}"
        site.cards[CARD] = SiteCard(card_v03(f"{local}/rpc"))
        site.speakers["/rpc"] = speaks_v03
        await register(system, site.url)
        run = await system.run("one")
        assert not site.asked("POST")
        assert "not of the same origin" in str(error_of(run)["message"])
        fix = str(error_of(run)["fix"])
        assert f"allow_card_origin to {local}." in fix
        assert "endpoint_override" in fix

        for approval in ({"allow_card_origin": local}, {"endpoint_override": f"{site.url}/rpc"}):
            taken_back: JsonObject = {"allow_card_origin": None, "endpoint_override": None}
            answer = await system.call("PATCH", "/agents/Agent", taken_back | approval)
            assert answer.json["dialect"] is None
            assert await used_protocol(system) == "a2a-0.3"


@pytest.mark.parametrize("approval", ["allow_card_origin", "endpoint_override"])
async def test_a_secret_goes_to_another_origin_only_when_it_was_given_for_it(
    system: RunningSystem, approval: str
) -> None:
    async with AgentSite() as site, AgentSite() as other:
        site.cards[CARD] = SiteCard(card_v03(f"{other.url}/rpc"))
        other.speakers["/rpc"] = speaks_v03
        await register(system, site.url, auth_type="bearer", auth_config={"token": CANARY})
        assert (await system.run("one"))["status"] == "FAILED"
        assert not other.seen

        place = other.url if approval == "allow_card_origin" else f"{other.url}/rpc"
        alone = await system.call("PATCH", "/agents/Agent", {approval: place})
        assert alone.status == 422
        assert "auth_config" in alone.body.decode()
        together: JsonObject = {approval: place, "auth_config": {"token": CANARY}}
        assert (await system.call("PATCH", "/agents/Agent", together)).status == 200
        assert await used_protocol(system) == "a2a-0.3"
        assert other.seen[0].headers["Authorization"] == f"Bearer {CANARY}"


# --- only after proof


def says(code: int) -> Speaker:
    return lambda body: refused(body, code, "No")


@pytest.mark.parametrize("code", [-32601, -32009])
async def test_an_agent_that_proves_that_it_accepted_nothing_is_called_in_its_next_dialect(
    system: RunningSystem, code: int
) -> None:
    async with AgentSite() as site:
        interfaces = ((f"{site.url}/10", "JSONRPC", "1.0"), (f"{site.url}/03", "JSONRPC", "0.3"))
        site.cards[CARD] = SiteCard(card_v1(*interfaces))
        site.speakers |= {"/10": says(code), "/03": speaks_v03}
        await register(system, site.url)
        assert [await used_protocol(system) for _ in range(2)] == ["a2a-0.3", "a2a-0.3"]
        dialect = await shown(system)
    assert [seen.path for seen in site.asked("POST")] == ["/10", "/03", "/03"]
    assert str(dialect["evidence"]).startswith("The agent refused a2a-1.0, and offers A2A 0.3")
    assert ("POST /10 in a2a-1.0", f"JSON-RPC Error {code}: No") in tried(dialect)


async def test_a_card_that_is_wrong_about_its_version_is_found_out(system: RunningSystem) -> None:
    async with AgentSite() as site:
        site.cards[CARD] = SiteCard(card_v1((f"{site.url}/rpc", "JSONRPC", "1.0")))
        site.speakers["/rpc"] = speaks_v03
        await register(system, f"{site.url}/rpc")
        assert await used_protocol(system) == "a2a-0.3"


OPERATION = "/a2a/message:stream"


async def test_a_card_that_names_one_operation_leads_to_the_endpoint_next_to_it(
    system: RunningSystem,
) -> None:
    async with AgentSite() as site:
        site.cards[CARD] = SiteCard(card_v03(f"{site.url}{OPERATION}"))
        site.speakers |= {OPERATION: answers(400), "/a2a": speaks_v03}
        await register(system, site.url)
        assert [await used_protocol(system) for _ in range(2)] == ["a2a-0.3", "a2a-0.3"]
        dialect = await shown(system)
    assert [seen.path for seen in site.asked("POST")] == [OPERATION, "/", "/a2a", "/a2a"]
    assert dialect["url"] == f"{site.url}/a2a"
    assert "one operation (/message:stream)" in str(dialect["evidence"])
    assert (f"POST {OPERATION} in a2a-0.3", "The agent answered HTTP 400") in tried(dialect)


def streams_alone(body: JsonObject) -> Json | web.Response:
    """JSON-RPC at the address of the stream, and no other method."""
    if body.get("method") != "message/stream":
        return web.Response(status=400, text="Only message/stream")
    event = speaks_v03({**body, "method": "message/send"})
    return web.Response(body=b"data: " + encode(event) + b"\n\n", content_type="text/event-stream")


async def test_an_address_that_takes_streams_alone_gets_streams_whatever_its_card_says(
    system: RunningSystem,
) -> None:
    async with AgentSite() as site:
        site.cards[CARD] = SiteCard(card_v03(f"{site.url}{OPERATION}"))
        site.speakers[OPERATION] = streams_alone
        await register(system, site.url)
        assert [await used_protocol(system) for _ in range(2)] == ["a2a-0.3", "a2a-0.3"]
        dialect = await shown(system)
    methods = [(seen.path, seen.body.get("method")) for seen in site.asked("POST")]
    assert methods == [
        (OPERATION, "message/send"),
        ("/", "message/send"),
        ("/a2a", "message/send"),
        (OPERATION, "message/stream"),
        (OPERATION, "message/stream"),
    ]
    assert (dialect["url"], dialect["streams"]) == (f"{site.url}{OPERATION}", True)


async def test_an_agent_without_a_card_is_tried_in_every_dialect_that_it_may_speak(
    system: RunningSystem,
) -> None:
    async with AgentSite() as site:
        site.speakers["/a"] = speaks_v1
        await register(system, f"{site.url}/a")
        assert [await used_protocol(system) for _ in range(2)] == ["a2a-1.0", "a2a-1.0"]
        methods = [seen.body.get("method") for seen in site.asked("POST")]
        dialect = await shown(system)
    assert methods == [None, "message/send", "SendMessage", "SendMessage"]
    assert [what for what, _ in tried(dialect)][-2:] == ["POST /a in simple-a2a", "POST /a in jsonrpc-2.0"]


def answers(status: int, **headers: str) -> Speaker:
    return lambda _: web.Response(status=status, headers=headers)


@pytest.mark.parametrize(
    "speaker",
    [
        pytest.param(says(-32603), id="-32603"),
        pytest.param(says(-32000), id="-32000"),
        pytest.param(answers(500), id="HTTP 500"),
        pytest.param(answers(503), id="HTTP 503"),
        pytest.param(answers(303, Location="/"), id="HTTP 303"),
    ],
)
async def test_without_proof_nothing_is_sent_twice(system: RunningSystem, speaker: Speaker) -> None:
    async with AgentSite() as site:
        interfaces = ((f"{site.url}/10", "JSONRPC", "1.0"), (f"{site.url}/03", "JSONRPC", "0.3"))
        site.cards[CARD] = SiteCard(card_v1(*interfaces))
        site.speakers |= {"/10": speaker, "/03": speaks_v03}
        await register(system, site.url)
        run = await system.run("one")
    assert run["status"] == "FAILED"
    assert [seen.path for seen in site.asked("POST")] == ["/10"]


@pytest.mark.parametrize(
    ("silence", "code"),
    [(Hangup(b"HTTP/1.1 200 OK\r\nContent-Le"), "agent_connection_lost"), (EndlessReply(), "agent_timeout")],
)
async def test_a_call_that_may_have_been_taken_is_not_made_in_another_dialect(
    system: RunningSystem, silence: Script, code: str
) -> None:
    async with ScriptedAgent(silence) as agent:
        agent.publish(card_v1((agent.url, "JSONRPC", "1.0"), (f"{agent.url}/03", "JSONRPC", "0.3")))
        await register(system, agent.url, timeout_ms=300)
        run = await system.run("one")
    assert (run["status"], error_of(run)["code"]) == ("FAILED", code)
    assert len(agent.calls) == 1


# --- what is pinned


async def test_a_pinned_dialect_reads_the_card_once_for_what_the_agent_can_do(system: RunningSystem) -> None:
    async with AgentSite() as site:
        site.cards[CARD] = SiteCard(
            card_v03(f"{site.url}/elsewhere", capabilities={"pushNotifications": True})
        )
        site.speakers["/a"] = speaks_v03
        await register(system, f"{site.url}/a", protocol="a2a-0.3")
        assert [await used_protocol(system) for _ in range(2)] == ["a2a-0.3", "a2a-0.3"]
        dialect = await shown(system)
    assert len(site.asked("GET", 200)) == 1
    assert (dialect["url"], dialect["pushes"]) == (f"{site.url}/a", True)
    assert str(dialect["evidence"]).startswith("Pinned by the operator")


@pytest.mark.parametrize("card", [None, SiteCard(b'{"name": "half a ca')], ids=["none", "one that is broken"])
async def test_a_pinned_dialect_needs_no_card(system: RunningSystem, card: SiteCard | None) -> None:
    async with AgentSite() as site:
        site.speakers["/a"] = speaks_v03
        if card is not None:
            site.cards[CARD] = card
        await register(system, f"{site.url}/a", protocol="a2a-0.3")
        assert await used_protocol(system) == "a2a-0.3"


async def test_a_pinned_dialect_is_never_left_whatever_the_card_offers(system: RunningSystem) -> None:
    async with AgentSite() as site:
        site.cards[CARD] = SiteCard(card_v1((f"{site.url}/a", "JSONRPC", "1.0")))
        site.speakers["/a"] = speaks_v1
        await register(system, f"{site.url}/a", protocol="a2a-0.3")
        run = await system.run("one")
    assert run["status"] == "FAILED"
    assert len(site.asked("POST")) == 1


@pytest.mark.parametrize("protocol", ["jsonrpc-2.0", "simple-a2a", "jsonrpc-call"])
async def test_what_has_no_cards_asks_for_none(system: RunningSystem, protocol: str) -> None:
    async with AgentSite() as site:
        site.speakers["/a"] = speaks_v03
        config: JsonObject | None = {"method": "message/send"} if protocol == "jsonrpc-call" else None
        await register(system, f"{site.url}/a", protocol=protocol, protocol_config=config)
        await system.run("one")
    assert not site.asked("GET")
    assert site.asked("POST")


# --- looking again


@pytest.mark.embedded_only
async def test_a_known_card_is_compared_during_calls_and_followed_when_it_changes(tmp_path: Path) -> None:
    clock = FakeClock()
    async with AgentSite() as site, running_system(tmp_path, clock=clock) as system:
        site.cards[CARD] = SiteCard(card_v03(f"{site.url}/old"), etag='"1"')
        site.speakers |= {"/old": speaks_v03, "/new": speaks_v03}
        await register(system, site.url)
        for _ in range(3):
            await used_protocol(system)
        assert len(site.asked("GET")) == 1
        before = await shown(system)

        clock.advance(CARD_FRESH_FOR)
        await used_protocol(system)
        unchanged = await site.has_answered("GET", 304)
        assert unchanged.headers["If-None-Match"] == '"1"'
        assert await shown(system) == before
        await used_protocol(system)
        assert len(site.asked("GET")) == 2

        site.cards[CARD] = SiteCard(card_v03(f"{site.url}/new"), etag='"2"')
        clock.advance(CARD_FRESH_FOR)
        await used_protocol(system)
        assert site.asked("POST")[-1].path == "/old"
        await site.has_answered("GET", 200, times=2)
        while (dialect := await shown(system)) == before:
            pass
        assert (dialect["url"], dialect["card_etag"]) == (f"{site.url}/new", '"2"')
        await used_protocol(system)
        assert site.asked("POST")[-1].path == "/new"


@pytest.mark.embedded_only
async def test_a_card_without_an_etag_is_compared_by_what_it_says(tmp_path: Path) -> None:
    clock = FakeClock()
    async with AgentSite() as site, running_system(tmp_path, clock=clock) as system:
        site.cards[CARD] = SiteCard(card_v03(f"{site.url}/a"))
        site.speakers["/a"] = speaks_v03
        await register(system, site.url)
        await used_protocol(system)
        before = await shown(system)
        clock.advance(CARD_FRESH_FOR)
        await used_protocol(system)
        again = await site.has_answered("GET", 200, times=2)
        assert "If-None-Match" not in again.headers
        await used_protocol(system)
        assert await shown(system) == before


@pytest.mark.embedded_only
async def test_a_card_that_is_gone_or_leads_away_changes_nothing(tmp_path: Path) -> None:
    clock = FakeClock()
    async with AgentSite() as site, running_system(tmp_path, clock=clock) as system:
        site.cards[CARD] = SiteCard(card_v03(f"{site.url}/a"))
        site.speakers["/a"] = speaks_v03
        await register(system, site.url)
        await used_protocol(system)
        before = await shown(system)
        site.cards[CARD] = SiteCard(card_v03("http://elsewhere.example/a"))
        clock.advance(CARD_FRESH_FOR)
        await used_protocol(system)
        await site.has_answered("GET", 200, times=2)
        site.cards.clear()
        clock.advance(CARD_FRESH_FOR + timedelta(seconds=1))
        await used_protocol(system)
        await site.has_answered("GET", 404)
        await used_protocol(system)
        assert await shown(system) == before


async def test_an_operator_can_have_it_looked_at_now(system: RunningSystem) -> None:
    async with AgentSite() as site:
        await register(system, f"{site.url}/a")
        first = (await system.call("POST", "/agents/Agent/refresh")).json
        assert isinstance(first["dialect"], dict)
        assert first["dialect"]["protocol"] == "simple-a2a"

        site.cards[CARD] = SiteCard(card_v1((f"{site.url}/b", "JSONRPC", "1.0")))
        site.speakers["/b"] = speaks_v1
        second = await system.call("POST", "/agents/Agent/refresh")
        assert isinstance(second.json["dialect"], dict)
        assert second.json["dialect"]["protocol"] == "a2a-1.0"
        assert second.headers["ETag"] == '"1"'
        assert not site.asked("POST")
        assert await used_protocol(system) == "a2a-1.0"


async def test_a_look_that_finds_nothing_out_says_why_and_what_was_known_stays(system: RunningSystem) -> None:
    async with AgentSite() as site:
        site.cards[CARD] = SiteCard(card_v03(f"{site.url}/a"))
        site.speakers["/a"] = speaks_v03
        await register(system, site.url)
        await used_protocol(system)
        before = await shown(system)
        site.cards[CARD] = SiteCard(card_v03("http://elsewhere.example/a"))
        answer = await system.call("POST", "/agents/Agent/refresh")
        assert (answer.status, answer.json["type"]) == (502, "urn:trunkline:problem:agent-unclear")
        assert "http://elsewhere.example/a" in str(answer.json["detail"])
        assert "allow_card_origin" in str(answer.json["fix"])
        assert await shown(system) == before
        assert (await system.call("POST", "/agents/Nobody/refresh")).status == 404


# --- on the wire


async def test_the_requests_for_cards_are_on_the_wire_of_the_step_that_needed_them(
    system: RunningSystem,
) -> None:
    async with AgentSite() as site:
        site.cards[CARD] = SiteCard(card_v03(f"{site.url}/a"))
        site.speakers["/a"] = speaks_v03
        await register(system, f"{site.url}/a", auth_type="bearer", auth_config={"token": CANARY})
        runs = [await system.run("one") for _ in range(2)]
        first, second = [await system.items(f"/runs/{run['id']}/wire") for run in runs]
    assert [exchange["kind"] for exchange in first] == ["card", "card", "send"]
    assert [exchange["kind"] for exchange in second] == ["send"]
    assert CANARY not in str(first)


async def test_a_card_that_decides_nothing_is_on_the_wire_of_the_step_that_failed(
    system: RunningSystem,
) -> None:
    async with AgentSite() as site:
        site.cards[CARD] = SiteCard(card_v03("http://elsewhere.example/a"))
        await register(system, site.url)
        run = await system.run("one")
        exchanges = await system.items(f"/runs/{run['id']}/wire")
    assert error_of(run)["code"] == "agent_protocol_unclear"
    assert [exchange["kind"] for exchange in exchanges] == ["card"]
