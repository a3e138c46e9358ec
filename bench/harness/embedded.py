"""Trunkline's API, driven by a lean client; `trunkline up` as a child process with its default settings."""

from __future__ import annotations

import struct
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.harness.http_client import Connection, connect, request
from bench.harness.job import AGENT, DEFINITION, NO_CALL_DEFINITION, RUN_INPUT, WORKFLOW
from bench.harness.load import LoadOrder, LoadResult, keep_busy
from bench.harness.processes import Child, child, python

LOG = "trunkline.log"
PROGRAM = Path(sys.executable).with_name("trunkline")
_WAL_HEADER = 32
_FRAME_HEADER = 24


class Target(NamedTuple):
    """A server, and the request that it gets again and again."""

    url: str
    request: bytes


class Api:
    def __init__(self, url: str) -> None:
        self.url = url

    async def set_up(self, agent_url: str) -> None:
        """Registers the agent and saves the workflows."""
        agent = {"name": AGENT, "url": agent_url, "protocol": "jsonrpc-2.0"}
        await self.call("/api/v1/agents", msgspec.json.encode(agent))
        for definition in (DEFINITION, NO_CALL_DEFINITION):
            await self.save(definition)

    async def save(self, definition: str) -> None:
        await self.call("/api/v1/workflows", definition.encode(), "application/yaml")

    async def call(self, path: str, body: bytes, content_type: str = "application/json") -> bytes:
        connection = await connect(self.url)
        try:
            return await connection.call(request(self.url, path, body, content_type=content_type))
        finally:
            connection.close()

    async def run(self, workflow: str, seconds: int = 300) -> None:
        """One run, to its end."""
        check_completed(await self.call(f"/api/v1/workflows/{workflow}/execute?wait={seconds}", RUN_INPUT))

    @property
    def job(self) -> Target:
        return Target(self.url, request(self.url, f"/api/v1/workflows/{WORKFLOW}/execute?wait=30", RUN_INPUT))


class Server(Api):
    def __init__(self, process: Child, data: Path) -> None:
        super().__init__(process.first_line)
        self.process = process
        self._wal = data / "trunkline.db-wal"

    async def measure(self, order: LoadOrder) -> LoadResult:
        """The job, each run to its end; the CPU time is that of the server."""
        before = self.process.cpu_seconds()
        took = await drive([self.job], order, check_completed)
        took.cpu_seconds = self.process.cpu_seconds() - before
        return took

    def commits(self) -> int:
        """Commits in the WAL since it was last restarted: only those that wrote something are there."""
        wal = self._wal.read_bytes()
        (page_size,) = struct.unpack(">I", wal[8:12])
        salt = wal[16:24]
        commits = 0
        for start in range(_WAL_HEADER, len(wal) - _FRAME_HEADER, _FRAME_HEADER + page_size):
            frame = wal[start : start + _FRAME_HEADER]
            if frame[8:16] == salt and struct.unpack(">I", frame[4:8])[0]:
                commits += 1
        return commits


def check_completed(answer: bytes) -> None:
    if b'"status":"COMPLETED"' not in answer:
        raise RuntimeError(f"The run did not complete: {answer[:1_000].decode(errors='replace')}")


async def drive(
    targets: Sequence[Target], order: LoadOrder, check: Callable[[bytes], None] | None = None
) -> LoadResult:
    """Sends the targets' requests again and again over connections of its own, dealt out in turn."""
    dealt = [targets[number % len(targets)] for number in range(order.at_a_time)]
    connections = [await connect(target.url) for target in dealt]

    def slot(number: int) -> Callable[[], Awaitable[None]]:
        return lambda: _call(connections[number], dealt[number].request, check)

    try:
        return await keep_busy(order, slot)
    finally:
        for connection in connections:
            connection.close()


async def _call(connection: Connection, ready_request: bytes, check: Callable[[bytes], None] | None) -> None:
    answer = await connection.call(ready_request)
    if check is not None:
        check(answer)


@contextmanager
def trunkline_up(folder: Path, *, sampled: bool = False) -> Generator[Server]:
    data = folder / "data"
    command = (
        python("bench.profiling.sampled_up", str(data))
        if sampled
        else [str(PROGRAM), "up", "--port", "0", "--data", str(data)]
    )
    with child(command, folder / LOG) as process:
        yield Server(process, data)
