"""
Reads an HTTP response: its head, and its body whole or in chunks, never more of either than allowed.

A large body is read only when there is memory for it (`answer_memory`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from time import monotonic, perf_counter

import aiohttp
from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_parser import RawResponseMessage

from trunkline.protocols.base import AgentAnswer, AnswerTiming
from trunkline.transports.answer_memory import FREE_BYTES, FREE_STREAM_BYTES
from trunkline.transports.base import StreamLimits, TransportError
from trunkline.transports.failures import EXCHANGE_ERRORS, not_answered, timed_out, too_large

# Of a stream that broke off, for the record.
_RECORDED_BYTES = 64 * 1024

# Waits until there is memory for so many bytes.
Reserve = Callable[[int], Awaitable[None]]


class BufferedResponse:
    """An answer that is wanted whole."""

    __slots__ = ("_began", "_connected", "_headed", "chunks", "message", "size")

    def __init__(self) -> None:
        """Created when the request is sent: its times count from then on."""
        self._began = self._connected = self._headed = perf_counter()
        self.message: RawResponseMessage | None = None
        self.chunks: list[bytes] = []
        self.size = 0

    def connected(self) -> None:
        self._connected = perf_counter()

    def add(self, chunk: bytes, limit: int) -> None:
        self.chunks.append(chunk)
        self.size += len(chunk)
        if self.size > limit:
            raise too_large(limit)

    def partial(self) -> AgentAnswer | None:
        return None if self.message is None else self._answer(self.message)

    async def receive(self, protocol: ResponseHandler, limit: int, reserve: Reserve) -> AgentAnswer:
        message, payload = await read_head(protocol)
        self._headed = perf_counter()
        self.message = message
        declared = _check_length(message, limit)
        if payload.is_eof():
            self.add(payload.read_nowait(), limit)
        else:
            with watch_for_disconnect(protocol, payload) as check_end:
                # A body can be longer than it was declared to be: the length of chunks counts instead.
                uncounted = max(FREE_BYTES, declared or 0)
                if uncounted > FREE_BYTES:
                    await reserve(uncounted)
                while chunk := await payload.readany():
                    self.add(chunk, limit)
                    if self.size > uncounted:
                        # How long it is, only its end shows.
                        uncounted = limit
                        await reserve(limit)
                check_end()
        return self._answer(message)

    def _answer(self, message: RawResponseMessage) -> AgentAnswer:
        chunks = self.chunks
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        return AgentAnswer(message.code, headers_of(message), body, self._timing())

    def _timing(self) -> AnswerTiming:
        began = self._began
        return AnswerTiming(
            round((self._connected - began) * 1000, 3), round((self._headed - began) * 1000, 3)
        )


class StreamedResponse:
    """An answer that is read as it comes."""

    def __init__(
        self,
        message: RawResponseMessage,
        payload: StreamReader,
        check_end: Callable[[], None],
        limits: StreamLimits,
        deadline: float,
        reserve: Reserve,
    ) -> None:
        self._message = message
        self._payload = payload
        self._check_end = check_end
        self._limits = limits
        # By the monotonic clock.
        self._deadline = deadline
        self._reserve = reserve
        self._is_counted = False
        self._recorded = bytearray()
        self._size = 0
        self._is_over = False
        self.headers: Mapping[str, str] = headers_of(message)
        self._check_head()

    @property
    def status(self) -> int:
        return self._message.code

    @property
    def size(self) -> int:
        """How many bytes have been read."""
        return self._size

    @property
    def is_over(self) -> bool:
        """Nothing more comes, whether or not the end has been read."""
        return self._is_over or (self._payload.at_eof() and self._payload.exception() is None)

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self._next():
            yield chunk
        self._is_over = True

    async def _next(self) -> bytes:
        idle = self._limits.idle_seconds
        left = self._deadline - monotonic()
        try:
            async with asyncio.timeout(min(idle, left)):
                chunk = await self._payload.readany()
            if not chunk:
                self._check_end()
        except TimeoutError as exc:
            if left <= idle:
                raise timed_out(self._limits.total_seconds, self._partial()) from exc
            message = f"The agent's stream was silent for {idle:g} s."
            raise TransportError("agent_timeout", message, partial=self._partial()) from exc
        except EXCHANGE_ERRORS as exc:
            raise not_answered(exc, idle, self._partial(), self._size) from exc
        self._keep(chunk)
        if self._size > FREE_STREAM_BYTES and not self._is_counted:
            self._is_counted = True
            began = monotonic()
            await self._reserve(self._limits.total_bytes)
            # The agent's time does not run while we wait.
            self._deadline += monotonic() - began
        return chunk

    def _keep(self, chunk: bytes) -> None:
        self._size += len(chunk)
        self._recorded += chunk[: _RECORDED_BYTES - len(self._recorded)]
        if self._size > self._limits.total_bytes:
            raise self._refused(too_large(self._limits.total_bytes))

    def _check_head(self) -> None:
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            message = (
                f"The answer is compressed (Content-Encoding: {encoding}), "
                "although Trunkline did not request compression."
            )
            raise self._refused(TransportError("agent_answer_compressed", message))
        try:
            _check_length(self._message, self._limits.total_bytes)
        except TransportError as exc:
            raise self._refused(exc) from exc

    def _refused(self, why: TransportError) -> TransportError:
        return TransportError(why.code, why.message, partial=self._partial())

    def _partial(self) -> AgentAnswer:
        return AgentAnswer(self.status, self.headers, bytes(self._recorded))


async def read_head(protocol: ResponseHandler) -> tuple[RawResponseMessage, StreamReader]:
    """The head of the final answer; interim ones are passed over."""
    message, payload = await protocol.read()
    while 100 <= message.code < 200 and message.code != 101:
        message, payload = await protocol.read()
    return message, payload


@contextmanager
def watch_for_disconnect(protocol: ResponseHandler, payload: StreamReader) -> Generator[Callable[[], None]]:
    """
    While this is open, the reader of the body is notified of every end of the connection.

    What it gives raises an error at the end of a body that only seems to be one.
    """

    def lost(closed: asyncio.Future[None] | None) -> None:
        # aiohttp closes the connection over a broken chunk, but does not tell the reader of the body.
        if not payload.is_eof() and payload.exception() is None:
            payload.set_exception(protocol.exception() or aiohttp.ServerDisconnectedError())
        if closed is not None:
            retrieve_exception(closed)

    def check_end() -> None:
        # A body without a length ends with the connection, and aiohttp takes a reset for such an end.
        if closed is not None and closed.done() and (error := closed.exception()) is not None:
            raise error

    closed = protocol.closed
    if closed is None:
        lost(closed)
    else:
        closed.remove_done_callback(retrieve_exception)
        closed.add_done_callback(lost)
    try:
        yield check_end
    finally:
        if closed is not None and closed.remove_done_callback(lost):
            closed.add_done_callback(retrieve_exception)


def retrieve_exception(closed: asyncio.Future[None]) -> None:
    """Looks at how the connection ended, so that asyncio does not report an exception that was never retrieved."""
    closed.exception()


def headers_of(message: RawResponseMessage) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in message.raw_headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _check_length(message: RawResponseMessage, limit: int) -> int | None:
    """The declared length of the body."""
    length = message.headers.get("Content-Length", "")
    if not length.isdecimal():
        return None
    if int(length) > limit:
        raise too_large(limit)
    return int(length)
