"""Runs from life to life: started, watched and steered by users who do not give up, until all are over."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import aiohttp
from tests.crash.agents import CrashTestAgents
from tests.crash.client import ServerGone, TrunklineClient
from tests.crash.crash_points import AGENT_POINTS, KILLED
from tests.crash.history_checker import Ending, RequestedRun, violations
from tests.crash.history_reader import quiet, read_history
from tests.crash.process_instances import ProcessInstance, ProcessStarter
from tests.crash.workflows import WatchedRun, WorkflowKind

_SIGKILL = -9
# Only a run that is stuck takes so long, or a process that hangs.
_TIMEOUT_SECONDS = 60


class RestartScenario:
    """One run of each kind that is given."""

    def __init__(
        self,
        kinds: Sequence[WorkflowKind],
        data: Path,
        agents: CrashTestAgents,
        starter: ProcessStarter,
        session: aiohttp.ClientSession,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._runs = [(kind, kind.wanted(f"{kind.name}-{number}")) for number, kind in enumerate(kinds)]
        self._data = data
        self._agents = agents
        self._starter = starter
        self._session = session
        self._settings = settings
        self._endings: dict[int, Ending] = {}
        agents.forget()

    async def live(self, point: str | None = None, occurrence: int = 0) -> list[str] | None:
        """One life. None: it was ended at the point. Otherwise every run is over, and this is what is wrong."""
        self._agents.life += 1
        life = await self._start(point, occurrence)
        driving = asyncio.create_task(self._drive(life))
        await asyncio.wait([driving, life.ended], return_when=asyncio.FIRST_COMPLETED)
        if driving.done() and not isinstance(driving.exception(), ServerGone):
            return driving.result()
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            code = await life.ended
        assert code in {KILLED, _SIGKILL}, f"the process ended by itself with {code}"
        self._endings[self._agents.life] = "killed"
        await self._agents.left_alone()
        return None

    async def _start(self, point: str | None, occurrence: int) -> ProcessInstance:
        if point not in AGENT_POINTS:
            return await self._starter.start(self._data, point, occurrence, self._settings)
        life = await self._starter.start(self._data, settings=self._settings)
        left = occurrence

        def count() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                life.kill()

        if point == "agent.received":
            self._agents.on_received = count
        else:
            self._agents.on_answered = count
        return life

    async def _drive(self, life: ProcessInstance) -> list[str]:
        url = await life.ready
        if url is None:
            raise ServerGone
        client = TrunklineClient(self._session, url)
        gone = False
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS), asyncio.TaskGroup() as group:
                for kind, want in self._runs:
                    group.create_task(self._see_to_its_end(client, kind, want))
        except* ServerGone:
            gone = True
        except* TimeoutError:
            # The history says which run is stuck, and where.
            pass
        if gone:
            raise ServerGone
        await quiet(client)
        wanted = [want for _, want in self._runs]
        return violations(await read_history(client, wanted, self._agents.calls, self._endings))

    async def _see_to_its_end(self, client: TrunklineClient, kind: WorkflowKind, want: RequestedRun) -> None:
        # In each life again: a client that got no answer asks again.
        want.run_id = await client.start(kind.name, want.key)
        watched = WatchedRun(client, self._agents, want)
        async for event in client.follow(want.run_id):
            await kind.react(watched, event)
