"""
One workflow over eight frameworks, and a bridge that is killed again and again.

TRUNKLINE_INTEROP_RUNS and TRUNKLINE_INTEROP_KILLS make it longer: 500 and 50 is what `make interop-long` runs.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections.abc import Collection
from pathlib import Path
from typing import cast

import aiohttp
import pytest
from tests.crash.client import FINAL_EVENTS, TrunklineClient
from tests.crash.server import server_on
from tests.interop.agents import KINDS, Agent
from tests.services import shared

from trunkline.jsontypes import Json, JsonObject

pytestmark = pytest.mark.anyio

RUNS = int(os.environ.get("TRUNKLINE_INTEROP_RUNS", "8"))
KILLS = int(os.environ.get("TRUNKLINE_INTEROP_KILLS", "2"))
WORKFLOW = "eight-ways"


@pytest.fixture
def agents(request: pytest.FixtureRequest) -> list[Agent]:
    told = {name: shared(name, request.config) for name in KINDS}
    return [Agent(name, str(told[name]["url"]), Path(str(told[name]["folder"]))) for name in KINDS]


async def test_every_run_ends_well_and_no_agent_is_called_twice_without_a_reason(
    tmp_path: Path, agents: list[Agent]
) -> None:
    mark, chance = secrets.token_hex(4), random.Random(KILLS)
    async with server_on(tmp_path / "data") as server, aiohttp.ClientSession() as session:
        await server.start()
        client = TrunklineClient(session, server.url)
        await _prepare(client, agents)
        runs: dict[str, str] = {}
        for kill in range(KILLS):
            keys = [f"{mark}-{number}" for number in range(kill, RUNS, KILLS)]
            runs |= {key: await client.start(WORKFLOW, key) for key in keys}
            # Fewer than they are going to get.
            messages = chance.randrange(1, len(agents) * len(keys))
            while _messages(agents, keys) < messages:
                await asyncio.sleep(0.005)
            await server.kill()
            await server.start()
        for key, run_id in runs.items():
            await _check(client, agents, key, run_id)


async def _prepare(client: TrunklineClient, agents: list[Agent]) -> None:
    steps: JsonObject = {}
    for number, agent in enumerate(agents):
        await client.call("POST", "/agents", {"name": agent.name, "url": agent.url})
        needs: list[Json] = [f"s{number - 1}"] if number else []
        steps[f"s{number}"] = {"agent": agent.name, "input": {"text": "${ input.key }"}, "needs": needs}
    await client.call("POST", "/workflows", {"name": WORKFLOW, "steps": steps})


def _messages(agents: list[Agent], keys: Collection[str]) -> int:
    """How many different ones of these runs the agents have got."""
    return len({(agent.name, call.text) for agent in agents for call in agent.calls() if call.text in keys})


async def _check(client: TrunklineClient, agents: list[Agent], key: str, run_id: str) -> None:
    async for event in client.follow(run_id):
        if event.type in FINAL_EVENTS:
            break
    run = await client.run(run_id)
    assert run["status"] == "COMPLETED", run["error"]
    events = await client.pages(f"/runs/{run_id}/events")
    for number, agent in enumerate(agents):
        sent = agent.sent(key)
        assert len({call.message_id for call in sent}) == 1
        reasons = [event for event in events if _is_a_reason(event, f"s{number}")]
        assert len(sent) <= 1 + len(reasons), f"{agent.name} got {sent}, the history says {reasons}"


def _is_a_reason(event: JsonObject, step: str) -> bool:
    """Why a message was sent again: told as news by the bridge, or the failure of the attempt before."""
    data = cast("JsonObject", event["data"])
    if data.get("step") != step:
        return False
    return event["type"] == "StepFailed" or "called_again" in str(data)
