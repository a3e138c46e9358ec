"""`trunkline up` as people start it: a process of its own, on a port of its own, that can be killed."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

# Only a process that hangs takes so long.
_TIMEOUT_SECONDS = 90
PROGRAM = Path(sys.executable).with_name("trunkline")


class KillableServer:
    def __init__(self, data: Path, port: int, *flags: str, program: Sequence[str] = (str(PROGRAM),)) -> None:
        self._command = (
            *program, "up", "--port", str(port), "--data", str(data), "--log-level", "warning", *flags,
        )  # fmt: skip
        self._log = data.with_name(f"{data.name}.stderr")
        self._process: Process | None = None
        self.url = f"http://127.0.0.1:{port}"

    async def begin(self) -> None:
        """Starts the process, and does not wait for anything."""
        assert self._process is None, "one life at a time"
        with self._log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(*self._command, stdout=PIPE, stderr=errors)

    async def ready(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            line = (await process.stdout.readline()).decode().strip()
        assert line == self.url, f"it did not start: {line!r}\n{self._log.read_text()[-4000:]}"

    async def start(self) -> None:
        await self.begin()
        await self.ready()

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()

    def ask_to_stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    async def stopped(self) -> int:
        """Its exit code."""
        process, self._process = self._process, None
        assert process is not None
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            return await process.wait()


@asynccontextmanager
async def server_on(
    data: Path, *flags: str, program: Sequence[str] = (str(PROGRAM),)
) -> AsyncGenerator[KillableServer]:
    """Not started yet; no process is left at the end, whatever happens."""
    server = KillableServer(data, free_port(), *flags, program=program)
    try:
        yield server
    finally:
        await server.kill()


def free_port() -> int:
    """
    A port that stays free while nobody listens.

    Below those that the system gives to outgoing connections: one of them could take it between two lives.
    """
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(20_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
