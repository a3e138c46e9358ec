"""Agents that ring when a long task has moved on: told where by the task itself, and asked as soon as they do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import FakeClock, RunningSystem, ScriptedAgent, jsonrpc_task, running_system
from trunkline.testing.agents import Call
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

PUBLIC = "http://trunkline.example"
CARD: JsonObject = {
    "name": "Ringer",
    "protocolVersion": "0.3.0",
    "preferredTransport": "JSONRPC",
    "capabilities": {"pushNotifications": True},
    "skills": [],
}
WORKING = jsonrpc_task("", state="working")


def push_in(call: Call) -> JsonObject:
    params = call.body["params"]
    assert isinstance(params, dict)
    configuration = params["configuration"]
    assert isinstance(configuration, dict)
    push = configuration["pushNotificationConfig"]
    assert isinstance(push, dict)
    return push


async def ring(system: RunningSystem, push: JsonObject) -> int:
    """As an agent does it, with a task that says what is not so."""
    url = str(push["url"]).replace(PUBLIC, system.url)
    forged: Json = {"kind": "task", "id": "remote-1", "status": {"state": "failed"}}
    headers = {"X-A2A-Notification-Token": str(push["token"])}
    async with aiohttp.ClientSession() as session, session.post(url, json=forged, headers=headers) as answer:
        return answer.status


async def start(system: RunningSystem, agent: ScriptedAgent) -> str:
    agent.publish({**CARD, "url": agent.url})
    await system.register("Agent", agent.url)
    await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
    return await system.start("one")


async def test_an_agent_gets_a_push_address_and_is_polled_when_it_uses_it(tmp_path: Path) -> None:
    # Time stands still: nobody asks the agent unless it rings.
    async with (
        running_system(tmp_path / "data", clock=FakeClock(), public_url=PUBLIC) as system,
        ScriptedAgent(WORKING) as agent,
    ):
        run_id = await start(system, agent)
        push = push_in(await agent.called())
        while step_of(await system.get(run_id), "only")["waiting_for"] is None:
            await asyncio.sleep(0.02)
        agent.script(jsonrpc_task("Sunny"))
        assert await ring(system, push) == 204
        run = await system.wait_for(run_id)
        exchanges = await system.items(f"/runs/{run_id}/wire")
    assert run["status"] == "COMPLETED"
    assert [call.method for call in agent.calls] == ["message/send", "tasks/get"]
    assert [exchange["kind"] for exchange in exchanges if exchange["kind"] != "card"] == [
        "send",
        "push",
        "poll",
    ]
    assert str(push["token"]) not in str(exchanges)


async def test_an_agent_that_pushes_before_it_has_answered_is_polled_all_the_same(tmp_path: Path) -> None:
    statuses: list[int] = []
    async with running_system(tmp_path / "data", clock=FakeClock(), public_url=PUBLIC) as system:

        async def push_and_answer(call: Call) -> Json:
            statuses.append(await ring(system, push_in(call)))
            return WORKING(call)

        async with ScriptedAgent(push_and_answer, jsonrpc_task("Sunny")) as agent:
            run = await system.wait_for(await start(system, agent))
    assert statuses == [204]
    assert run["status"] == "COMPLETED"


async def test_without_a_public_url_no_agent_is_asked_to_push(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_task("Sunny")) as agent:
        run = await system.wait_for(await start(system, agent))
    assert run["status"] == "COMPLETED"
    assert "pushNotificationConfig" not in str(agent.calls[0].body)
