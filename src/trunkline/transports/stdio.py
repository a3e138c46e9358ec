"""
Programs on this machine: a request is a line on a program's standard input, its answer a line on the standard output.

    request  {"jsonrpc":"2.0","id":"…","method":…}   or Simple A2A's {"task_id":"…","input":…}
    answer   {"jsonrpc":"2.0","id":"…","result":…}   or {"task_id":"…","status":…}

A URL is `stdio:NAME`. Which program that is, only the operator's settings say (`agents.stdio_programs`). It is started
for the first request, stays, and takes further requests while it works on others; its answers may come in any order.
What only HTTP has (headers, TLS, GET, streams) does not exist here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from time import monotonic
from types import TracebackType
from typing import Self

import msgspec
from msgspec import UNSET

from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.agents.http_urls import UrlError
from trunkline.agents.stdio_programs import StdioProgram
from trunkline.agents.transport_urls import parse_program
from trunkline.protocols.base import AgentAnswer
from trunkline.transports.base import StreamedAnswer, StreamLimits, TransportError
from trunkline.transports.failures import lacks_resources, out_of_resources, timed_out
from trunkline.transports.https import MAX_ANSWER_BYTES
from trunkline.transports.program_process import ChildProcess, ProgramRequest, RequestKey, read_message_ids

# A program that ends sooner than this, and answers nothing: the next start waits, each time longer.
_EARLY_EXIT_SECONDS = 5.0
_FIRST_DELAY_SECONDS = 0.1
_MAX_DELAY_SECONDS = 5.0
# From there on every delay is the longest; a program may die for days.
_MAX_DOUBLINGS = 6
# For each of: until it ends because its input has ended; until it ends because of SIGTERM.
_END_SECONDS = 5.0


class StdioTransport:
    """Made inside the running loop, used as a context: at its end no program of it runs any more."""

    def __init__(
        self,
        programs: Mapping[str, StdioProgram],
        *,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        end_seconds: float = _END_SECONDS,
    ) -> None:
        self._end_seconds = end_seconds
        self._programs = {
            name: _SupervisedProgram(name, program, max_answer_bytes) for name, program in programs.items()
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await asyncio.gather(*(program.close(self._end_seconds) for program in self._programs.values()))

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - the transport alone can tell which part of the exchange it cut
        tls: TlsConfig | None = None,
    ) -> AgentAnswer:
        del headers, tls
        program = self._program(url)
        key = _key(body)
        request: ProgramRequest | None = None
        try:
            async with asyncio.timeout(timeout):
                request = await program.send(key, body)
                return AgentAnswer(200, {}, await request.answer)
        except TimeoutError as exc:
            if request is None:
                raise program.not_ready(timeout) from exc
            raise timed_out(timeout, None) from exc
        finally:
            if request is not None:
                request.abandon()

    async def get(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - as above
        tls: TlsConfig | None = None,
    ) -> AgentAnswer:
        del headers, timeout, tls
        raise _refused(url, "It does not support GET requests")

    def stream(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: StreamLimits,
        tls: TlsConfig | None = None,
    ) -> AbstractAsyncContextManager[StreamedAnswer]:
        del body, headers, limits, tls
        raise _refused(url, "It does not support streaming")

    def _program(self, url: str) -> _SupervisedProgram:
        try:
            name = parse_program(url)
        except UrlError as exc:
            raise TransportError("agent_url_invalid", f"The agent's url cannot be called: {exc}.") from exc
        program = self._programs.get(name)
        if program is None:
            raise TransportError(
                "agent_program_unknown",
                f"TRUNKLINE_STDIO_COMMANDS has no program {name}. It has: {self._known()}.",
            )
        return program

    def _known(self) -> str:
        return ", ".join(sorted(self._programs)) or "none"


class _ProgramStopped(Exception):
    """It is not started any more."""


class _SupervisedProgram:
    """A program that is started again after its process has ended."""

    def __init__(self, name: str, program: StdioProgram, max_answer_bytes: int) -> None:
        self._name = name
        self._program = program
        self._max_answer_bytes = max_answer_bytes
        self._child: ChildProcess | None = None
        self._start: asyncio.Task[ChildProcess] | None = None
        self._early_exits = 0
        self._closing = asyncio.Event()

    async def send(self, key: RequestKey, body: bytes) -> ProgramRequest:
        """When the whole of it has been handed to the program's input; raises `TransportError`: it was not."""
        while True:
            child = await self._running_child()
            request = await child.send(key, body)
            # None: it died before anything was written, so nothing is sent twice.
            if request is not None:
                return request

    def not_ready(self, seconds: float) -> TransportError:
        why = (
            "does not read its input"
            if self._child is not None and self._child.is_running
            else "is not running"
        )
        return TransportError(
            "agent_unreachable", f"The program {self._name} {why}; waited for {seconds:g} s."
        )

    async def _running_child(self) -> ChildProcess:
        if self._child is not None and self._child.is_running:
            return self._child
        if self._start is None:
            self._start = asyncio.create_task(self._restart(), name=f"start {self._name}")
            self._start.add_done_callback(_take_failure)
        # Shared by all that wait, and it goes on when one of them does not.
        start = self._start
        await asyncio.wait((start,))
        match start.exception():
            case None:
                return start.result()
            case OSError() as exc if lacks_resources(exc):
                raise out_of_resources(exc) from exc
            case OSError() as exc:
                reason = os.strerror(exc.errno) if exc.errno else str(exc)
                message = (
                    f"The program {self._name} ({self._program.command[0]}) cannot be started: {reason}."
                )
                raise TransportError("agent_unreachable", message) from exc
            case exc:
                raise TransportError("agent_unreachable", str(exc)) from exc

    async def _restart(self) -> ChildProcess:
        try:
            if self._child is not None:
                # One at a time: what it works on, e.g. a zone's data folder, may be for one process only.
                await self._child.wait_closed()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self._delay())
            if self._closing.is_set():
                raise _ProgramStopped(f"The program {self._name} has been stopped.")
            self._child = await ChildProcess.start(self._name, self._program, self._max_answer_bytes)
            return self._child
        finally:
            self._start = None

    def _delay(self) -> float:
        """How long to wait with the next start."""
        last = self._child
        if last is None or last.has_answered or last.lifetime > _EARLY_EXIT_SECONDS:
            self._early_exits = 0
            return 0.0
        self._early_exits += 1
        return max(0.0, last.ended_at + restart_delay(self._early_exits) - monotonic())

    async def close(self, seconds: float) -> None:
        self._closing.set()
        if self._child is not None:
            await self._child.close(seconds)
        if self._start is not None:
            await asyncio.wait((self._start,))
        if self._child is not None:
            await self._child.close(seconds)


def restart_delay(early_exits: int) -> float:
    """Seconds between the last of so many deaths in a row and the next start."""
    return min(_FIRST_DELAY_SECONDS * 2.0 ** min(early_exits - 1, _MAX_DOUBLINGS), _MAX_DELAY_SECONDS)


def _take_failure(start: asyncio.Task[ChildProcess]) -> None:
    # The callers that wait raise it again; without any, asyncio must not report it as never retrieved.
    if not start.cancelled():
        start.exception()


def _key(body: bytes) -> RequestKey:
    """What identifies the answer; raises `TransportError`: not one line, or its answer could not be recognised."""
    if b"\n" in body or b"\r" in body:
        raise _not_encodable("it contains a line break, and one line is one request")
    try:
        key = read_message_ids(body).key
    except msgspec.DecodeError as exc:
        # Not the decoder's message: it could quote the request.
        raise _not_encodable("it is not a JSON object whose id is a string or a number") from exc
    if key is None or key is UNSET:
        raise _not_encodable("it has neither an id nor a task_id, so its answer could not be identified")
    return key


def _not_encodable(why: str) -> TransportError:
    return TransportError("request_not_encodable", f"The request cannot be sent to a program: {why}.")


def _refused(url: str, why: str) -> TransportError:
    return TransportError("agent_url_invalid", f"{url} is a program on this machine. {why}.")
