"""Agents over REST."""

from __future__ import annotations

import pytest
from tests.resources import read_resource

from trunkline.api.resources.agents.registry import AgentHealth, AgentMetadataResource, AgentPage
from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Answer, RunningSystem, ScriptedAgent, simple_success

pytestmark = pytest.mark.anyio

URL = "http://localhost:8080/agent"


def items(answer: Answer) -> list[JsonObject]:
    found = answer.json["items"]
    assert isinstance(found, list)
    return [item for item in found if isinstance(item, dict)]


def paths(answer: Answer) -> list[Json]:
    errors = answer.json["errors"]
    assert isinstance(errors, list)
    return [error["path"] for error in errors if isinstance(error, dict)]


async def test_a_new_agent_is_answered_with_its_place_and_its_version(system: RunningSystem) -> None:
    answer = await system.call("POST", "/agents", {"name": "My Agent", "url": URL})
    assert answer.status == 201
    assert answer.headers["Location"] == "/api/v1/agents/My%20Agent"
    agent = read_resource(AgentMetadataResource, answer.body)
    assert (agent["protocol"], agent["timeout_ms"], agent["auth_type"], agent["dialect"]) == (
        "auto",
        30_000,
        "none",
        None,
    )
    by_name = await system.call("GET", "/agents/My%20Agent")
    by_id = await system.call("GET", f"/agents/{agent['id']}")
    assert by_name.body == by_id.body == answer.body
    assert by_name.headers["ETag"] == answer.headers["ETag"]


async def test_a_secret_goes_in_and_never_comes_out(system: RunningSystem) -> None:
    await system.register("A", URL, auth_type="bearer", auth_config={"token": "s3cret-canary"})
    answers = [
        await system.call("GET", "/agents/A"),
        await system.call("GET", "/agents"),
        await system.call("PATCH", "/agents/A", {"description": "x"}),
        await system.call("PUT", "/agents/A", {"name": "A", "url": URL, "auth_type": "bearer"}),
        await system.call(
            "POST", "/agents", {"name": "A", "url": URL, "auth_config": {"token": "s3cret-canary"}}
        ),
    ]
    assert [answer.status for answer in answers] == [200, 200, 200, 200, 422]
    assert all(b"s3cret-canary" not in answer.body for answer in answers)
    assert all(b"auth_config" not in answer.body for answer in answers[:4])


async def test_a_name_is_taken_once(system: RunningSystem) -> None:
    await system.register("A", URL)
    assert (await system.call("POST", "/agents", {"name": "A", "url": URL})).status == 409


async def test_an_unknown_protocol_is_refused_with_those_that_are_supported(system: RunningSystem) -> None:
    answer = await system.call("POST", "/agents", {"name": "A", "url": URL, "protocol": "soap"})
    assert answer.status == 422
    assert str(answer.json["detail"]).startswith("Unsupported protocol: soap. Supported protocols: ")
    assert paths(answer) == ["protocol"]


async def test_everything_that_is_wrong_is_said_at_once(system: RunningSystem) -> None:
    answer = await system.call("POST", "/agents", {"url": 7, "timeout_ms": "long", "tiemout_ms": 1})
    assert answer.status == 422
    assert set(map(str, paths(answer))) == {"name", "url", "timeout_ms", "tiemout_ms"}


async def test_a_stale_if_match_changes_nothing(system: RunningSystem) -> None:
    await system.register("A", URL)
    read = await system.call("GET", "/agents/A")
    tag = read.headers["ETag"]
    changed = await system.call("PATCH", "/agents/A", {"description": "new"}, {"If-Match": tag})
    assert changed.status == 200
    assert changed.headers["ETag"] != tag
    too_late: list[tuple[str, Json]] = [
        ("PATCH", {"description": "lost"}),
        ("PUT", {"name": "A", "url": URL}),
        ("DELETE", None),
    ]
    for method, body in too_late:
        assert (await system.call(method, "/agents/A", body, {"If-Match": tag})).status == 412
    assert (await system.call("GET", "/agents/A")).json["description"] == "new"


@pytest.mark.parametrize("if_match", ["*", '"0", "1"', '"1"'])
async def test_if_match_takes_one_two_or_any(system: RunningSystem, if_match: str) -> None:
    await system.register("A", URL)
    assert (await system.call("DELETE", "/agents/A", headers={"If-Match": if_match})).status == 204
    assert (await system.call("GET", "/agents/A")).status == 404


@pytest.mark.parametrize("if_match", ["1", 'W/"1"', "", '"x"'])
async def test_any_other_if_match_does_not_match(system: RunningSystem, if_match: str) -> None:
    await system.register("A", URL)
    assert (await system.call("DELETE", "/agents/A", headers={"If-Match": if_match})).status == 412


async def test_a_merge_patch_changes_what_it_names_and_null_goes_back_to_the_default(
    system: RunningSystem,
) -> None:
    await system.register("A", URL, timeout_ms=5, description="old", retry={"max_attempts": 7})
    patch: Json = {"timeout_ms": None, "retry": {"first_delay": "250ms"}}
    agent = (
        await system.call("PATCH", "/agents/A", patch, {"Content-Type": "application/merge-patch+json"})
    ).json
    retry = agent["retry"]
    assert isinstance(retry, dict)
    assert (agent["timeout_ms"], agent["description"]) == (30_000, "old")
    assert (retry["max_attempts"], retry["first_delay"]) == (7, "250ms")


async def test_a_list_is_paged_by_name_and_filtered_by_protocol(system: RunningSystem) -> None:
    for name in ("c", "ä", "a", "b"):
        await system.register(name, URL, protocol="jsonrpc-2.0" if name == "b" else "simple-a2a")
    seen: list[Json] = []
    cursor = ""
    while True:
        answer = await system.call("GET", f"/agents?limit=2{cursor}")
        read_resource(AgentPage, answer.body)
        seen += [agent["name"] for agent in items(answer)]
        if answer.json["next_cursor"] is None:
            break
        cursor = f"&cursor={answer.json['next_cursor']}"
    assert seen == ["a", "b", "c", "ä"]
    assert [agent["name"] for agent in items(await system.call("GET", "/agents?protocol=jsonrpc-2.0"))] == [
        "b"
    ]


async def test_health_tells_who_is_there(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success(None)) as agent:
        await system.register("There", agent.url, protocol="simple-a2a")
        there = read_resource(AgentHealth, (await system.call("GET", "/agents/There/health")).body)
        assert agent.calls == []
        gone = agent.url
    await system.register("Gone", gone, protocol="simple-a2a")
    gone_health = read_resource(AgentHealth, (await system.call("GET", "/agents/Gone/health")).body)
    assert (there["status"], gone_health["status"]) == ("healthy", "unhealthy")
    assert gone_health["detail"]
