"""Published workflows, called by the A2A project's own clients: each understands the one address."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.interop.environments import environment
from tests.interop.test_agent_kit import Player, command_of
from tests.scenarios.kit_server import served
from tests.scenarios.publishing.receiver import receiving
from tests.services import backend_variables, fresh_database, fresh_topics, needed

from trunkline.agentkit import Agent
from trunkline.jsontypes import JsonObject, decode
from trunkline.testing import running_system

pytestmark = pytest.mark.anyio

CALLERS = {
    "a2a-sdk-1": ("python-1", "a2a_v1.py", ("1.0",)),
    "a2a-sdk-1-speaking-0.3": ("python-1", "a2a_v1.py", ("0.3",)),
    "a2a-sdk-0.3": ("python-0.3", "a2a_v03.py", ("/.well-known/agent.json",)),
    "a2a-js-0.3": ("node", "a2a_js_v03.mjs", (".well-known/agent.json",)),
    "a2a-js-1": ("node", "a2a_js_v1.mjs", ()),
}
TOLD: JsonObject = {
    "name": "Front",
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
FRONT: JsonObject = {
    "name": "front",
    "publish": {"name": "Front"},
    "steps": {"only": {"agent": "Kit", "message": "caller", "context": "caller"}},
}


@pytest.fixture(params=["embedded", "distributed"])
def backends(request: pytest.FixtureRequest) -> Generator[None]:
    """Of the system: SQLite, or Kafka and PostgreSQL."""
    if request.param == "embedded":
        yield
        return
    servers: str = request.getfixturevalue("kafka_servers")
    with (
        fresh_database(request.getfixturevalue("postgres")) as url,
        fresh_topics(request.getfixturevalue("kafka_admin")) as topics,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in backend_variables(url, servers, topics).items():
            patch.setenv(name, value)
        yield


@pytest.mark.parametrize("caller", CALLERS)
async def test_the_a2a_projects_own_clients_understand_a_published_workflow(
    caller: str, backends: None, tmp_path: Path
) -> None:
    del backends
    name, program, arguments = CALLERS[caller]
    with needed():
        command = command_of(environment(name), program)
    agent = Agent("Kit", description="Plays.")
    agent.handler(Player().play)
    async with served(agent) as url, receiving() as receiver, running_system(tmp_path / "data") as system:
        await system.register("Kit", url)
        await system.save(FRONT)
        client = await asyncio.create_subprocess_exec(
            *command,
            f"{system.url}/a2a/workflows/front",
            *arguments,
            env={**os.environ, "PUSH_URL": f"{receiver.url}/"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        printed, complaints = await client.communicate()
        assert client.returncode == 0, complaints.decode()
        assert await receiver.states() == ["submitted", "working", "completed"]
    assert {each.headers["x-a2a-notification-token"] for each in receiver.at("/")} == {"a-token"}
    told = decode(printed)
    assert isinstance(told, dict)
    kinds = told.pop("kinds")
    assert told == TOLD
    # How many pieces an agent's artifact comes in depends on how fast it says them.
    assert isinstance(kinds, list)
    assert (kinds[0], kinds[-1]) == ("task", "status-update")
    assert "artifact-update" in kinds
