"""
`trunkline up`, killed with -9 again and again while clients start runs and wait for them.

`make chaos` makes it large; a failure names the seed of its moments, which TRUNKLINE_CHAOS_SEED sets.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from pathlib import Path

import aiohttp
import pytest
from tests.crash.agents import CrashTestAgents
from tests.crash.client import ServerGone, TrunklineClient
from tests.crash.conftest import register_everything
from tests.crash.history_checker import Ending, RequestedRun, violations
from tests.crash.history_reader import read_history
from tests.crash.report import figures_of, write_figures
from tests.crash.server import KillableServer, server_on
from tests.crash.workflows import KINDS, WatchedRun, WorkflowKind

pytestmark = pytest.mark.anyio

RUNS = int(os.environ.get("TRUNKLINE_CHAOS_RUNS", "250"))
KILLS = int(os.environ.get("TRUNKLINE_CHAOS_KILLS", "50"))
SEED = int(os.environ.get("TRUNKLINE_CHAOS_SEED", "3"))

# Only a run that is stuck takes so long.
TIMEOUT_SECONDS = 90
# One kill in so many comes while the process is still starting.
EARLY_KILLS = 5
# Slow enough that calls are under way whenever the process is killed.
SLOW_AGENTS = {
    "plain": "ms=30",
    "rpc": "ms=120",
    "flaky": "ms=20",
    "polled": "ms=10&polls=3",
    "asking": "ms=40",
}


class Chaos:
    def __init__(
        self, server: KillableServer, agents: CrashTestAgents, session: aiohttp.ClientSession
    ) -> None:
        self._server = server
        self._agents = agents
        self.client = TrunklineClient(session, server.url)
        self.wanted: list[RequestedRun] = []
        self.endings: dict[int, Ending] = {}
        # How many runs may have begun by now, and how many lives were ready to take them.
        self._allowed = 0
        self._ready_lives = 0
        self._life_is_ready = asyncio.Condition()

    async def live(self, seconds: float, *, from_start: bool) -> None:
        """One life; killed that long after it was started, or after it was ready."""
        self._agents.life += 1
        await self._server.begin()
        if not from_start:
            await self._server.ready()
            await self._invite(RUNS // KILLS + 1)
        await asyncio.sleep(seconds)
        await self._server.kill()
        self.endings[self._agents.life] = "killed"
        await self._agents.left_alone()

    async def last_life(self) -> None:
        self._agents.life += 1
        await self._server.start()
        await self._invite(RUNS)

    async def _invite(self, more: int) -> None:
        async with self._life_is_ready:
            self._allowed += more
            self._ready_lives += 1
            self._life_is_ready.notify_all()

    async def see_to_its_end(self, number: int, kind: WorkflowKind) -> None:
        """A client that does not give up: what got no answer is asked again, in this life or a later one."""
        want = kind.wanted(f"{kind.name}-{number}")
        self.wanted.append(want)
        async with self._life_is_ready:
            await self._life_is_ready.wait_for(lambda: self._allowed > number)
        while True:
            seen = self._ready_lives
            try:
                want.run_id = await self.client.start(kind.name, want.key)
                watched = WatchedRun(self.client, self._agents, want)
                async for event in self.client.follow(want.run_id):
                    await kind.react(watched, event)
            except ServerGone:
                async with self._life_is_ready:
                    await self._life_is_ready.wait_for(lambda before=seen: self._ready_lives > before)
            else:
                return


@pytest.mark.timeout(600 + 4 * KILLS + RUNS)
async def test_nothing_is_lost_when_the_process_is_killed_again_and_again(
    tmp_path: Path, agents: CrashTestAgents, session: aiohttp.ClientSession
) -> None:
    moments = random.Random(SEED)
    agents.forget()
    async with server_on(tmp_path / "data") as server:
        await server.start()
        chaos = Chaos(server, agents, session)
        await register_everything(chaos.client, agents, SLOW_AGENTS)
        await server.kill()
        chaos.endings[0] = "killed"
        async with asyncio.TaskGroup() as group:
            clients = [
                group.create_task(chaos.see_to_its_end(number, KINDS[number % len(KINDS)]))
                for number in range(RUNS)
            ]
            for number in range(KILLS):
                if number % EARLY_KILLS == 0:
                    await chaos.live(moments.uniform(0.05, 1.0), from_start=True)
                await chaos.live(moments.uniform(0.2, 1.5), from_start=False)
            await chaos.last_life()
            _, stuck = await asyncio.wait(clients, timeout=TIMEOUT_SECONDS)
            # The history says which runs they wait for.
            for client in stuck:
                client.cancel()
        history = await read_history(chaos.client, chaos.wanted, agents.calls, chaos.endings)

    write_figures(figures_of(history, {"kills of the only process": len(chaos.endings)}))
    assert violations(history) == [], f"seed {SEED}"
    assert history.accepted == RUNS
    again = Counter(call.task_id for call in agents.calls if call.kind == "send")
    assert any(times > 1 for times in again.values()), "no call was under way at any kill: nothing was tested"
