"""
Published workflows in a process that is killed with -9: streams are resumed, and push notifications arrive.

`make chaos` kills more often.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from itertools import groupby
from pathlib import Path

import aiohttp
import pytest
from tests.crash.client import TrunklineClient
from tests.crash.server import KillableServer, server_on
from tests.scenarios.kit_server import served
from tests.scenarios.publishing.a2a_caller import A2ACaller, StreamEvent, text
from tests.scenarios.publishing.receiver import Receiver, receiving

from trunkline.agentkit import Agent, Task
from trunkline.jsontypes import JsonObject

pytestmark = pytest.mark.anyio

KILLS = int(os.environ.get("TRUNKLINE_CHAOS_PUBLISHED_KILLS", "3"))
FRONT: JsonObject = {
    "name": "front",
    "publish": True,
    "steps": {"only": {"agent": "A", "message": "caller", "context": "caller"}},
}


class PausingAgent:
    """Says half of its answer, and the rest when it may."""

    def __init__(self) -> None:
        self.may_continue = asyncio.Event()
        self.url = ""

    async def play(self, task: Task) -> AsyncGenerator[str]:
        yield f"{task.text}: one, "
        yield "two, "
        await self.may_continue.wait()
        yield "three, "
        yield "four."


@pytest.fixture
async def agent() -> AsyncGenerator[PausingAgent]:
    pausing = PausingAgent()
    kit = Agent("Kit", description="Plays.")
    kit.handler(pausing.play)
    async with served(kit) as url:
        pausing.url = url
        yield pausing


@pytest.fixture
async def server(tmp_path: Path, agent: PausingAgent) -> AsyncGenerator[KillableServer]:
    async with server_on(tmp_path / "data") as killable, aiohttp.ClientSession() as session:
        await killable.start()
        client = TrunklineClient(session, killable.url)
        await client.call("POST", "/agents", {"name": "A", "url": agent.url})
        await client.call("POST", "/workflows", FRONT)
        yield killable


async def restart(server: KillableServer) -> None:
    await server.kill()
    await server.start()


async def read_until_cut(
    caller: A2ACaller, server: KillableServer, name: str, updates: int
) -> list[StreamEvent]:
    """What a stream brings before the process that answers it is killed, after so many updates."""
    seen: list[StreamEvent] = []
    params: JsonObject = {"message": text(name, name)}
    try:
        async with caller.stream("SendStreamingMessage", params) as events:
            async for event in events:
                seen.append(event)
                if len(seen) == updates + 1:
                    await server.kill()
    except aiohttp.ClientError:
        pass
    return seen


async def test_a_stream_that_is_cut_by_a_kill_goes_on_exactly_after_its_last_event(
    server: KillableServer, agent: PausingAgent
) -> None:
    caller = A2ACaller(server.url, "workflows/front")
    for kill in range(KILLS):
        agent.may_continue.clear()
        # Before its first update, after it, and so on, up to the pause of the agent.
        seen = await read_until_cut(caller, server, f"m-{kill}", kill % 3)
        await server.kill()
        await server.start()
        task = seen[0].result["task"]
        assert isinstance(task, dict)
        params: JsonObject = {"id": task["id"]}
        agent.may_continue.set()
        resumed = await caller.streamed("SubscribeToTask", params, seen[-1].id or "0")
        everything = await caller.streamed("SubscribeToTask", params, "0")
        ids = [event.id for event in (*seen[1:], *resumed[1:])]
        assert len(set(ids)) == len(ids)
        assert [*seen[1:], *resumed[1:]] == everything[1:]
        assert "four." in str(everything)


async def test_every_state_reaches_a_receiver_in_order_whenever_the_process_is_killed(
    server: KillableServer, agent: PausingAgent
) -> None:
    agent.may_continue.set()
    caller = A2ACaller(server.url, "workflows/front")
    async with receiving() as receiver:
        for kill in range(KILLS):
            config: JsonObject = {"url": f"{receiver.url}/{kill}"}
            message = text("hi", f"m-{kill}")
            await caller.send(message, returnImmediately=True, taskPushNotificationConfig=config)
            # Right away, and while the first and the second notification are sent.
            await has_accepted(receiver, f"/{kill}", kill % 3)
            await restart(server)
            states = await receiver.states(f"/{kill}")
            # A notification can arrive again after a crash, and only the last one before it.
            assert [state for state, _ in groupby(states)] == ["submitted", "working", "completed"]


async def has_accepted(receiver: Receiver, path: str, number: int) -> None:
    async with asyncio.timeout(60):
        while len(receiver.at(path)) < number:
            await asyncio.sleep(0.005)
