"""SIGTERM to one process after the other while runs go on: nobody is called twice, and no run notices."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count, cycle
from pathlib import Path
from time import monotonic

import aiohttp
import pytest
from confluent_kafka.admin import AdminClient
from deploy.local.postgres import PostgresServer
from tests.crash.agents import CrashTestAgents
from tests.crash.client import FailoverClient, ServerGone
from tests.crash.conftest import register_everything
from tests.crash.fleet import Fleet, FleetMember, running_fleet
from tests.crash.history_checker import RequestedRun, violations
from tests.crash.history_reader import quiet, read_history
from tests.crash.workflows import GATED, KINDS, MORE_KINDS, WatchedRun, WorkflowKind
from tests.services import fresh_database, fresh_topic_prefix

pytestmark = pytest.mark.anyio

# Only a run that is stuck takes so long.
TIMEOUT_SECONDS = 120
USERS = 12
# Two seconds, on a machine that has them; a stop that waits for something in vain takes thirty.
GONE_SECONDS = 10.0


class RunLoad:
    """Users who start one run after the other, and see each to its end."""

    def __init__(self, fleet: Fleet, agents: CrashTestAgents, session: aiohttp.ClientSession) -> None:
        self.client = FailoverClient(session, fleet.api_urls)
        self.agents = agents
        self.wanted: list[RequestedRun] = []
        self._fleet = fleet
        self._kinds = cycle((*KINDS, *MORE_KINDS))
        self._numbers = count()
        self._enough = asyncio.Event()

    async def start(self, kind: WorkflowKind) -> RequestedRun:
        want = kind.wanted(f"{kind.name}-{next(self._numbers)}")
        self.wanted.append(want)
        want.run_id = await self.client.start(kind.name, want.key)
        return want

    @asynccontextmanager
    async def going_on(self) -> AsyncGenerator[None]:
        async with asyncio.timeout(TIMEOUT_SECONDS), asyncio.TaskGroup() as group:
            for _ in range(USERS):
                group.create_task(self._use())
            yield
            self._enough.set()

    async def _use(self) -> None:
        while not self._enough.is_set():
            kind = next(self._kinds)
            want = await self.start(kind)
            await self._see(kind, want)

    async def _see(self, kind: WorkflowKind, want: RequestedRun) -> None:
        while True:
            try:
                async for event in self.client.follow(str(want.run_id)):
                    await kind.react(WatchedRun(self.client, self.agents, want), event)
            except ServerGone:
                continue
            return

    async def more(self) -> None:
        """Returns when more runs have been started than are under way now: the load goes on."""
        enough = len(self.wanted) + 2 * USERS
        while len(self.wanted) < enough:
            await asyncio.sleep(0.05)

    async def finish(self) -> list[str]:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            for want in self.wanted:
                await self._see(GATED, want)
        await quiet(self.client)
        lives = self._fleet.lives
        history = await read_history(self.client, self.wanted, self.agents.calls, lives.endings)
        history.lost_at = lives.lost_at
        history.lapsed = lives.lapsed()
        return violations(history)


@pytest.fixture
async def fleet(
    tmp_path: Path, postgres: PostgresServer, kafka_servers: str, kafka_admin: AdminClient
) -> AsyncGenerator[Fleet]:
    with fresh_database(postgres) as url, fresh_topic_prefix(kafka_admin) as prefix:
        settings = {
            "TRUNKLINE_STORE": url,
            "TRUNKLINE_BROKER": f"kafka://{kafka_servers}",
            "TRUNKLINE_TASKS_TOPIC": f"{prefix}tasks",
            "TRUNKLINE_RESULTS_TOPIC": f"{prefix}results",
            "TRUNKLINE_EVENTS_TOPIC": f"{prefix}events",
            "TRUNKLINE_KAFKA_GROUP": prefix,
        }
        async with running_fleet(tmp_path, settings) as running:
            yield running


async def _replace(member: FleetMember) -> None:
    member.ask_to_stop()
    assert await member.stopped() == 0, member.log[-4000:]
    await member.start()


async def test_every_process_is_replaced_under_load_and_no_agent_is_called_twice(
    fleet: Fleet, agents: CrashTestAgents, patient_session: aiohttp.ClientSession
) -> None:
    agents.forget()
    agents.life_of = fleet.lives.of
    load = RunLoad(fleet, agents, patient_session)
    await register_everything(load.client, agents, {"plain": "ms=30", "rpc": "ms=100"})
    async with load.going_on():
        for member in list(fleet.members):
            await load.more()
            await _replace(member)
        await load.more()
    assert await load.finish() == []
    assert set(fleet.lives.endings.values()) == {"stopped"}, "no process has an excuse for a second call"


async def test_a_bridge_that_is_to_stop_lets_its_calls_end_and_is_gone_soon_after(
    fleet: Fleet, agents: CrashTestAgents, patient_session: aiohttp.ClientSession
) -> None:
    agents.forget()
    agents.life_of = fleet.lives.of
    load = RunLoad(fleet, agents, patient_session)
    await register_everything(load.client, agents)
    gated = [await load.start(GATED) for _ in range(10)]
    for want in gated:
        await agents.called_for(str(want.run_id))
    stopping = fleet.of("bridge")
    for bridge in stopping:
        bridge.ask_to_stop()
    # Somebody has to do what comes after.
    await fleet.add("bridge").start()
    agents.gate.set()
    opened = monotonic()
    for bridge in stopping:
        assert await bridge.stopped() == 0, bridge.log[-4000:]
    seconds = monotonic() - opened
    sys.stderr.write(f"gone {seconds:.1f} s after the last call\n")
    assert seconds < GONE_SECONDS
    assert await load.finish() == []
    assert len([call for call in agents.calls if call.agent == "gated"]) == len(gated)
