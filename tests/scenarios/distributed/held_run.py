"""Work for a process whose backends fail: a run in the middle of its first call, and what must become of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests.scenarios.distributed.server_process import ServerProcess

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Call, ScriptedAgent, simple_success

TWO: JsonObject = {
    "name": "two",
    "steps": {"first": {"agent": "Agent"}, "second": {"agent": "Agent", "needs": ["first"]}},
}


class CallGate:
    """Holds every call until it is let go."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()

    async def __call__(self, call: Call) -> Json:
        await self.opened.wait()
        return simple_success("ok")(call)


class HeldRun(NamedTuple):
    """A run whose first call is under way, in a process that is ready."""

    server: ServerProcess
    run_id: str
    agent: ScriptedAgent
    gate: CallGate

    async def end(self, *others: str) -> None:
        """All runs end well, and no agent has been called twice for a step."""
        await self.server.is_ready()
        runs = (self.run_id, *others)
        assert [await self.server.ended(run) for run in runs] == ["COMPLETED"] * len(runs)
        steps = [f"{run}/{step}/0" for run in runs for step in ("first", "second")]
        assert sorted(str(call.id) for call in self.agent.calls) == sorted(steps)


@asynccontextmanager
async def held_run(server: ServerProcess) -> AsyncGenerator[HeldRun]:
    """As soon as the process is ready."""
    gate = CallGate()
    async with ScriptedAgent(gate) as agent:
        await server.is_ready()
        await prepare(server, agent)
        run_id = await server.start("two")
        await agent.called()
        yield HeldRun(server, run_id, agent, gate)


async def prepare(server: ServerProcess, agent: ScriptedAgent) -> None:
    await server.answer("POST", "/agents", {"name": "Agent", "url": agent.url, "protocol": "simple-a2a"})
    await server.answer("POST", "/workflows", TWO)


async def runs_through(server: ServerProcess) -> None:
    """What was wrong is mended: the process has become ready by itself, and takes work."""
    await server.is_ready()
    async with ScriptedAgent(simple_success("ok")) as agent:
        await prepare(server, agent)
        assert await server.ended(await server.start("two")) == "COMPLETED"
        assert len(agent.calls) == 2
