"""Agents written with the kit, called by the A2A project's own clients: each understands the one address."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.interop.environments import NODE, environment
from tests.scenarios.kit_server import served
from tests.services import needed

from trunkline.agentkit import Agent, AgentError, Artifact, File, Message, Question, Task
from trunkline.jsontypes import JsonObject, decode

pytestmark = pytest.mark.anyio

CLIENTS = Path(__file__).with_name("clients")
CALLERS = {
    "a2a-sdk-0.3": ("python-0.3", "a2a_v03.py", ()),
    "a2a-sdk-1": ("python-1", "a2a_v1.py", ("1.0",)),
    "a2a-sdk-1-speaking-0.3": ("python-1", "a2a_v1.py", ("0.3",)),
    "a2a-js-0.3": ("node", "a2a_js_v03.mjs", ()),
    "a2a-js-1": ("node", "a2a_js_v1.mjs", ()),
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
    "long": [True, "It took long."],
    "file": ["a.txt", "text/plain", "hello"],
}


class Player:
    """What the agent does, by the text of the message."""

    def __init__(self) -> None:
        self._may_go_on = asyncio.Event()

    async def play(self, task: Task) -> AsyncGenerator[object, Message]:
        match task.text:
            case "fail":
                raise AgentError("No boats today.")
            case "ask":
                reply = yield Question("Which city?")
                yield f"{reply.text} it is."
            case "wait":
                await asyncio.Event().wait()
            case "long":
                await self._may_go_on.wait()
                yield "It took long."
            case "go on":
                self._may_go_on.set()
                yield "It may."
            case "copy":
                for part in task.parts:
                    if isinstance(part, File):
                        yield Artifact("copy", file=part)
            case _:
                yield "Hello, "
                yield "world."


def command_of(home: Path, program: str) -> list[str]:
    if not program.endswith(".mjs"):
        return [str(home / "bin" / "python"), "-W", "ignore", str(CLIENTS / program)]
    # Node looks for packages next to the program; servers of the same name are there, too.
    return [str(NODE), str(shutil.copy(CLIENTS / program, home / f"client_{program}"))]


@pytest.mark.parametrize("caller", CALLERS)
async def test_the_a2a_projects_own_clients_understand_the_kit(caller: str) -> None:
    name, program, arguments = CALLERS[caller]
    with needed():
        command = command_of(environment(name), program)
    agent = Agent("Kit", description="Plays.")
    agent.handler(Player().play)
    async with served(agent) as url:
        client = await asyncio.create_subprocess_exec(
            *command, url, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        printed, complaints = await client.communicate()
    assert client.returncode == 0, complaints.decode()
    assert decode(printed) == TOLD
