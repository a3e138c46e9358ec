"""The process ends at every point of a published agent's task, is started again, and its caller misses nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import aiohttp
import pytest
from tests.crash.crash_points import KILLED, PUSH_POINTS, point_in
from tests.crash.process_instances import ProcessStarter
from tests.crash.test_trigger_points import client_of
from tests.scenarios.kit_server import served
from tests.scenarios.publishing.a2a_caller import A2ACaller, parts_of, state_of, text
from tests.scenarios.publishing.receiver import Receiver, receiving

from trunkline.agentkit import Agent, Message, Question, Task
from trunkline.jsontypes import JsonObject
from trunkline.publishing.cards.agent_cards import IDEMPOTENCY

pytestmark = pytest.mark.anyio

TASKS = 4
STATES = ["submitted", "working", "input-required", "working", "completed"]


async def play(task: Task) -> AsyncGenerator[object, Message]:
    reply = yield Question("Which city?")
    yield f"{task.text}: {reply.text} it is."


class Caller:
    """Sends each message until it has a response, with idempotency."""

    def __init__(self, url: str, receiver: Receiver) -> None:
        self._a2a = A2ACaller(url, "agents/Kit")
        self._receiver = receiver

    async def play(self, number: int) -> JsonObject:
        """A task up to its end."""
        message = text(f"task {number}", f"m-{number}")
        config: JsonObject = {"url": f"{self._receiver.url}/{number}", "token": "t"}
        params: JsonObject = {
            "message": message,
            "configuration": {"taskPushNotificationConfig": config, "returnImmediately": True},
        }
        body: JsonObject = {"jsonrpc": "2.0", "id": number, "method": "SendMessage", "params": params}
        result = (await self._a2a.post(body, {"A2A-Extensions": IDEMPOTENCY}))["result"]
        assert isinstance(result, dict)
        task = result["task"]
        assert isinstance(task, dict)
        task = await self._a2a.task_in(task["id"], "input-required", "completed")
        if state_of(task) == "input-required":
            await self._a2a.send(text("Rome", f"a-{number}", taskId=task["id"]), returnImmediately=True)
        return await self._a2a.task_in(task["id"], "completed")

    async def number_of_tasks(self) -> object:
        return (await self._a2a.call("ListTasks", {}))["totalSize"]


@pytest.mark.parametrize(
    "point", [*PUSH_POINTS, "post.before", "post.after", "commit.before", "commit.after"]
)
async def test_every_state_reaches_the_receiver_wherever_the_process_ends(
    point: str,
    tmp_path: Path,
    starter: ProcessStarter,
    session: aiohttp.ClientSession,
    mode_settings: Mapping[str, str],
) -> None:
    agent = Agent("Kit", description="Plays.")
    agent.handler(play)
    data = tmp_path / "data"
    async with served(agent) as url, receiving() as receiver:
        client = await client_of(await starter.start(data, settings=mode_settings), session)
        await client.call("POST", "/agents", {"name": "Kit", "url": url, "publish": True})
        await starter.end()
        life = await starter.start(data, point_in(mode_settings, point), 2, mode_settings)
        address = await life.ready
        assert address is not None
        with suppress(aiohttp.ClientError):
            for number in range(TASKS):
                await Caller(address, receiver).play(number)
        assert await life.ended == KILLED
        address = await (await starter.start(data, settings=mode_settings)).ready
        assert address is not None
        caller = Caller(address, receiver)
        for number in range(TASKS):
            task = await caller.play(number)
            assert parts_of(task) == [{"text": f"task {number}: Rome it is."}]
            # After a crash, the last notification may come again.
            states = await receiver.states(f"/{number}")
            assert [state for state, _ in groupby(states)] == STATES
        assert await caller.number_of_tasks() == TASKS
        await starter.end()
