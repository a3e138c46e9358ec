"""Agents with `auto` that were updated in place: they keep their input, and changed outputs are told."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from tests.scenarios.web_sites import AgentSite, refused

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.testing import RunningSystem
from trunkline.testing.system import objects_in, step_of

pytestmark = pytest.mark.anyio

AMPLE_SECONDS = 60.0
WORKFLOW: JsonObject = {
    "name": "one",
    "steps": {"only": {"agent": "Agent", "retry": {"max_attempts": 1}}},
    "output": {"text": "${steps.only.output.text}"},
}


def before(body: JsonObject) -> Json:
    """The migration guide's agent in Simple A2A."""
    given = body["input"]
    assert isinstance(given, dict)
    output: JsonObject = {"result": f"Processed: {given.get('query', '')}"}
    return {"task_id": body["task_id"], "status": "success", "output": output, "error": None}


def after(body: JsonObject, answer: str = "Processed: {}") -> Json | web.Response:
    """And in JSON-RPC 2.0: it reads the input from the text alone, as JSON."""
    if body.get("jsonrpc") != "2.0":
        error = refused(body, -32600, "Invalid Request: jsonrpc must be 2.0")
        return web.Response(status=400, body=encode(error), content_type="application/json")
    params = body["params"]
    assert isinstance(params, dict)
    message = params["message"]
    assert isinstance(message, dict)
    text = str(objects_in(message["parts"])[0]["text"])
    try:
        given = decode(text)
    except ValueError:
        given = {"text": text}
    assert isinstance(given, dict)
    said = encode({"result": answer.format(given.get("query", ""))}).decode()
    artifacts: Json = [{"parts": [{"kind": "text", "text": said}]}]
    return {
        "jsonrpc": "2.0",
        "id": body["id"],
        "result": {"status": {"state": "completed"}, "artifacts": artifacts},
    }


def after_with_other_words(body: JsonObject) -> Json | web.Response:
    return after(body, "Done: {}")


async def read(system: RunningSystem, query: str) -> tuple[Json, str]:
    """Runs once: the text that the workflow reads, and the protocol."""
    run = await system.run("one", {"query": query, "depth": 2})
    assert run["status"] == "COMPLETED", run["error"]
    output = run["output"]
    assert isinstance(output, dict)
    return output["text"], str(step_of(run, "only")["protocol"])


async def change_event(system: RunningSystem) -> JsonObject:
    async with asyncio.timeout(AMPLE_SECONDS):
        while True:
            for event in await system.items("/migration/events"):
                if event["kind"] == "dialect_changed":
                    return event
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("is_repeatable", [True, False])
async def test_an_agent_that_was_updated_in_place_keeps_its_input_and_is_compared(
    system: RunningSystem, is_repeatable: bool
) -> None:
    async with AgentSite() as site:
        site.speakers["/agent"] = before
        await system.register("Agent", f"{site.url}/agent", repeatable=is_repeatable)
        await system.save(WORKFLOW)
        assert [await read(system, query) for query in ("q1", "q2")] == [
            ("Processed: q1", "simple-a2a"),
            ("Processed: q2", "simple-a2a"),
        ]
        site.speakers["/agent"] = after
        assert await read(system, "q3") == ("Processed: q3", "jsonrpc-2.0")
        event = await change_event(system)
        assert await read(system, "q4") == ("Processed: q4", "jsonrpc-2.0")
    assert "it spoke simple-a2a, and now speaks jsonrpc-2.0." in str(event["why"])
    expected = "answers 2 recorded calls as before" if is_repeatable else "is not declared repeatable"
    assert expected in str(event["why"])
    dialect = (await system.call("GET", "/agents/Agent")).json["dialect"]
    assert isinstance(dialect, dict)
    assert "it gets the whole input" in str(dialect["evidence"])


async def test_changed_outputs_of_an_agent_that_was_updated_in_place_are_told(system: RunningSystem) -> None:
    async with AgentSite() as site:
        site.speakers["/agent"] = before
        await system.register("Agent", f"{site.url}/agent", repeatable=True)
        await system.save(WORKFLOW)
        await read(system, "q1")
        site.speakers["/agent"] = after_with_other_words
        assert await read(system, "q2") == ("Done: q2", "jsonrpc-2.0")
        event = await change_event(system)
    assert "Its outputs have changed: it answers 1 of 1 recorded calls differently." in str(event["why"])
    assert 'was "Processed: q1" and is "Done: q1"' in str(event["why"])


async def test_an_input_mode_that_was_chosen_stays(system: RunningSystem) -> None:
    async with AgentSite() as site:
        site.speakers["/agent"] = before
        await system.register("Agent", f"{site.url}/agent", protocol_config={"input_mode": "text"})
        await system.save(WORKFLOW)
        await read(system, "q1")
        site.speakers["/agent"] = after
        assert await read(system, "q2") == ("Processed: ", "jsonrpc-2.0")


async def test_an_agent_that_never_answered_in_simple_a2a_was_not_updated(system: RunningSystem) -> None:
    """It has no card, so Simple A2A is tried first."""
    async with AgentSite() as site:
        site.speakers["/agent"] = after
        await system.register("Agent", f"{site.url}/agent")
        await system.save(WORKFLOW)
        assert (await read(system, "q1"))[1] == "jsonrpc-2.0"
    assert await system.items("/migration/events") == []
