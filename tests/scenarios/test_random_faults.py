"""Runs in any weather: nothing is stuck, lost or left over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.scenarios.random_faults import FINAL, WORKFLOW, RandomFaults, RandomOperator, assert_nothing_left

from trunkline.testing import RunningSystem, ScriptedAgent, running_system

pytestmark = pytest.mark.anyio

CRASHES = {"call_crashed", "turn_failed", "run_poisoned", "request_failed"}


async def prepare(system: RunningSystem, simple: ScriptedAgent, rpc: ScriptedAgent) -> None:
    await system.register("Simple", simple.url, protocol="simple-a2a", max_concurrency=5)
    await system.register("Rpc", rpc.url, protocol="jsonrpc-2.0", max_concurrency=7)
    await system.save(WORKFLOW)


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_run_ends_and_nothing_is_left_behind(system: RunningSystem, seed: int) -> None:
    weather = RandomFaults(seed)
    async with ScriptedAgent(weather.simple) as simple, ScriptedAgent(weather.rpc) as rpc:
        await prepare(system, simple, rpc)
        with capture_logs() as logs:
            runs = [await system.start("weather", {"n": number}) for number in range(100)]
            people = [RandomOperator(system, run, seed + number) for number, run in enumerate(runs)]
            ends = await asyncio.gather(*(person.look_after() for person in people))
        await assert_nothing_left(system, runs)
    assert set(ends) <= FINAL
    assert [line for line in logs if line["event"] in CRASHES] == []


@pytest.mark.parametrize("seed", [3, 4])
async def test_every_run_ends_over_many_restarts(tmp_path: Path, seed: int) -> None:
    weather = RandomFaults(seed)
    runs: list[str] = []
    async with ScriptedAgent(weather.simple) as simple, ScriptedAgent(weather.rpc) as rpc:
        with capture_logs() as logs:
            for life in range(6):
                async with running_system(tmp_path, stop_timeout="10ms" if life % 2 else "1s") as system:
                    if not runs:
                        await prepare(system, simple, rpc)
                        runs = [await system.start("weather") for _ in range(60)]
                    helpers = [
                        RandomOperator(system, run, seed + number + life) for number, run in enumerate(runs)
                    ]
                    people = [asyncio.create_task(helper.look_after()) for helper in helpers]
                    # A life is over after so many calls, the last one when all is done.
                    busy = asyncio.create_task(rpc.called(20 * (life + 1) if life < 5 else 1_000_000))
                    everybody = asyncio.gather(*people)
                    await asyncio.wait([everybody, busy], return_when=asyncio.FIRST_COMPLETED)
                    busy.cancel()
                    everybody.cancel()
                    await asyncio.gather(busy, *people, return_exceptions=True)
            async with running_system(tmp_path) as system:
                await assert_nothing_left(system, runs)
    assert [line for line in logs if line["event"] in CRASHES] == []
