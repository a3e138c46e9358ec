"""Agents written with the kit, called by the A2A project's own clients: each understands the one address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.interop.environments import environment
from tests.scenarios.kit import served
from tests.services import needed

from trunkline.agent import Agent, AgentError, Message, Question, Task
from trunkline.jsontypes import JsonObject, decode

pytestmark = pytest.mark.anyio

CLIENTS = Path(__file__).with_name("clients")
CALLERS = {
    "a2a-sdk-0.3": ("python-0.3", "a2a_v03.py", ()),
    "a2a-sdk-1": ("python-1", "a2a_v1.py", ("1.0",)),
    "a2a-sdk-1-speaking-0.3": ("python-1", "a2a_v1.py", ("0.3",)),
}
TOLD: JsonObject = {
    "name": "Kit",
    "kinds": ["task", "status-update", "artifact-update", "artifact-update", "status-update"],
    "streamed": "Hello, world.",
    "waited": "Hello, world.",
    "failed": ["failed", "No boats today."],
    "asking": ["input-required", "Which city?"],
    "replied": "Rome it is.",
    "canceled": "canceled",
    "unknown": -32001,
}


async def play(task: Task) -> AsyncGenerator[object, Message]:
    match task.text:
        case "fail":
            raise AgentError("No boats today.")
        case "ask":
            reply = yield Question("Which city?")
            yield f"{reply.text} it is."
        case "wait":
            await asyncio.Event().wait()
        case _:
            yield "Hello, "
            yield "world."


@pytest.mark.parametrize("caller", CALLERS)
async def test_the_a2a_projects_own_clients_understand_the_kit(caller: str) -> None:
    name, program, arguments = CALLERS[caller]
    with needed():
        python = environment(name) / "bin" / "python"
    agent = Agent("Kit", description="Plays.")
    agent.handler(play)
    async with served(agent) as url:
        client = await asyncio.create_subprocess_exec(
            str(python), "-W", "ignore", str(CLIENTS / program), url, *arguments,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        printed, complaints = await client.communicate()
    assert client.returncode == 0, complaints.decode()
    assert decode(printed) == TOLD
