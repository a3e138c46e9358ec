"""Agents of every framework, shared by all workers, and one system that knows them by their URLs alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from deploy.local.folders import service_folder
from deploy.local.ports import free_port
from tests.interop.agents import KINDS, Agent, AgentProcess
from tests.interop.workflows import WORKFLOWS
from tests.services import needed, shared

from trunkline.testing import RunningSystem, running_system


@pytest.fixture(params=KINDS)
def agent(request: pytest.FixtureRequest) -> Agent:
    told = shared(request.param, request.config)
    return Agent(request.param, str(told["url"]), Path(str(told["folder"])))


@pytest.fixture(params=KINDS)
def killable_agent(request: pytest.FixtureRequest) -> Generator[AgentProcess]:
    """An agent that the test may kill."""
    with (
        service_folder("agent") as folder,
        needed(),
        AgentProcess(request.param, folder, free_port()) as agent,
    ):
        agent.start()
        yield agent


@pytest.fixture(scope="session")
async def shared_system(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningSystem]:
    async with running_system(tmp_path_factory.mktemp("interop") / "data") as running:
        yield running


@pytest.fixture
async def system(shared_system: RunningSystem, agent: Agent) -> RunningSystem:
    """The shared one, which knows the agent by its URL and has the workflows that speak to it."""
    answer = await shared_system.call("GET", f"/agents/{agent.name}")
    # A test that kills agents has another one of that name.
    if answer.status == 404 or answer.json["url"] != agent.url:
        await shared_system.call("DELETE", f"/agents/{agent.name}")
        await shared_system.register(agent.name, agent.url)
        for definition in WORKFLOWS:
            await shared_system.save(definition(agent.name))
    return shared_system
