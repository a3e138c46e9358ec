"""
Runs on a fleet whose processes, broker and database are killed and paused all the time, seen to their end by users
who do not give up.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Sequence
from math import floor
from time import monotonic

import aiohttp
import msgspec
from tests.crash.agents import CrashTestAgents
from tests.crash.client import FailoverClient, ServerGone
from tests.crash.fleet import FleetMember, KillableFleet
from tests.crash.history_checker import RequestedRun, SystemHistory
from tests.crash.history_reader import quiet, read_history
from tests.crash.workflows import KINDS, MORE_KINDS, WatchedRun, WorkflowKind

# Longer than the lease (15 s) and than what an executor may take in a transaction (10 s).
PAUSE_SECONDS = 20.0
# A role dies every two seconds.
_BETWEEN_KILLS = (0.5, 3.5)
# Resent after 30 s, a lease of 15 s, and both again: only a run that is stuck takes so long.
_TIMEOUT_SECONDS = 300
_PROGRESS_SECONDS = 15.0
# More would only wait for one another, on a machine of two cores.
_AT_ONCE = 80
_ASK_AGAIN_SECONDS = 0.5
# Slow enough that calls are under way whenever a process is killed.
SLOW_AGENTS = {
    "plain": "ms=30",
    "rpc": "ms=150",
    "flaky": "ms=20",
    "polled": "ms=10&polls=3",
    "asking": "ms=40",
}


class ChaosPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what; the moments come from the seed."""

    runs: int
    kills: int
    broker_kills: int
    database_crashes: int
    pauses: int
    seed: int


class ChaosRun:
    def __init__(
        self, plan: ChaosPlan, fleet: KillableFleet, agents: CrashTestAgents, session: aiohttp.ClientSession
    ) -> None:
        self._plan = plan
        self._fleet = fleet
        self._agents = agents
        self._chance = random.Random(plan.seed)
        self.client = FailoverClient(session, fleet.api_urls)
        self.wanted: list[RequestedRun] = []
        self.kills: Counter[str] = Counter()
        self.pauses: Counter[str] = Counter()
        self._users: list[asyncio.Task[None]] = []
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._over = 0
        self._began = monotonic()

    async def run(self) -> SystemHistory:
        """Until everything that can be over is; then what the checker wants to see."""
        async with asyncio.TaskGroup() as group:
            progress = group.create_task(self._report_progress())
            await self._inject_fault(group)
            for member in self._fleet.members:
                member.check()
            _, stuck = await asyncio.wait(self._users, timeout=_TIMEOUT_SECONDS)
            # The history says which runs they wait for.
            for user in stuck:
                user.cancel()
            progress.cancel()
        self.say("the last run is over" if not stuck else f"{len(stuck)} runs are stuck")
        await quiet(self.client)
        history = await read_history(self.client, self.wanted, self._agents.calls, self._fleet.lives.endings)
        history.lost_at = self._fleet.lives.lost_at
        history.lapsed = self._fleet.lives.lapsed()
        history.commits_in_doubt = self._fleet.database_crashes > 0
        return history

    # --- harm

    async def _inject_fault(self, group: asyncio.TaskGroup) -> None:
        """Kills at their pace, and evenly between them what happens less often and takes longer."""
        async with asyncio.TaskGroup() as longer:
            for number in range(self._plan.kills):
                await asyncio.sleep(self._chance.uniform(*_BETWEEN_KILLS))
                if number + 1 < self._plan.kills:
                    await self._kill()
                    self._invite(group, self._plan.runs // (self._plan.kills + 1))
                else:
                    # It hits, however fast or slow the machine is.
                    self._invite(group, self._plan.runs)
                    await self._kill_in_a_call()
                for _ in range(self._due(self._plan.broker_kills, number, 0.6)):
                    longer.create_task(self._fleet.kill_broker())
                for _ in range(self._due(self._plan.database_crashes, number, 0.3)):
                    longer.create_task(self._fleet.crash_database())
                for _ in range(self._due(self._plan.pauses, number, 0.8)):
                    longer.create_task(self._pause(self.pauses.total()))

    def _due(self, times: int, number: int, phase: float) -> int:
        """Of so many over all kills, how many come after this one; the higher the phase, the earlier."""
        before, now = (floor(each * times / self._plan.kills + phase) for each in (number, number + 1))
        return now - before

    async def _kill(self) -> None:
        await self._end(self._chance.choice(self._awake()))

    async def _end(self, member: FleetMember) -> None:
        member.check()
        await member.kill()
        self.kills[member.role] += 1
        await member.begin()

    async def _kill_in_a_call(self) -> None:
        """The bridge that is just calling the agent that takes longest."""
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while True:
                call = await self._agents.next_send("rpc")
                for member in self._fleet.of("bridge"):
                    if member.life == call.life and not member.is_paused:
                        await self._end(member)
                        return

    async def _pause(self, number: int) -> None:
        """Bridges and executors by turns; an API now and then."""
        role = ("bridge", "executor", "bridge", "api")[number % 4]
        candidates = [member for member in self._awake() if member.role == role]
        # With all of a role paused the others could not take over.
        if len(candidates) < 2:
            candidates = [member for member in self._awake() if member.role != role]
        member = self._chance.choice(candidates)
        member.pause()
        self.pauses[member.role] += 1
        await asyncio.sleep(PAUSE_SECONDS)
        member.wake()

    def _awake(self) -> Sequence[FleetMember]:
        return [member for member in self._fleet.members if not member.is_paused]

    # --- users

    def _invite(self, group: asyncio.TaskGroup, more: int) -> None:
        kinds = (*KINDS, *MORE_KINDS)
        begun = len(self._users)
        for number in range(begun, min(begun + more, self._plan.runs)):
            user = self._see_to_its_end(number, kinds[number % len(kinds)])
            self._users.append(group.create_task(user))

    async def _see_to_its_end(self, number: int, kind: WorkflowKind) -> None:
        want = kind.wanted(f"{kind.name}-{number}")
        self.wanted.append(want)
        async with self._room:
            while not await self._watch(kind, want):
                await asyncio.sleep(_ASK_AGAIN_SECONDS)
        self._over += 1

    async def _watch(self, kind: WorkflowKind, want: RequestedRun) -> bool:
        """False: whoever was asked went away, and somebody else has to be asked."""
        try:
            want.run_id = await self.client.start(kind.name, want.key)
            watched = WatchedRun(self.client, self._agents, want)
            async for event in self.client.follow(want.run_id):
                await kind.react(watched, event)
        except ServerGone:
            return False
        return True

    # --- words

    async def _report_progress(self) -> None:
        while True:
            await asyncio.sleep(_PROGRESS_SECONDS)
            self.say(
                f"{self._over}/{self._plan.runs} runs over, {self.kills.total()}/{self._plan.kills} kills,"
                f" {self._fleet.broker_kills} of the broker, {self._fleet.database_crashes} of the database,"
                f" {self.pauses.total()} pauses, {len(self._agents.calls)} calls"
            )

    def say(self, words: str) -> None:
        sys.stderr.write(f"[{monotonic() - self._began:7.1f} s] {words}\n")
        sys.stderr.flush()
