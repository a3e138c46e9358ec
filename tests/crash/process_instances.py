"""Starts lives of Trunkline that end where a test says, and knows how each has ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from tests.crash.process_forker import StartCommand

ROOT = Path(__file__).parents[2]


class ProcessInstance:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        # The base URL; None when it ended before it was ready.
        self.ready: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        # The exit code, or the negative number of the signal.
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def kill(self) -> None:
        if not self.ended.done():
            os.kill(self.pid, signal.SIGKILL)


class ProcessStarter:
    """One life at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._life: ProcessInstance | None = None
        self._begun: asyncio.Future[ProcessInstance] = asyncio.get_running_loop().create_future()

    async def start(
        self,
        data: Path,
        point: str | None = None,
        occurrence: int = 0,
        settings: Mapping[str, str] | None = None,
    ) -> ProcessInstance:
        assert self._process.stdin is not None
        self._begun = asyncio.get_running_loop().create_future()
        order = StartCommand(str(data), point, occurrence, dict(settings or {}))
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        return await self._begun

    async def listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            word, _, rest = line.decode().strip().partition(" ")
            if word == "pid":
                self._life = ProcessInstance(int(rest))
                self._begun.set_result(self._life)
            elif self._life is not None and word == "ready":
                self._life.ready.set_result(rest)
            elif self._life is not None and word == "exit":
                if not self._life.ready.done():
                    self._life.ready.set_result(None)
                self._life.ended.set_result(int(rest))

    async def end(self) -> None:
        if self._life is not None and not self._life.ended.done():
            self._life.kill()
            await self._life.ended


@asynccontextmanager
async def process_starter(log: Path) -> AsyncGenerator[ProcessStarter]:
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.crash.process_forker",
            cwd=ROOT,
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
        )
    starter = ProcessStarter(process)
    listening = asyncio.create_task(starter.listen())
    try:
        yield starter
    finally:
        await starter.end()
        process.kill()
        await process.wait()
        await listening
