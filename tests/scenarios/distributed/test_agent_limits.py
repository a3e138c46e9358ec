"""Two bridges and one agent: what it allows, it allows to both of them together."""

from __future__ import annotations

import asyncio

import pytest
from tests.scenarios.distributed.in_process_roles import serving_roles

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.agents import Reply

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

# Spread over the partitions, so that both bridges take some in.
RUNS = 12
BUSY = Reply(503, b"busy", {"Content-Type": "text/plain"})
ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent", "retry": {"max_attempts": 1}}}}


async def start_all(system: RunningSystem, agent: ScriptedAgent, **fields: Json) -> list[str]:
    await system.register("Agent", agent.url, protocol="simple-a2a", **fields)
    await system.save(ONE)
    return [await system.start("one") for _ in range(RUNS)]


async def queued(system: RunningSystem, number: int) -> JsonObject:
    """The agent's limits once so many tasks wait and none is under way."""
    while True:
        limits = (await system.call("GET", "/agents/Agent")).json["limits"]
        assert isinstance(limits, dict)
        if (limits["queued"], limits["in_flight"]) == (number, 0):
            return limits
        await asyncio.sleep(0.01)  # nothing rings for it


async def test_two_bridges_take_their_tokens_from_one_bucket() -> None:
    async with (
        ScriptedAgent(simple_success("ok")) as agent,
        serving_roles("api", "executor") as system,
        serving_roles("bridge"),
        serving_roles("bridge"),
    ):
        runs = await start_all(system, agent, rate={"per_second": 0.001, "burst": 3})
        await agent.called(3)
        await queued(system, RUNS - 3)
        assert len(agent.calls) == 3
        await system.call("POST", "/agents/Agent/reset")
        await agent.called(6)
        await queued(system, RUNS - 6)
        assert len(agent.calls) == 6
        await system.call("PATCH", "/agents/Agent", {"rate": {"per_second": 100, "burst": 1}})
        ended = [await system.wait_for(run) for run in runs]
    assert [run["status"] for run in ended] == ["COMPLETED"] * RUNS
    assert len(agent.calls) == RUNS


async def test_failures_at_two_bridges_open_one_breaker() -> None:
    async with (
        ScriptedAgent(BUSY) as agent,
        serving_roles("api", "executor") as system,
        serving_roles("bridge"),
        serving_roles("bridge"),
    ):
        breaker: JsonObject = {"failures": 4, "open_ms": 3_600_000}
        runs = await start_all(system, agent, breaker=breaker, max_concurrency=1)
        await agent.called(4)
        limits = await queued(system, RUNS - 4)
        # One at a time: the fourth has opened it, whoever has called.
        assert len(agent.calls) == 4
        assert isinstance(limits["breaker"], dict)
        assert limits["breaker"]["state"] == "open"
        agent.script(simple_success("ok"))
        await system.call("POST", "/agents/Agent/reset")
        ended = [await system.wait_for(run) for run in runs]
    assert sorted(str(run["status"]) for run in ended) == ["COMPLETED"] * (RUNS - 4) + ["FAILED"] * 4
