"""What a connection makes of the bytes that come, without a socket's timing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator
from typing import Any, cast

import pytest

from trunkline.transports.failures import AnswerMalformed
from trunkline.transports.http1.connection import MAX_UNFINISHED_BYTES, AgentConnection

pytestmark = pytest.mark.anyio

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class FakeTransport:
    """Takes everything at once; what comes is up to the test."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self.written = b""
        self.is_reading = True
        self.is_aborted = False

    def get_extra_info(self, name: str) -> object:
        return self._end if name == "socket" else None

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.is_aborted

    def write(self, data: bytes) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def abort(self) -> None:
        self.is_aborted = True


@pytest.fixture
def sockets() -> Generator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def transport(sockets: tuple[socket.socket, socket.socket]) -> FakeTransport:
    return FakeTransport(sockets[0])


def connected(transport: FakeTransport) -> AgentConnection:
    connection = AgentConnection(asyncio.get_running_loop())
    connection.connection_made(cast("Any", transport))
    return connection


def asked(
    transport: FakeTransport, *, streamed: bool = False
) -> tuple[AgentConnection, asyncio.Future[None]]:
    connection = connected(transport)
    waiter = connection.send(REQUEST, asyncio.get_running_loop().time() + 60, 1_000_000, streamed=streamed)
    return connection, waiter


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 1_000),
        (b"HTTP/1.1 ", b" " * 1_000),
        (CHUNKED + b"2;", b"x" * 1_000),
        (CHUNKED + b"2\r\nok\r\n0\r\nX: ", b"x" * 1_000),
    ],
    ids=["head", "status line", "chunk", "trailer"],
)
async def test_a_line_that_never_ends_is_not_kept_for_ever(
    start: bytes, more: bytes, transport: FakeTransport
) -> None:
    connection, waiter = asked(transport)
    connection.data_received(start)
    for _ in range(MAX_UNFINISHED_BYTES // len(more) + 2):
        connection.data_received(more)
    assert waiter.done()
    assert isinstance(connection.error, AnswerMalformed)
    assert not connection.is_reusable


async def test_an_answer_that_offers_another_protocol_has_a_body(transport: FakeTransport) -> None:
    # Like those of Apache with HTTP/2.
    answer = b"HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nConnection: Upgrade, Keep-Alive\r\nContent-Length: 5\r\n\r\nhello"
    connection, waiter = asked(transport)
    connection.data_received(answer)
    assert waiter.done()
    assert (connection.error, connection.status, b"".join(connection.chunks)) == (None, 200, b"hello")
    assert connection.is_reusable


async def test_an_answer_that_switches_protocols_ends_with_its_head(transport: FakeTransport) -> None:
    connection, waiter = asked(transport)
    connection.data_received(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n\0\1"
    )
    assert waiter.done()
    assert (connection.error, connection.status, connection.chunks) == (None, 101, [])
    assert not connection.is_reusable


async def test_a_stream_is_paused_while_too_much_of_it_waits(transport: FakeTransport) -> None:
    connection, waiter = asked(transport, streamed=True)
    connection.data_received(b"HTTP/1.1 200 OK\r\n\r\n")
    assert waiter.done()
    received = 0
    while transport.is_reading:
        connection.data_received(bytes(10_000))
        received += 10_000
    assert received < 200_000
    assert len(await connection.read(60)) == received
    assert transport.is_reading


async def test_what_a_request_left_behind_is_not_kept_while_idle(transport: FakeTransport) -> None:
    connection, _ = asked(transport)
    connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    assert connection.is_reusable
    connection.end_request()
    assert (connection.chunks, connection.headers) == ([], {})


async def test_a_connection_is_not_used_while_something_waits_to_be_read(
    transport: FakeTransport, sockets: tuple[socket.socket, socket.socket]
) -> None:
    connection = connected(transport)
    assert connection.has_nothing_unread()
    sockets[1].send(b"HTTP")
    assert not connection.has_nothing_unread()


async def test_a_second_answer_to_one_request_is_not_read(transport: FakeTransport) -> None:
    connection, _ = asked(transport)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    connection.data_received(answer + b"ok" + answer + b"no")
    assert (connection.error, connection.chunks) == (None, [b"ok"])
    assert not connection.is_reusable


@pytest.mark.parametrize("before", [True, False])
async def test_what_comes_without_a_request_ends_the_connection(
    before: bool, transport: FakeTransport
) -> None:
    connection = connected(transport)
    if not before:
        connection, _ = asked(transport)
        connection.data_received(b"HTTP/1.1 204 No Content\r\n\r\n")
        connection.end_request()
    connection.data_received(b"HTTP/1.1 200 OK\r\n")
    assert transport.is_aborted
    with pytest.raises(ConnectionAbortedError):
        connection.check_open()


@pytest.mark.parametrize(
    ("head", "is_whole"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", False),
        (CHUNKED + b"9\r\n", False),
    ],
)
async def test_the_end_of_the_connection_ends_a_body_only_if_nothing_else_does(
    head: bytes, is_whole: bool, transport: FakeTransport
) -> None:
    connection, waiter = asked(transport)
    connection.data_received(head + b"body")
    assert not waiter.done()
    connection.connection_lost(None)
    assert waiter.done()
    assert connection.is_complete is is_whole
    assert (connection.error is None) is is_whole


async def test_a_later_request_may_have_an_earlier_deadline(transport: FakeTransport) -> None:
    connection, loop = connected(transport), asyncio.get_running_loop()
    await_first = connection.send(REQUEST, loop.time() + 60, 1_000)
    connection.data_received(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert await_first.done()
    connection.end_request()
    await connection.send(REQUEST, loop.time() + 0.01, 1_000)
    assert isinstance(connection.error, TimeoutError)


async def test_the_deadline_of_an_earlier_request_does_not_end_a_later_one(transport: FakeTransport) -> None:
    connection, loop = connected(transport), asyncio.get_running_loop()
    first = connection.send(REQUEST, loop.time() + 0.01, 1_000)
    connection.data_received(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert first.done()
    connection.end_request()
    second = connection.send(REQUEST, loop.time() + 0.05, 1_000)
    began = loop.time()
    await second
    assert isinstance(connection.error, TimeoutError)
    assert loop.time() - began >= 0.04
