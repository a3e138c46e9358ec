"""
A zone on its standard input and output, for the program that has started it: `trunkline zone serve --stdio`.

Each line that comes is a request, and is answered by a line when its answer is there, in any order. Nothing else may
write to the standard output: what handlers print goes to the standard error, where the log goes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import structlog
import uvloop

from trunkline.serving import stop_signal
from trunkline.telemetry import log_events
from trunkline.transports.lines import Line, LineReader
from trunkline.zones.access.policy import ZoneCaller
from trunkline.zones.jsonrpc import ZoneReply, invalid_request_reply
from trunkline.zones.thread_pool import DaemonThreadPool
from trunkline.zones.zone import Zone

log = structlog.stdlib.get_logger(__name__)

PARENT = ZoneCaller(name="parent", known_by="parent")

_CHUNK_BYTES = 64 * 1024
# Requests at once; the next ones stay in the pipe.
_MOST_AT_ONCE = 1_000
# For the last answers, if the other side does not seem to read them.
_LAST_ANSWERS_SECONDS = 5.0


class StdioPipes(NamedTuple):
    """Private duplicates of the file descriptors."""

    requests: int
    answers: int


def take_pipes() -> StdioPipes:
    """The standard input and output; from now on the one is empty for everybody else, and the other is the log's."""
    sys.stdout.flush()
    pipes = StdioPipes(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # For programs that a handler starts, and libraries that write to the descriptor.
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return pipes


def run_zone_on_stdio(zone: Zone, pipes: StdioPipes, data: Path, secret_key: str | None) -> int:
    """Serves until there are no more requests, or until SIGTERM or Ctrl-C."""
    uvloop.run(_run(zone, pipes, data, secret_key))
    return 0


async def _run(zone: Zone, pipes: StdioPipes, data: Path, secret_key: str | None) -> None:
    stop = stop_signal()
    async with zone.running(data, secret_key=secret_key):
        log.info(log_events.READY, url="stdio")
        await serve_lines(zone, pipes, stop)


async def serve_lines(zone: Zone, pipes: StdioPipes, stop: asyncio.Event) -> None:
    """Returns when every request has its answer, and the work under way has ended or had its time."""
    # A thread for each direction, since nothing else reads and writes whatever a descriptor may be, a file for example.
    with DaemonThreadPool(1) as reader, DaemonThreadPool(1) as writer:
        conversation = _StdioSession(zone, pipes, reader, writer, stop)
        reading = asyncio.create_task(conversation.read(), name="read requests")
        stopping = asyncio.create_task(stop.wait(), name="wait for the stop")
        await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
        # Whatever has come by now has been begun, and may end.
        log.info(log_events.STOPPING)
        reading.cancel()
        stopping.cancel()
        await zone.drain()
        await conversation.answered(_LAST_ANSWERS_SECONDS)
        # What has ended the reading, if it was no end of the input.
        with suppress(asyncio.CancelledError):
            await reading


class _StdioSession:
    def __init__(
        self,
        zone: Zone,
        pipes: StdioPipes,
        reader: DaemonThreadPool,
        writer: DaemonThreadPool,
        stop: asyncio.Event,
    ) -> None:
        self._zone = zone
        self._pipes = pipes
        self._reader = reader
        self._writer = writer
        self._stop = stop
        self._slots = asyncio.Semaphore(_MOST_AT_ONCE)
        self._calls: set[asyncio.Task[None]] = set()

    async def read(self) -> None:
        """Begins every request that comes; returns at the end of the input."""
        loop = asyncio.get_running_loop()
        lines = LineReader(self._zone.max_body_bytes)
        while chunk := await loop.run_in_executor(self._reader, os.read, self._pipes.requests, _CHUNK_BYTES):
            await self._begin(lines.feed(chunk))
        await self._begin(lines.end())

    async def answered(self, seconds: float) -> None:
        """When all that were begun are, or the time is over."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=seconds)

    async def _begin(self, lines: Sequence[Line]) -> None:
        for line in lines:
            if line.text.strip():
                await self._slots.acquire()
                call = asyncio.create_task(self._answer(line))
                self._calls.add(call)
                call.add_done_callback(self._ended)

    def _ended(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        self._slots.release()

    async def _answer(self, line: Line) -> None:
        reply = await self._zone.answer(line.text, PARENT) if line.is_whole else self._too_long()
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._writer, _write, self._pipes.answers, reply.body + b"\n")
        except OSError as exc:
            # The reader is gone. Calls in progress may end; their answers can be fetched from the next process.
            log.warning(log_events.ZONE_OUTPUT_CLOSED, error=str(exc))
            self._stop.set()

    def _too_long(self) -> ZoneReply:
        most = self._zone.max_body_bytes
        return invalid_request_reply(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"A request can have at most {most} bytes. Send a smaller one.",
        )


def _write(fd: int, line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(fd, rest) :]
