"""
What the crash tests share: agents, a process that can be started again, and a data folder with everything saved.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Generator, Mapping
from pathlib import Path
from types import MappingProxyType

import aiohttp
import pytest
from tests.crash.agents import CrashTestAgents
from tests.crash.client import TrunklineClient
from tests.crash.process_instances import ProcessStarter, process_starter
from tests.crash.workflows import (
    AGENT_QUERIES,
    AGENTS,
    BELOW,
    CHOSEN,
    GATED,
    KINDS,
    LIMITED_AGENTS,
    MORE_KINDS,
)
from tests.services import backend_variables, fresh_database, fresh_topics

from trunkline.jsontypes import JsonObject


@pytest.fixture(scope="session")
async def session(anyio_backend: object) -> AsyncGenerator[aiohttp.ClientSession]:
    # An event stream lasts as long as its run.
    unlimited = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=unlimited) as opened:
        yield opened


@pytest.fixture(scope="session")
async def patient_session(anyio_backend: object) -> AsyncGenerator[aiohttp.ClientSession]:
    """For processes that may hang: whoever is silent for long is as good as gone."""
    limits = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=25)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=limits) as opened:
        yield opened


@pytest.fixture(scope="session")
async def agents(anyio_backend: object) -> AsyncGenerator[CrashTestAgents]:
    async with CrashTestAgents() as served:
        yield served


@pytest.fixture(scope="session")
async def starter(
    anyio_backend: object, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[ProcessStarter]:
    async with process_starter(tmp_path_factory.mktemp("lives") / "stderr") as started:
        yield started


@pytest.fixture(scope="session")
async def template(
    starter: ProcessStarter,
    agents: CrashTestAgents,
    session: aiohttp.ClientSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A data folder with all agents and workflows in it, and no run."""
    data = tmp_path_factory.mktemp("template") / "data"
    life = await starter.start(data)
    url = await life.ready
    assert url is not None
    await register_everything(TrunklineClient(session, url), agents, fields=LIMITED_AGENTS)
    os.kill(life.pid, signal.SIGTERM)
    assert await life.ended == 0
    return data


@pytest.fixture(params=["embedded", "distributed"])
def mode_settings(request: pytest.FixtureRequest) -> Generator[Mapping[str, str]]:
    """The settings of a process in each mode: with a store, and topics, of this test alone."""
    if request.param == "embedded":
        yield {}
        return
    servers: str = request.getfixturevalue("kafka_servers")
    with (
        fresh_database(request.getfixturevalue("postgres")) as url,
        fresh_topics(request.getfixturevalue("kafka_admin")) as topics,
    ):
        yield backend_variables(url, servers, topics)


async def register_everything(
    client: TrunklineClient,
    agents: CrashTestAgents,
    queries: Mapping[str, str] = AGENT_QUERIES,
    fields: Mapping[str, JsonObject] = MappingProxyType({}),
) -> None:
    """Registers every agent and saves every workflow; a query tells an agent how to behave."""
    for name, protocol in AGENTS.items():
        url = agents.url(name, queries.get(name, ""))
        agent: JsonObject = {"name": name, "url": url, "protocol": protocol}
        agent |= {**CHOSEN.get(name, {}), **fields.get(name, {})}
        await client.call("POST", "/agents", agent)
    for definition in BELOW:
        await client.call("POST", "/workflows", definition)
    for kind in (*KINDS, *MORE_KINDS, GATED):
        await client.call("POST", "/workflows", kind.definition)
