"""`trunkline zone serve` as a process that can be killed, and a caller that does not give up."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from tests.crash.crashing_zone import CRASH_POINT, RUNS, STOP_TIMEOUT
from tests.crash.process_instances import ROOT
from tests.crash.server import PROGRAM, KillableServer, free_port

from trunkline.jsontypes import JsonObject, decode, encode

# Only a call that is stuck takes so long.
TIMEOUT_SECONDS = 60


class ZoneServer(KillableServer):
    def __init__(self, data: Path, port: int) -> None:
        super().__init__(data, port)
        self._command = (
            str(PROGRAM), "zone", "serve", "tests.crash.crashing_zone:zone",
            "--port", str(port), "--data", str(data), "--log-level", "warning",
        )  # fmt: skip
        self._runs = data.with_name("runs")
        self.injector: str | None = None
        self.stop_timeout = 60.0

    async def begin(self) -> None:
        assert self._process is None, "one life at a time"
        settings = {RUNS: str(self._runs), STOP_TIMEOUT: str(self.stop_timeout)}
        if self.injector is not None:
            settings[CRASH_POINT] = self.injector
        with self._log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdout=PIPE, stderr=errors, cwd=ROOT, env={**os.environ, **settings}
            )

    def runs(self) -> Counter[str]:
        """How often each handler began, by the name in its params."""
        return Counter(self._runs.read_text().split()) if self._runs.exists() else Counter()


@asynccontextmanager
async def zone_on(data: Path) -> AsyncGenerator[ZoneServer]:
    """Not started yet; no process is left at the end, whatever happens."""
    server = ZoneServer(data, free_port())
    try:
        yield server
    finally:
        await server.kill()


class RetryingCaller:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def ask(self, id_: str, method: str, params: JsonObject) -> JsonObject | None:
        """The answer to one request, without its envelope; None when there is none."""
        body = encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        try:
            async with self._session.post(self._url, data=body) as response:
                answer = decode(await response.read())
        except (aiohttp.ClientError, ConnectionError):
            return None
        assert isinstance(answer, dict)
        assert (answer.pop("jsonrpc"), answer.pop("id")) == ("2.0", id_)
        return answer

    async def end_of(self, id_: str, method: str, params: JsonObject) -> JsonObject:
        """Sends the same request, and asks for what was accepted, until it is over, in this life or a later one."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while True:
                answer = await self.ask(id_, method, params)
                if answer is not None and (task_id := task_of(answer)) is not None:
                    answer = await self._end_of_task(task_id)
                if answer is not None and reason_of(answer) != "stopping":
                    return answer
                await asyncio.sleep(0.01)

    async def _end_of_task(self, task_id: str) -> JsonObject | None:
        while True:
            answer = await self.ask("poll", "get_task_result", {"task_id": task_id})
            if answer is None or task_of(answer) is None:
                return answer
            await asyncio.sleep(0.01)


def task_of(answer: JsonObject) -> str | None:
    match answer:
        case {"result": {"status": "accepted", "task_id": str(task_id)}}:
            return task_id
        case _:
            return None


def reason_of(answer: JsonObject) -> object:
    """Why it failed; None when it did not."""
    match answer:
        case {"error": {"code": -32000, "data": {"reason": reason}}}:
            return reason
        case {"result": {"status": "success"}}:
            return None
        case _:
            raise AssertionError(f"neither done nor interrupted: {answer}")
