"""
What `trunkline.transports` relies on in aiohttp's connector and response parser, used without a session.

The scenarios with hostile agents test the transport as a whole; these tests say which part of aiohttp has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

pytestmark = pytest.mark.anyio

WAIT_SECONDS = 10.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Twice: a\r\nX-Twice: b\r\n\r\nok"


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncGenerator[URL]:
    """A server that answers the requests of each connection with these bytes, one after the other."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The client may close before it has sent every request.
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            for text in answers:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(text)
                await writer.drain()
            await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield URL.build(scheme="http", host="127.0.0.1", port=port)


@asynccontextmanager
async def connected(
    connector: aiohttp.BaseConnector, url: URL
) -> AsyncGenerator[tuple[Connection, ResponseHandler]]:
    request = aiohttp.ClientRequest("POST", url, ssl=True)
    connection = await connector.connect(request, [], aiohttp.ClientTimeout(connect=WAIT_SECONDS))
    assert connection.protocol is not None
    try:
        yield connection, connection.protocol
    finally:
        connection.close()


def send(protocol: ResponseHandler) -> None:
    protocol.set_response_params(
        read_timeout=0,
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=1_000,
        max_field_size=1_000,
        max_headers=10,
    )
    assert protocol.transport is not None
    protocol.transport.write(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n")


async def test_a_response_is_read_without_a_session() -> None:
    async with (
        asyncio.timeout(WAIT_SECONDS),
        answering(OK) as url,
        aiohttp.TCPConnector() as connector,
        connected(connector, url) as (_, protocol),
    ):
        send(protocol)
        message, payload = await protocol.read()
        assert message.code == 200
        assert message.headers["Content-Length"] == "2"
        assert [value for name, value in message.raw_headers if name == b"X-Twice"] == [b"a", b"b"]
        assert await payload.readany() == b"ok"
        assert await payload.readany() == b""
        assert (payload.is_eof(), payload.at_eof(), payload.exception()) == (True, True, None)


async def test_a_read_timeout_of_none_marks_a_connection_that_was_never_used() -> None:
    async with asyncio.timeout(WAIT_SECONDS), answering(OK, OK) as url, aiohttp.TCPConnector() as connector:
        async with connected(connector, url) as (connection, protocol):
            assert protocol.read_timeout is None
            send(protocol)
            _, payload = await protocol.read()
            assert await payload.readany() == b"ok"
            assert (protocol.writing_paused, protocol.should_close) == (False, False)
            connection.release()
        async with connected(connector, url) as (_, again):
            assert again is protocol
            assert again.read_timeout == 0


async def test_a_response_that_closes_makes_the_connection_unfit_for_another_request() -> None:
    async with (
        asyncio.timeout(WAIT_SECONDS),
        answering(OK.replace(b"X-Twice: a", b"Connection: close")) as url,
        aiohttp.TCPConnector() as connector,
        connected(connector, url) as (_, protocol),
    ):
        send(protocol)
        _, payload = await protocol.read()
        assert await payload.readany() == b"ok"
        assert protocol.should_close


async def test_the_end_of_the_connection_is_a_future() -> None:
    async with (
        asyncio.timeout(WAIT_SECONDS),
        answering(OK) as url,
        aiohttp.TCPConnector() as connector,
        connected(connector, url) as (_, protocol),
    ):
        closed = protocol.closed
        assert isinstance(closed, asyncio.Future)
        protocol.abort()
        await asyncio.wait([closed])


async def test_an_exception_can_be_given_to_the_reader_of_a_body() -> None:
    async with (
        asyncio.timeout(WAIT_SECONDS),
        answering(OK.replace(b"Content-Length: 2", b"Content-Length: 5")) as url,
        aiohttp.TCPConnector() as connector,
        connected(connector, url) as (_, protocol),
    ):
        send(protocol)
        _, payload = await protocol.read()
        assert await payload.readany() == b"ok"
        payload.set_exception(aiohttp.ServerDisconnectedError())
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await payload.readany()


async def test_a_head_that_is_too_long_is_an_error_of_the_protocol() -> None:
    async with (
        asyncio.timeout(WAIT_SECONDS),
        answering(OK.replace(b"X-Twice: a", b"X-Long: " + b"x" * 2_000)) as url,
        aiohttp.TCPConnector() as connector,
        connected(connector, url) as (_, protocol),
    ):
        send(protocol)
        with pytest.raises(HttpProcessingError):
            await protocol.read()
