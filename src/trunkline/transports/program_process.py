"""One process of a program that answers on its standard output: its pipes, its open requests, its end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Self, TypeAlias

import msgspec
import structlog
from msgspec import UNSET, UnsetType

from trunkline.agents.stdio_programs import StdioProgram
from trunkline.telemetry import log_events
from trunkline.transports.base import TransportError
from trunkline.transports.failures import too_large
from trunkline.transports.lines import Line, LineReader
from trunkline.transports.program_log import ProgramLog

log = structlog.stdlib.get_logger()

# The value of a request's `id`: 1 and "1" are two, 1 and 1.0 are one.
RequestKey: TypeAlias = str | int | float

# Of a program that has ended, or has closed its output: how long is waited for what is still in the pipes. A program
# that it has started itself may hold them open.
_DRAIN_SECONDS = 1.0
# Requests that were given up, and whose answers may still come; older ones are forgotten.
_MAX_ABANDONED = 1_024


class MessageIds(msgspec.Struct):
    """What a request and its answer have in common."""

    id: RequestKey | UnsetType | None = UNSET
    task_id: RequestKey | UnsetType | None = UNSET

    @property
    def key(self) -> RequestKey | UnsetType | None:
        """None: it says that it has none, as an answer to what could not be read; UNSET: it does not speak of one."""
        return self.task_id if self.id is UNSET else self.id


read_message_ids = msgspec.json.Decoder(MessageIds).decode


class ProgramRequest:
    """A request that was written; its caller waits for the answer, or abandons it."""

    def __init__(self, key: RequestKey) -> None:
        self.key = key
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    @property
    def is_waiting(self) -> bool:
        return not self.answer.done()

    def abandon(self) -> None:
        self.answer.cancel()


class _InputPipe(asyncio.BaseProtocol):
    """The pipe that requests are written to."""

    def __init__(self, on_closed: Callable[[], None]) -> None:
        self._on_closed = on_closed
        self.has_room = asyncio.Event()
        self.has_room.set()
        self.is_open = True

    def pause_writing(self) -> None:
        self.has_room.clear()

    def resume_writing(self) -> None:
        self.has_room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc  # how the process ends tells more
        self.is_open = False
        self._on_closed()


class _OutputPipe(asyncio.Protocol):
    """A pipe that is read."""

    def __init__(self, on_data: Callable[[bytes], None], on_closed: Callable[[], None]) -> None:
        self._on_data = on_data
        self._on_closed = on_closed
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.is_open = False
        self._on_closed()


class ChildProcess:
    """A process, from its start to its end."""

    def __init__(
        self, name: str, process: subprocess.Popen[bytes], longest: int, program_log: ProgramLog
    ) -> None:
        self._name = name
        self._process = process
        self._max_line_bytes = longest
        self._log = program_log
        self._lines = LineReader(longest)
        # In the order in which they were written; abandoned ones too, so that their answers go to no other request.
        self._requests: dict[ProgramRequest, None] = {}
        self._writing = asyncio.Lock()
        self._input = _InputPipe(self._pipe_closed)
        self._output = _OutputPipe(self._read_output, self._pipe_closed)
        self._errors = _OutputPipe(program_log.feed, self._check_closed)
        self._pipes: list[asyncio.BaseTransport] = []
        self._closed = asyncio.Event()
        self._began_at = self.ended_at = monotonic()
        self._has_exited = self._has_stopped_sending = self._is_closing = False
        self.has_answered = False

    @classmethod
    async def start(cls, name: str, program: StdioProgram, longest: int) -> Self:
        """Raises OSError: it cannot be started."""
        variables = program.variables(os.environ)
        program_log = ProgramLog(
            name, [variables[given] for given in program.environment if given in variables]
        )
        child = cls(name, await asyncio.to_thread(_spawn, program, variables), longest, program_log)
        await child._connect()
        log.info(log_events.PROGRAM_STARTED, program=name, pid=child.pid)
        return child

    async def _connect(self) -> None:
        loop, process = asyncio.get_running_loop(), self._process
        self._stdin, _ = await loop.connect_write_pipe(lambda: self._input, process.stdin)
        stdout, _ = await loop.connect_read_pipe(lambda: self._output, process.stdout)
        stderr, _ = await loop.connect_read_pipe(lambda: self._errors, process.stderr)
        self._pipes = [self._stdin, stdout, stderr]
        threading.Thread(
            target=self._wait_for_exit, args=(loop,), name=f"program {self._name}", daemon=True
        ).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it can be asked."""
        return not self._has_stopped_sending

    @property
    def lifetime(self) -> float:
        """Seconds, of one that has ended."""
        return self.ended_at - self._began_at

    async def send(self, key: RequestKey, body: bytes) -> ProgramRequest | None:
        """When it is written; None: it has ended before that."""
        # One at a time, and only when the pipe has room: a request whose time is up before that has not been sent.
        async with self._writing:
            await self._input.has_room.wait()
            if self._has_stopped_sending:
                return None
            self._log.hide_secrets_of(body)
            request = ProgramRequest(key)
            self._requests[request] = None
            self._stdin.write(body + b"\n")
        self._forget_old()
        return request

    async def wait_closed(self) -> None:
        """When neither the process nor anything of it in the pipes is left."""
        await self._closed.wait()

    async def close(self, seconds: float) -> None:
        """Closes its input, then sends SIGTERM, then SIGKILL: each when the one before has not helped in time."""
        self._is_closing = True
        self._stop_sending()
        self._stdin.close()
        for ending in (signal.SIGTERM, signal.SIGKILL):
            if await self._closes_within(seconds):
                return
            self._signal(ending)
        if not await self._closes_within(seconds):
            self._kill()

    async def _closes_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), seconds)
        return self._closed.is_set()

    def _signal(self, number: signal.Signals) -> None:
        # The whole group: every process that holds a pipe belongs to it, and its id is not reused while one is left.
        if not self._closed.is_set():
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def _forget_old(self) -> None:
        if len(self._requests) > _MAX_ABANDONED:
            left = [request for request in self._requests if not request.is_waiting]
            for request in left[:-_MAX_ABANDONED]:
                del self._requests[request]

    # --- answers

    def _read_output(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            if not line.is_whole:
                self._refuse_long_line()
            elif line.text.strip():
                self._take_answer(line)

    def _take_answer(self, line: Line) -> None:
        try:
            key = read_message_ids(line.text).key
        except msgspec.DecodeError:
            key = UNSET
        if key is UNSET:
            self._log.log_ignored_line(line.text, "it is not a JSON object with an id")
            return
        request = self._request_for(key)
        if request is None:
            self._log.log_ignored_line(line.text, "no request has its id")
            return
        del self._requests[request]
        self.has_answered = True
        if request.is_waiting:
            request.answer.set_result(line.text)

    def _request_for(self, key: RequestKey | None) -> ProgramRequest | None:
        """Whose answer this is. A program that could not read a request cannot say which: it is the oldest's."""
        if key is None:
            return next(iter(self._requests), None)
        asked = [request for request in self._requests if request.key == key]
        # The same id twice is the same request: the one that still waits gets the answer.
        return next((request for request in asked if request.is_waiting), next(iter(asked), None))

    def _refuse_long_line(self) -> None:
        if sum(request.is_waiting for request in self._requests) == 1:
            refusal = too_large(self._max_line_bytes)
            self._fail(refusal.code, refusal.message)
        # Of several it is not known whose answer it was, so none of them has one.
        self._fail(
            "agent_connection_lost",
            f"The program {self._name} wrote a line longer than {self._max_line_bytes} bytes, so Trunkline stopped it.",
        )
        self._stop_sending()
        self._signal(signal.SIGKILL)

    # --- the end

    def _pipe_closed(self) -> None:
        """Its input or its output is closed: it is of no use any more."""
        self._stop_sending()
        if not self._is_closing:
            self._kill_later()
        self._check_closed()

    def _wait_for_exit(self, loop: asyncio.AbstractEventLoop) -> None:
        """Runs in a separate thread."""
        self._process.wait()
        # Raised by a loop that has ended: then nothing waits for it.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._process_exited)

    def _process_exited(self) -> None:
        self._has_exited = True
        self._stop_sending()
        self._kill_later()
        self._check_closed()

    def _stop_sending(self) -> None:
        """From here on it is not asked any more."""
        if not self._has_stopped_sending:
            self._has_stopped_sending = True
            self.ended_at = monotonic()
        # Requests that wait for room in the pipe learn that there will be none.
        self._input.has_room.set()

    def _kill_later(self) -> None:
        asyncio.get_running_loop().call_later(_DRAIN_SECONDS, self._kill)

    def _kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._close_pipes()

    def _close_pipes(self) -> None:
        # At once: what it has not read it will not read.
        if self._input.is_open:
            self._stdin.abort()
        for pipe in self._pipes:
            pipe.close()

    def _check_closed(self) -> None:
        if self._closed.is_set() or not self._has_exited or self._output.is_open or self._errors.is_open:
            return
        self._closed.set()
        self._close_pipes()
        self._log.end()
        how = _how_it_ended(self._process.returncode)
        (log.info if self._is_closing else log.warning)(
            log_events.PROGRAM_ENDED, program=self._name, pid=self.pid, how=how
        )
        message = f"The program {self._name} {how} before it answered. See its output in the log."
        self._fail("agent_connection_lost", message)

    def _fail(self, code: str, message: str) -> None:
        for request in self._requests:
            if request.is_waiting:
                request.answer.set_exception(TransportError(code, message))
        self._requests.clear()


def _spawn(program: StdioProgram, variables: dict[str, str]) -> subprocess.Popen[bytes]:
    # Not by the event loop: uvloop leaves the program every descriptor that we have inherited ourselves.
    return subprocess.Popen(  # noqa: S603 - the operator's own command
        program.command,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=variables,
        # Ctrl-C is for us, who then end it in order; and what it has started can be ended with it.
        start_new_session=True,
    )


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
