"""`trunkline serve` as people start it: a process of its own, whatever its backends do, and what it says about them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
from deploy.local.ports import free_port
from deploy.local.processes import Guard

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.testing import Answer, objects_in

ROLES = ("--role", "api", "--role", "executor", "--role", "bridge")
FINAL = {"COMPLETED", "FAILED", "CANCELLED"}


class TrunklineCommand(NamedTuple):
    code: int
    out: str
    err: str


async def trunkline(*arguments: str, **environment: str) -> TrunklineCommand:
    """A command to its end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "trunkline", *arguments,
        stdout=PIPE, stderr=PIPE, env={**os.environ, **environment},
    )  # fmt: skip
    out, err = await process.communicate()
    return TrunklineCommand(process.returncode or 0, out.decode(), err.decode())


class ServerProcess:
    """A process with all roles; it may not be ready yet."""

    def __init__(self, url: str, log: Path, process: Process, session: aiohttp.ClientSession) -> None:
        self.url = url
        self._log = log
        self._process = process
        self._session = session

    async def call(self, method: str, path: str, body: Json = None) -> Answer:
        """`path` is under `/api/v1` unless it begins with two slashes."""
        address = self.url + (path[1:] if path.startswith("//") else f"/api/v1{path}")
        data = None if body is None else encode(body)
        async with self._session.request(method, address, data=data) as response:
            return Answer(response.status, response.headers.copy(), await response.read())

    async def answer(self, method: str, path: str, body: Json = None) -> JsonObject:
        answer = await self.call(method, path, body)
        assert answer.status < 300, answer.body
        return answer.json

    async def start(self, workflow: str) -> str:
        return str((await self.answer("POST", f"/workflows/{workflow}/execute", {}))["id"])

    async def status(self, run_id: str) -> str:
        return str((await self.answer("GET", f"/runs/{run_id}"))["status"])

    async def ended(self, run_id: str) -> str:
        while (status := await self.status(run_id)) not in FINAL:
            await asyncio.sleep(0.1)
        return status

    def said(self, event: str) -> list[JsonObject]:
        """The lines of its log about that."""
        lines = [decode(line) for line in self._log.read_bytes().splitlines() if line.startswith(b"{")]
        return [line for line in objects_in(lines) if line["event"] == event]

    async def says(self, event: str, matches: Callable[[JsonObject], bool] = lambda _: True) -> JsonObject:
        """The first line about that, as soon as it is there."""
        while not (found := [line for line in self.said(event) if matches(line)]):
            self._must_run()
            await asyncio.sleep(0.1)
        return found[0]

    async def misses(self, dependency: str, *words: str) -> str:
        """Waits until /readyz names what is missing in these words; the process lives."""
        while True:
            self._must_run()
            ready = await self._ask("//readyz")
            detail = "" if ready is None or ready.status != 503 else str(ready.json["detail"])
            if f"{dependency}: " in detail and all(word in detail for word in words):
                assert ready is not None
                assert ready.json["fix"]
                alive = await self.call("GET", "//livez")
                assert alive.status == 200
                return detail
            await asyncio.sleep(0.1)

    async def is_ready(self) -> None:
        while True:
            self._must_run()
            ready = await self._ask("//readyz")
            if ready is not None and ready.status == 200:
                return
            await asyncio.sleep(0.1)

    async def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return await self._process.wait()

    async def _ask(self, path: str) -> Answer | None:
        try:
            return await self.call("GET", path)
        except aiohttp.ClientConnectionError:
            # It does not listen yet.
            return None

    def _must_run(self) -> None:
        code = self._process.returncode
        assert code is None, f"It ended with {code}:\n{self._log.read_text()[-4000:]}"


@asynccontextmanager
async def server_process(folder: Path, **environment: str) -> AsyncGenerator[ServerProcess]:
    """Started, and not waited for; gone at the end."""
    log, port = folder / "serve.log", free_port()
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "trunkline", "serve", *ROLES, "--port", str(port),
            "--log-format", "json", "--stop-timeout", "1s",
            stdout=PIPE, stderr=stderr, env={**os.environ, **environment}, start_new_session=True,
        )  # fmt: skip
    guard = Guard(process.pid, signal.SIGKILL)
    async with aiohttp.ClientSession() as session:
        try:
            yield ServerProcess(f"http://127.0.0.1:{port}", log, process, session)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            guard.dismiss()
