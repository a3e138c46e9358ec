"""
Fifty agents are moved by shadow, canary and cutover under a thousand runs while those who call them are killed.

Nothing is lost, no run changes its protocol, and the two agents whose new sides regress go back by themselves. `make
chaos` makes it large, and does the same with processes of each role.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar, cast

import aiohttp
import msgspec
import pytest
from deploy.local.processes import Guard
from tests.crash.client import FailoverClient, ServerGone, TrunklineClient
from tests.crash.fleet import Fleet, killable_fleet
from tests.crash.process_instances import ROOT
from tests.crash.server import KillableServer, server_on

from trunkline.jsontypes import Json, JsonObject, encode

pytestmark = pytest.mark.anyio

RUNS = int(os.environ.get("TRUNKLINE_CHAOS_RUNS", "1000"))
KILLS = int(os.environ.get("TRUNKLINE_CHAOS_KILLS", "6"))
SEED = int(os.environ.get("TRUNKLINE_CHAOS_SEED", "3"))
IS_LARGE = "TRUNKLINE_CHAOS_KILLS" in os.environ

AGENTS = [f"agent-{number}" for number in range(50)]
# Its new side fails from the canary on; the other one's is slow after the cutover.
FAILING, SLOW = "agent-7", "agent-23"
# Only what is stuck takes so long.
TIMEOUT_SECONDS = 120
# Requests that are under way at once, of everybody who starts runs.
_STARTERS = 40
_WIRES_READ = 150
# Runs that were accepted while agents were shadowed; the first ones of the canary by a process that did not know of it.
_SHADOWED = ("shadow", "compared", "canary")

_Answer = TypeVar("_Answer")


class Entry(msgspec.Struct):
    """What an agent has got."""

    agent: str = ""
    side: str = ""
    kind: str = ""
    key: str = ""
    step: str = ""
    message: str = ""
    # Or what the test has done.
    mark: str | None = None


class KillableProcesses(Protocol):
    """Who is killed while the agents move."""

    client: TrunklineClient

    async def kill_and_start(self, moments: random.Random) -> None: ...


class OneProcess:
    def __init__(self, server: KillableServer, session: aiohttp.ClientSession) -> None:
        self._server = server
        self.client = TrunklineClient(session, server.url)

    async def kill_and_start(self, moments: random.Random) -> None:
        del moments
        await self._server.kill()
        await self._server.start()


class Bridges:
    def __init__(self, fleet: Fleet, session: aiohttp.ClientSession) -> None:
        self._fleet = fleet
        self.client: TrunklineClient = FailoverClient(session, fleet.api_urls)

    async def kill_and_start(self, moments: random.Random) -> None:
        bridge = moments.choice(self._fleet.of("bridge"))
        await bridge.kill()
        await bridge.start()


class RetryingOperator:
    """Starts runs and migrates agents over REST, and repeats requests that no process answers."""

    def __init__(self, processes: KillableProcesses, agents: str, session: aiohttp.ClientSession) -> None:
        self._processes = processes
        self._agents = agents
        self._session = session
        self._starters = asyncio.Semaphore(_STARTERS)
        # By key.
        self.run_ids: dict[str, str] = {}
        self.kills = 0

    @property
    def client(self) -> TrunklineClient:
        return self._processes.client

    async def surely(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        while True:
            try:
                return await ask()
            except ServerGone:
                await asyncio.sleep(0.1)

    async def post_to_agents(self, path: str, words: str) -> None:
        async with self._session.post(f"{self._agents}{path}", data=words) as answer:
            assert answer.status == 200

    async def log(self) -> list[Entry]:
        async with self._session.get(f"{self._agents}/_log") as answer:
            return msgspec.json.decode(await answer.read(), type=list[Entry])

    async def register_everything(self) -> None:
        for number, name in enumerate(AGENTS):
            agent: JsonObject = {
                "name": name,
                "url": f"{self._agents}/{name}",
                "protocol": "simple-a2a",
                "repeatable": True,
                # Some answers are held for as long as the test lasts.
                "timeout_ms": 600_000,
            }
            await self.client.call("POST", "/agents", agent)
            await self.client.call("POST", "/workflows", workflow(name, AGENTS[(number + 1) % len(AGENTS)]))

    async def start(self, name: str, key: str) -> None:
        async with self._starters:
            self.run_ids[key] = await self.surely(lambda: self.client.start(name, key))

    async def start_wave(self, wave: str, number: int) -> None:
        async with asyncio.TaskGroup() as group:
            for each in range(number):
                group.create_task(self.start(AGENTS[each % len(AGENTS)], f"{wave}-{each}"))

    async def move(self, name: str, how: str, **body: Json) -> None:
        path = f"/migration/agents/{name}/{how}"
        await self.surely(lambda: self.client.call("POST", path, {"why": "the fleet moves", **body}))

    async def move_all(self, names: Iterable[str], how: str, **body: Json) -> None:
        room = asyncio.Semaphore(8)

        async def one(name: str) -> None:
            async with room:
                await self.move(name, how, **body)

        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(one(name))
        await self.post_to_agents("/_mark", how)

    async def status(self, name: str) -> JsonObject:
        return await self.surely(lambda: self.client.call("GET", f"/migration/agents/{name}"))

    async def run_until(self, name: str, is_enough: Callable[[JsonObject], bool], wave: str) -> None:
        """Starts more runs of the agent's workflow until its migration stands as it should."""
        number = 0
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not is_enough(await self.status(name)):
                await self.start(name, f"{wave}-{name}-{number}")
                number += 1
                await asyncio.sleep(0.3)

    async def be_killed(self) -> None:
        moments = random.Random(SEED)
        for _ in range(KILLS):
            await asyncio.sleep(moments.uniform(0.5, 2.0))
            await self._processes.kill_and_start(moments)
            self.kills += 1

    async def unfinished(self) -> list[str]:
        found = await self.surely(lambda: self.client.pages("/runs"))
        final = {"COMPLETED", "FAILED", "CANCELLED"}
        return [str(run["id"]) for run in found if run["status"] not in final]

    async def all_over(self) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while await self.unfinished():
                await asyncio.sleep(0.3)

    async def read(self, keys: Sequence[str], path: str) -> dict[str, JsonObject]:
        room = asyncio.Semaphore(16)

        async def one(key: str) -> tuple[str, JsonObject]:
            async with room:
                return key, await self.client.call("GET", f"/runs/{self.run_ids[key]}{path}")

        return dict(await asyncio.gather(*map(one, keys)))


def workflow(name: str, other: str) -> JsonObject:
    """Calls one agent three times, and another one in parallel."""
    retry: JsonObject = {"max_attempts": 6, "first_delay": "50ms", "on": ["no_answer", "5xx", -32603]}

    def step(agent: str, step_name: str, *needs: str) -> JsonObject:
        text = f"${{ input.key }}/{step_name}"
        return {"agent": agent, "input": {"text": text}, "needs": [*needs], "retry": retry}

    return {
        "name": name,
        "steps": {
            "first": step(name, "first"),
            "parallel": step(other, "parallel", "first"),
            "second": step(name, "second", "first"),
            "last": step(name, "last", "parallel", "second"),
        },
        "output": [f"${{ steps.{each}.output.text }}" for each in ("first", "parallel", "second", "last")],
    }


def expected_output(name: str, key: str) -> list[str]:
    other = AGENTS[(AGENTS.index(name) + 1) % len(AGENTS)]
    return [f"{name} {key}/first", f"{other} {key}/parallel", f"{name} {key}/second", f"{name} {key}/last"]


@asynccontextmanager
async def moving_agents() -> AsyncGenerator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.crash.migrating_agents", cwd=ROOT, stdout=PIPE
    )
    guard = Guard(process.pid, signal.SIGKILL)
    try:
        assert process.stdout is not None
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.wait()
        guard.dismiss()


@pytest.mark.timeout(600 + 10 * KILLS + RUNS)
async def test_a_fleet_moves_while_its_process_is_killed(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    async with moving_agents() as agents, server_on(tmp_path / "data") as server:
        await server.start()
        await move_everything(RetryingOperator(OneProcess(server, session), agents, session))


@pytest.mark.skipif(not IS_LARGE, reason="part of make chaos")
@pytest.mark.timeout(900 + 20 * KILLS + RUNS)
async def test_a_fleet_moves_while_its_bridges_are_killed(
    tmp_path: Path, patient_session: aiohttp.ClientSession
) -> None:
    async with moving_agents() as agents, killable_fleet(tmp_path) as fleet:
        await move_everything(RetryingOperator(Bridges(fleet, patient_session), agents, patient_session))


async def move_everything(fleet: RetryingOperator) -> None:
    limits: JsonObject = {
        "comparisons": 1, "disagreement": 0, "calls": 4, "window": 20, "error_rate": 0.2, "slowdown": 1000,
        "slowest_ms": None,
    }  # fmt: skip
    good = [name for name in AGENTS if name not in {FAILING, SLOW}]
    await fleet.register_everything()
    async with asyncio.TaskGroup() as group:
        killing = group.create_task(fleet.be_killed())
        await fleet.start_wave("before", RUNS // 5)
        await fleet.move_all(AGENTS, "shadow", percent=100, limits=limits)
        await fleet.start_wave("shadow", RUNS // 5)
        for name in AGENTS:
            await fleet.run_until(name, _is_compared, "compared")
        await fleet.move_all(AGENTS, "canary", percent=50, limits=limits)
        await fleet.post_to_agents(f"/_behave/{FAILING}", "fails")
        await fleet.start_wave("canary", RUNS // 5)
        await fleet.run_until(FAILING, _is_rolled_back, "regress")
        await fleet.move(SLOW, "canary", percent=50, limits={**limits, "slowest_ms": 1500})
        await fleet.move_all([*good, SLOW], "ready", note="deployed, told the team")
        await fleet.move_all([*good, SLOW], "cutover")
        await fleet.post_to_agents(f"/_behave/{SLOW}", "slow")
        await fleet.start_wave("after", RUNS - 4 * (RUNS // 5))
        await fleet.run_until(SLOW, _is_rolled_back, "regress")
        await fleet.post_to_agents(f"/_behave/{SLOW}", "well")
        await fleet.start_wave("end", RUNS // 5)
        in_flight = len(await fleet.unfinished())
        await fleet.post_to_agents("/_release", "")
        await killing
    await fleet.all_over()

    runs = await fleet.read(sorted(fleet.run_ids), "")
    wires = await fleet.read(sorted(fleet.run_ids)[:: max(1, len(runs) // _WIRES_READ)], "/wire")
    log = await fleet.log()
    assert wrong_ends(runs) == []
    assert changed_protocols(runs, wires, log) == []
    assert await stages_by_agent(fleet) == {
        FAILING: ["shadow", "canary", "rolled_back by trunkline"],
        SLOW: ["shadow", "canary", "cut_over", "rolled_back by trunkline"],
    }
    assert in_flight >= min(RUNS, 1_000)
    something_was_tested(fleet, runs, log)


def _is_compared(status: JsonObject) -> bool:
    return bool(cast("JsonObject", status["comparisons"]).get("agree"))


def _is_rolled_back(status: JsonObject) -> bool:
    return cast("JsonObject", status["migration"])["stage"] == "rolled_back"


def _workflow(run: JsonObject) -> str:
    return str(cast("JsonObject", run["workflow"])["name"])


def wrong_ends(runs: dict[str, JsonObject]) -> list[str]:
    return [
        f"{key}: {run['status']} {encode(run['error']).decode()} {run['output']}"
        for key, run in runs.items()
        if (run["status"], run["output"]) != ("COMPLETED", expected_output(_workflow(run), key))
    ]


def changed_protocols(
    runs: dict[str, JsonObject], wires: dict[str, JsonObject], log: Sequence[Entry]
) -> list[str]:
    """By what each run says, by what was on the wire, and by what the agents have got."""
    wrong: list[str] = []
    sides = {"simple-a2a": "old", "jsonrpc-2.0": "new"}
    got: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in log:
        got[entry.key, entry.agent].append(entry)
    for key, run in runs.items():
        spoken: dict[str, set[str]] = defaultdict(set)
        for step in cast("list[JsonObject]", run["steps"]):
            spoken[str(step["agent"])].add(sides[str(step["protocol"])])
        for agent, found in spoken.items():
            entries = got[key, agent]
            if len(found) != 1:
                wrong.append(f"{key} has spoken to {agent} in both protocols")
            elif found == {"new"} and any(entry.side == "old" for entry in entries):
                wrong.append(f"{key} calls the new side of {agent}, whose old one has got something")
            elif found == {"old"} and not _are_shadows(entries):
                wrong.append(f"{key} calls the old side of {agent}, whose new one has got something")
    for key, wire in wires.items():
        for record in cast("list[JsonObject]", wire["items"]):
            request = cast("JsonObject", record["request"])
            agent = str(request["url"]).rpartition("/")[2]
            side = "new" if '"jsonrpc"' in str(request["body"]) else "old"
            said = next(
                step for step in cast("list[JsonObject]", runs[key]["steps"]) if step["agent"] == agent
            )
            if sides[str(said["protocol"])] != side:
                wrong.append(f"{key} has sent to the {side} side of {agent}")
    return wrong


def _are_shadows(entries: Sequence[Entry]) -> bool:
    """What the new side has got of a run that calls the old one came after it, step by step, if at all."""
    answered: set[str] = set()
    for entry in entries:
        if entry.side == "old":
            answered.add(entry.step)
        elif entry.step not in answered or not entry.key.startswith(_SHADOWED):
            return False
    return True


async def stages_by_agent(fleet: RetryingOperator) -> dict[str, list[str]]:
    """What has happened to the agents that were rolled back."""
    found: dict[str, list[str]] = {}
    for name in AGENTS:
        page = await fleet.client.call("GET", f"/migration/events?agent={name}&limit=100")
        stages: list[str] = []
        for event in reversed(cast("list[JsonObject]", page["items"])):
            if event["kind"] == "migration":
                stage = str(cast("JsonObject", event["data"])["stage"])
                if event["who"] == "trunkline":
                    stages.append(f"{stage} by trunkline")
                elif stages[-1:] != [stage]:
                    # What got no answer was asked for again.
                    stages.append(stage)
        if stages[-1] != "cut_over":
            found[name] = stages
    return found


def something_was_tested(fleet: RetryingOperator, runs: dict[str, JsonObject], log: Sequence[Entry]) -> None:
    assert len(runs) >= RUNS
    assert fleet.kills == KILLS
    sends = Counter((entry.agent, entry.side, entry.message) for entry in log if entry.kind == "send")
    assert any(times > 1 for times in sends.values()), "no call was under way at any kill"
    place = {entry.mark: index for index, entry in enumerate(log) if entry.mark is not None}
    for mark in ("shadow", "canary", "cutover"):
        before = {entry.key for entry in log[: place[mark]]}
        crossing = before & {entry.key for entry in log[place[mark] :]}
        assert crossing, f"no run was under way at the {mark}"
    assert any(entry.kind == "poll" for entry in log), "no long task was asked for"
    said = {str(step["protocol"]) for run in runs.values() for step in cast("list[JsonObject]", run["steps"])}
    assert said == {"simple-a2a", "jsonrpc-2.0"}
