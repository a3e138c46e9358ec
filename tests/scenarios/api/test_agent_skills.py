"""Tags and skills of agents: set by hand or read from a card, and how agents are found by them."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_task

pytestmark = pytest.mark.anyio


async def names(system: RunningSystem, query: str) -> list[str]:
    return [str(agent["name"]) for agent in await system.items(f"/agents?{query}")]


def card(url: str, *skills: str) -> JsonObject:
    return {
        "name": "Translator",
        "url": url,
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "skills": [{"id": skill, "name": skill.title()} for skill in skills],
    }


async def test_agents_are_found_by_skill_tag_and_text(system: RunningSystem) -> None:
    url = "http://127.0.0.1:9"
    await system.register("A", url, tags=["eu", "cheap"], skills=["translate"], description="Deep words")
    await system.register("B", url, tags=["eu"], skills=["translate", "summarize"])
    await system.register("C", url)
    assert await names(system, "skill=translate") == ["A", "B"]
    assert await names(system, "skill=translate&tag=cheap") == ["A"]
    assert await names(system, "tag=eu&limit=1") == ["A", "B"]
    assert await names(system, "q=DEEP") == ["A"]
    assert await names(system, "q=summar") == ["B"]
    assert await names(system, "skill=trans") == []
    assert await names(system, "q=c") == ["A", "C"]


async def test_tags_and_skills_are_changed_and_dropped(system: RunningSystem) -> None:
    created = await system.register("A", "http://127.0.0.1:9", tags=["x", "x"], skills="translate")
    assert (created["tags"], created["skills"]) == (["x"], ["translate"])
    changed = await system.call("PATCH", "/agents/A", {"tags": ["y"], "skills": None})
    assert (changed.json["tags"], changed.json["skills"]) == (["y"], [])


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": [""]},
        {"skills": ["x" * 101]},
        {"tags": [" x"]},
        {"tags": ["a\nb"]},
        {"tags": [1]},
        {"skills": {}},
    ],
)
async def test_what_is_no_tag_or_skill_is_refused(system: RunningSystem, fields: JsonObject) -> None:
    refused = await system.call("POST", "/agents", {"name": "A", "url": "http://127.0.0.1:9", **fields})
    assert refused.status == 422
    assert next(iter(fields)) in refused.body.decode()


async def test_too_many_tags_are_refused(system: RunningSystem) -> None:
    tags: Json = [f"t{number}" for number in range(101)]
    refused = await system.call("POST", "/agents", {"name": "A", "url": "http://127.0.0.1:9", "tags": tags})
    assert (refused.status, "at most 100 entries" in refused.body.decode()) == (422, True)


async def test_skills_come_from_the_card_unless_they_are_set(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_task("ok")) as agent:
        agent.publish(card(agent.url, "translate", "detect-language"))
        await system.register("Translator", agent.url)
        assert await names(system, "skill=translate") == []
        refreshed = await system.call("POST", "/agents/Translator/refresh")
        assert refreshed.json["skills"] == ["translate", "detect-language"]
        assert await names(system, "skill=detect-language") == ["Translator"]
        pinned = await system.call("PATCH", "/agents/Translator", {"skills": ["translate"]})
    assert pinned.json["skills"] == ["translate"]
    assert await names(system, "skill=detect-language") == []
