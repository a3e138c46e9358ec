"""Agents and bridges that are killed in the middle of a task: it comes to its end, and no call is without a reason."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest
from tests.crash.client import FINAL_EVENTS, TrunklineClient
from tests.crash.server import KillableServer, server_on
from tests.interop.agents import Agent, AgentProcess
from tests.interop.workflows import WORKFLOWS, begin, name_of, one, output_of, stubborn

from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio


async def test_an_agent_that_is_killed_and_comes_back_gets_its_message_again(
    shared_system: RunningSystem, killable_agent: AgentProcess
) -> None:
    system = shared_system
    await system.call("DELETE", f"/agents/{killable_agent.name}")
    await system.register(killable_agent.name, killable_agent.url)
    await system.save(stubborn(killable_agent.name))
    run_id = await begin(system, killable_agent, "work long", stubborn)
    killable_agent.kill()
    killable_agent.release("long")
    await asyncio.to_thread(killable_agent.start)
    assert output_of(await system.wait_for(run_id))["text"] == "Done: long"
    # It has forgotten the task, and said so when it was asked: only then was the message sent again.
    sent = killable_agent.sent("work long")
    assert len(sent) == 2
    assert len({call.message_id for call in sent}) == 1
    assert {call.operation for call in killable_agent.calls()[1:-1]} & {"get", "resubscribe"}


@pytest.fixture
async def bridge(tmp_path: Path) -> AsyncGenerator[KillableServer]:
    async with server_on(tmp_path / "data") as server:
        await server.start()
        yield server


async def test_a_bridge_that_is_killed_goes_on_with_the_task_that_it_has_left(
    bridge: KillableServer, agent: Agent
) -> None:
    name = secrets.token_hex(4)
    async with aiohttp.ClientSession() as session:
        client = TrunklineClient(session, bridge.url)
        run_id = await _start(client, agent, f"work {name}")
        while not await _is_followed(client, run_id):
            await asyncio.sleep(0.02)
        await bridge.kill()
        agent.release(name)
        await bridge.start()
        run = await _end(client, run_id)
    assert output_of(run)["text"] == f"Done: {name}"
    assert len(agent.sent(f"work {name}")) == 1
    assert len(agent.executions(f"work {name}")) == 1


async def test_a_bridge_that_is_killed_before_it_knows_the_task_sends_the_same_message_again(
    bridge: KillableServer, agent: Agent
) -> None:
    name = secrets.token_hex(4)
    async with aiohttp.ClientSession() as session:
        client = TrunklineClient(session, bridge.url)
        run_id = await _start(client, agent, f"work {name}")
        while not agent.sent(f"work {name}"):
            await asyncio.sleep(0.001)
        await bridge.kill()
        agent.release(name)
        await bridge.start()
        run = await _end(client, run_id)
    assert output_of(run)["text"] == f"Done: {name}"
    sent = agent.sent(f"work {name}")
    # Two, unless the answer was faster than the kill.
    assert len(sent) <= 2
    assert len({call.message_id for call in sent}) == 1


async def _start(client: TrunklineClient, agent: Agent, text: str) -> str:
    await client.call("POST", "/agents", {"name": agent.name, "url": agent.url})
    for definition in WORKFLOWS:
        await client.call("POST", "/workflows", definition(agent.name))
    run = await client.call("POST", f"/workflows/{name_of(one, agent)}/execute", {"text": text})
    return str(run["id"])


async def _is_followed(client: TrunklineClient, run_id: str) -> bool:
    run = await client.run(run_id)
    assert run["status"] in ("PENDING", "RUNNING"), run["error"]
    waiting_for = step_of(run, "only")["waiting_for"]
    return isinstance(waiting_for, dict) and waiting_for["kind"] == "remote"


async def _end(client: TrunklineClient, run_id: str) -> JsonObject:
    async for event in client.follow(run_id):
        if event.type in FINAL_EVENTS:
            break
    return await client.run(run_id)
