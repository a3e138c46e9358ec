"""
One HTTP/1.1 connection: writes a request, and parses its answer with httptools within limits on every part of it.

A connection carries one request at a time. What an answer means, and which errors callers see, is up to the caller.
Nothing is followed, decompressed or sent a second time.
"""

from __future__ import annotations

import asyncio
import select
from time import perf_counter
from typing import cast

import httptools

from trunkline.transports.answer_memory import FREE_BYTES
from trunkline.transports.failures import AnswerMalformed, too_large

# Of one agent's answer: header lines longer than this, or more of them, are not an agent's.
MAX_HEADER_BYTES = 16 * 1024
MAX_HEADERS = 128
# The parser keeps an unfinished line, so nothing may grow on and on without ever being complete.
MAX_UNFINISHED_BYTES = 128 * 1024
# A stream that is read more slowly than it comes is paused when so much waits.
_MAX_WAITING_BYTES = 128 * 1024
_SWITCHING_PROTOCOLS = 101
# How the parser's complaints about the first line of an answer begin.
_IN_STATUS_LINE = (
    "Expected HTTP/",
    "Expected dot",
    "Expected space",
    "Invalid HTTP version",
    "Invalid status",
)
# How much too early the timers of an event loop may fire.
_TIMER_SECONDS = 0.002


class AgentConnection(asyncio.Protocol):
    """
    Idle, or busy with one request: `send` begins it, and `is_reusable` says whether another may follow.

    `send` gives a future. It ends when the whole answer is there (for a stream: its head), or when `error` says why it
    is not: `AnswerMalformed`, `OSError` (the connection ended), `TimeoutError`, or `TransportError` (it is too large).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._poll = select.poll()
        self._parser: httptools.HttpResponseParser | None = None
        self._waiter: asyncio.Future[None] | None = None
        # By the event loop's clock. One timer serves all requests: it is set again only if it would fire too late.
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = 0.0
        self._is_busy = False
        self._is_streamed = False
        self._limit = 0
        # Of the body: what the head says, and what may be read of it for now.
        self._declared = 0
        self._counted = FREE_BYTES
        self.error: Exception | None = None
        # Counts what the parser has completed; the bytes since then are `_unfinished`.
        self._events = 0
        self._unfinished = 0
        self._header_count = 0
        self._is_interim = False
        self._has_more = False
        self._keeps_alive = False
        self._is_paused = False
        self.idle_since = 0.0
        # The answer to the current request, as far as it has come.
        self.status = 0
        self.headers: dict[str, str] = {}
        self.has_head = False
        self.head_at = 0.0
        self.chunks: list[bytes] = []
        self.size = 0
        self.is_complete = False
        # Nothing more is read before there is memory for so many bytes, and `read_on` is called; 0: nothing is wanted.
        self.wanted_bytes = 0

    def check_open(self) -> None:
        """Raises the error that the connection has ended with: nothing can be sent."""
        transport = self._transport
        if transport is None or transport.is_closing():
            raise self.error or ConnectionResetError("The agent closed the connection.")

    def send(
        self, request: bytes, deadline: float, limit: int, *, streamed: bool = False
    ) -> asyncio.Future[None]:
        """
        Hands the request to the socket of an open connection. From here on, whether the agent has read it is unknown.

        `deadline` is a time of the event loop, and `limit` how many bytes the body of an answer may have that is not
        streamed.
        """
        self._is_busy = True
        self._is_streamed = streamed
        self._limit = limit
        waiter = self._wait(deadline)
        if self._transport is not None:
            self._transport.write(request)
        return waiter

    def read_on(self, deadline: float) -> asyncio.Future[None]:
        """There is memory for what was wanted. Like `send`, but nothing is sent."""
        self._counted, self.wanted_bytes = self.wanted_bytes, 0
        waiter = self._wait(deadline)
        if self.is_complete or self.error is not None:
            waiter.set_result(None)
        self._resume()
        return waiter

    async def read(self, seconds: float) -> bytes:
        """What has come of the body of a stream; empty at its end. Raises `error`."""
        deadline = self._loop.time() + seconds
        while not self.chunks:
            if self.error is not None:
                raise self.error
            if self.is_complete:
                return b""
            await self._wait(deadline)
        chunk = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
        self.chunks.clear()
        self.size = 0
        self._resume()
        return chunk

    def end_request(self) -> None:
        """The caller has all it wants of the answer."""
        self._waiter = None
        if self._is_paused:
            self._resume()
        # An idle connection keeps nothing of what it has carried.
        self.chunks = []
        self.headers = {}
        self.size = self.status = self._header_count = self._unfinished = 0
        self._declared = self.wanted_bytes = 0
        self._counted = FREE_BYTES
        self._is_busy = self.is_complete = self.has_head = False

    @property
    def is_reusable(self) -> bool:
        """Whether the answer is whole, and nothing of this exchange can reach the next one."""
        transport = self._transport
        return (
            self.is_complete
            and self._keeps_alive
            and not self._has_more
            and self.error is None
            and transport is not None
            and not transport.is_closing()
            # An agent that answers before it has read everything leaves a connection on which the next request
            # would follow the rest of this one.
            and transport.get_write_buffer_size() == 0
        )

    def has_nothing_unread(self) -> bool:
        """
        Nothing has come since the last answer.

        What came unasked would be taken for the answer to the next request; a close that is not yet noticed would
        lose that request.
        """
        transport = self._transport
        return transport is not None and not transport.is_closing() and not self._poll.poll(0)

    def abort(self) -> None:
        # Not close(): that waits until the peer has taken what is still to be written, which it may never do.
        self._is_busy = False
        self._waiter = None
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        self._parser = parser = httptools.HttpResponseParser(self)
        # As lenient as clients usually are to old servers. What follows an answer is never read as another one.
        parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def data_received(self, data: bytes) -> None:
        if not self._is_busy and self.error is None:
            self.error = ConnectionAbortedError("The agent sent data without a request.")
        if self.error is not None:
            self.abort()
            return
        events, parser = self._events, self._parser
        if parser is None:
            return
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The agent switches to a protocol that we did not ask for: what follows is not read.
            self._keeps_alive = False
        except httptools.HttpParserError as exc:
            self.error = AnswerMalformed(_symptom(exc))
        if self._events != events:
            self._unfinished = 0
        else:
            self._unfinished += len(data)
            if self._unfinished > MAX_UNFINISHED_BYTES and self.error is None:
                self.error = AnswerMalformed("A line is too long")
        waiter = self._waiter
        is_ready = self.is_complete or self.error is not None or (self._is_streamed and self.has_head)
        if not is_ready and max(self._declared, self.size) > self._counted:
            # A body can be longer than it was declared to be: then only its end shows how long it is.
            self.wanted_bytes = self._declared if self._declared > self._counted else self._limit
            self._pause()
            is_ready = True
        if is_ready and waiter is not None and not waiter.done():
            waiter.set_result(None)
        if self._is_streamed and self.size > _MAX_WAITING_BYTES:
            self._pause()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        # It refers to this object.
        self._parser = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.is_complete or self.error is not None:
            return
        if exc is None and self._is_busy and self._ends_with_connection():
            self.is_complete = True
        else:
            self.error = exc or ConnectionResetError("The agent closed the connection.")
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def on_message_begin(self) -> None:
        self._events += 1
        if self.is_complete:
            # A second answer to one request.
            self._has_more = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self._events += 1
        self._header_count += 1
        if self._header_count > MAX_HEADERS:
            self.error = self.error or AnswerMalformed("Too many headers")
        elif len(name) + len(value) > MAX_HEADER_BYTES:
            self.error = self.error or AnswerMalformed("A header is too long")
        # Those after the body are counted and passed over.
        elif not self.has_head and not self.is_complete:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            headers = self.headers
            headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        self._events += 1
        parser = self._parser
        if self.is_complete or parser is None:
            return
        self.status = status = parser.get_status_code()
        if 100 <= status < 200 and status != _SWITCHING_PROTOCOLS:
            self._is_interim = True
            return
        self._keeps_alive = parser.should_keep_alive()
        self.has_head = True
        self.head_at = perf_counter()
        length = self.headers.get("content-length", "")
        self._declared = int(length) if length.isdecimal() and not self._is_streamed else 0
        if self._declared > self._limit:
            self.error = self.error or too_large(self._limit)

    def on_chunk_header(self) -> None:
        self._events += 1

    def on_body(self, body: bytes) -> None:
        self._events += 1
        if self.error is not None or self.is_complete:
            return
        self.chunks.append(body)
        self.size += len(body)
        if self.size > self._limit and not self._is_streamed:
            self.error = too_large(self._limit)

    def on_message_complete(self) -> None:
        self._events += 1
        if self._is_interim:
            # The next one is the answer.
            self._is_interim = False
            self.headers = {}
            self._header_count = 0
        else:
            self.is_complete = True

    def _pause(self) -> None:
        if not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._is_paused and self._transport is not None:
            self._transport.resume_reading()
        self._is_paused = False

    def _ends_with_connection(self) -> bool:
        """Whether the answer is one whose body ends when the connection does."""
        if not self.has_head or "content-length" in self.headers:
            return False
        encodings = self.headers.get("transfer-encoding", "")
        return encodings.rpartition(",")[2].strip().lower() != "chunked"

    def _wait(self, deadline: float) -> asyncio.Future[None]:
        self._deadline = deadline
        if self._timer is None or self._fires_at > deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._fires_at = deadline
            self._timer = self._loop.call_at(deadline, self._expire)
        self._waiter = waiter = self._loop.create_future()
        return waiter

    def _expire(self) -> None:
        self._timer = None
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        if self._loop.time() + _TIMER_SECONDS < self._deadline:
            self._fires_at = self._deadline
            self._timer = self._loop.call_at(self._deadline, self._expire)
        else:
            self.error = TimeoutError()
            waiter.set_result(None)


def _symptom(exc: httptools.HttpParserError) -> str:
    """What the parser found, without the agent's bytes: they may repeat a secret. Its texts are its own."""
    text = str(exc)
    return "Bad status line" if text.startswith(_IN_STATUS_LINE) else text
