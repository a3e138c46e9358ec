"""SIGTERM: calls under way may end, nobody is called twice for it, and what takes too long is called again later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from pathlib import Path

import aiohttp
import pytest
from tests.crash.agents import CrashTestAgents
from tests.crash.client import TrunklineClient
from tests.crash.conftest import register_everything
from tests.crash.history_checker import Ending, RequestedRun, violations
from tests.crash.history_reader import read_history
from tests.crash.server import KillableServer, server_on
from tests.crash.workflows import GATED, KINDS, WorkflowKind

pytestmark = pytest.mark.anyio

# Only a run that is stuck takes so long.
TIMEOUT_SECONDS = 60
POLLED = next(kind for kind in KINDS if kind.name == "polled")


class RunningServer:
    """A server, its agents, and what a test has asked for."""

    def __init__(
        self, server: KillableServer, agents: CrashTestAgents, session: aiohttp.ClientSession
    ) -> None:
        self.server = server
        self.agents = agents
        self.session = session
        self.client = TrunklineClient(session, server.url)
        self.wanted: list[RequestedRun] = []

    async def start(self, kind: WorkflowKind) -> str:
        want = kind.wanted(f"{kind.name}-{len(self.wanted)}")
        self.wanted.append(want)
        want.run_id = await self.client.start(kind.name, want.key)
        return want.run_id

    async def restart(self) -> None:
        self.agents.life += 1
        await self.server.start()

    async def finish(self, first_life: Ending) -> list[str]:
        """Waits until every run is over, and says what is wrong."""
        with suppress(TimeoutError):  # then the history says which run is stuck
            async with asyncio.timeout(TIMEOUT_SECONDS):
                for want in self.wanted:
                    async for _ in self.client.follow(str(want.run_id)):
                        pass
        history = await read_history(self.client, self.wanted, self.agents.calls, {1: first_life})
        return violations(history)

    def sends(self, agent: str) -> list[tuple[int, str]]:
        """The life and the task of each call."""
        return [
            (call.life, call.task_id)
            for call in self.agents.calls
            if call.agent == agent and call.kind == "send"
        ]


@pytest.fixture
def stop_timeout() -> str:
    return "60s"


@pytest.fixture
async def running(
    tmp_path: Path, agents: CrashTestAgents, session: aiohttp.ClientSession, stop_timeout: str
) -> AsyncGenerator[RunningServer]:
    agents.forget()
    async with server_on(tmp_path / "data", "--stop-timeout", stop_timeout) as server:
        running_server = RunningServer(server, agents, session)
        await running_server.restart()
        await register_everything(running_server.client, agents, {"polled": "polls=3"})
        yield running_server


async def test_a_stop_lets_calls_end_and_no_agent_is_called_twice(running: RunningServer) -> None:
    run_id = await running.start(GATED)
    address = f"{running.client.url}/api/v1/runs/{run_id}/events"
    async with running.session.get(address, headers={"Accept": "text/event-stream"}) as stream:
        await running.agents.called_for(run_id)
        running.server.ask_to_stop()
        # It ends, and does not break off: an error would be raised here.
        assert b"StepStarted" in await stream.read()
    running.agents.gate.set()
    assert await running.server.stopped() == 0
    assert running.sends("plain") == [], "no further step starts during a stop"

    await running.restart()
    assert await running.finish("stopped") == []
    assert running.sends("gated") == [(1, f"{run_id}/slow/0")]
    assert running.sends("plain") == [(2, f"{run_id}/after/0")]


@pytest.mark.parametrize("stop_timeout", ["100ms"])
async def test_a_call_that_outlasts_the_stop_is_made_again_with_the_same_id(running: RunningServer) -> None:
    run_id = await running.start(GATED)
    await running.agents.called_for(run_id)

    running.server.ask_to_stop()
    assert await running.server.stopped() == 0

    await running.agents.left_alone()
    await running.restart()
    running.agents.gate.set()
    assert await running.finish("abandoned") == []
    assert running.sends("gated") == [(1, f"{run_id}/slow/0"), (2, f"{run_id}/slow/0")]


async def test_an_agent_that_works_on_a_task_is_asked_after_the_restart_and_not_called(
    running: RunningServer,
) -> None:
    run_id = await running.start(POLLED)
    async with aclosing(running.client.follow(run_id)) as events:
        async for event in events:
            if event.type == "StepWorking":
                break

    running.server.ask_to_stop()
    assert await running.server.stopped() == 0

    await running.restart()
    assert await running.finish("stopped") == []
    assert [task_id for _, task_id in running.sends("polled")] == [f"{run_id}/long/0"]
