"""What `trunkline.serving` relies on in uvicorn's HTTP protocol and server, which are not its public interface."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from trunkline.serving import HttpConnection, base_url, listen, serving
from trunkline.serving.connection import HttpRefusal

pytestmark = pytest.mark.anyio

# Only a server that hangs takes so long.
WAIT_SECONDS = 10.0


class RefusingConnection(HttpConnection):
    invalid_http_fix = "Send HTTP."
    max_head_bytes = 2_000
    body_seconds = 0.2

    def refusal_response(self, refusal: HttpRefusal) -> bytes:
        text = f"HTTP/1.1 {refusal.status.value} {refusal.status.phrase}\r\nX-Name: {refusal.name}\r\n\r\n"
        return text.encode()


class RecordingApp:
    """Answers each request with its body, and records the messages that it received."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        body, more = b"", True
        while more:
            message = await receive()
            self.messages.append(message["type"])
            body += message.get("body", b"")
            more = message.get("more_body", False)
        length = str(len(body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def opened(app: RecordingApp) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    with listen("127.0.0.1", 0) as listener:
        port = int(base_url(listener).rpartition(":")[2])
        async with serving(app, listener, RefusingConnection):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                yield reader, writer
            finally:
                writer.close()


async def head_of(reader: asyncio.StreamReader) -> str:
    async with asyncio.timeout(WAIT_SECONDS):
        return (await reader.readuntil(b"\r\n\r\n")).decode()


def post(length: int, body: bytes = b"", header: str = "") -> bytes:
    head = f"POST /path HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\n{header}\r\n"
    return head.encode() + body


async def test_two_requests_on_one_connection_pass_through_the_protocol() -> None:
    app = RecordingApp()
    async with opened(app) as (reader, writer):
        for body in (b"first", b"second"):
            writer.write(post(len(body), body))
            assert "200" in await head_of(reader)
            assert await reader.readexactly(len(body)) == body
    assert set(app.messages) == {"http.request"}


async def test_bytes_that_are_not_http_reach_send_400_response() -> None:
    async with opened(RecordingApp()) as (reader, writer):
        writer.write(b"not http at all\r\n\r\n")
        assert "X-Name: invalid-http" in await head_of(reader)


async def test_a_head_is_counted_while_it_arrives() -> None:
    async with opened(RecordingApp()) as (reader, writer):
        writer.write(post(0, header=f"X-Long: {'x' * 3_000}\r\n"))
        assert "X-Name: head-too-large" in await head_of(reader)


async def test_a_refusal_disconnects_the_application_that_waits_for_the_body() -> None:
    app = RecordingApp()
    async with opened(app) as (reader, writer):
        writer.write(post(10, b"half"))
        assert "X-Name: request-timeout" in await head_of(reader)
    assert app.messages[-1] == "http.disconnect"


async def test_the_server_stops_at_once_when_connections_are_idle() -> None:
    async with opened(RecordingApp()) as (reader, writer):
        writer.write(post(0))
        await head_of(reader)
        began = time.monotonic()
    assert time.monotonic() - began < 1.0


async def test_a_connection_has_the_attributes_that_the_bounds_are_set_by() -> None:
    seen: list[HttpToolsProtocol] = []

    class Watched(RefusingConnection):
        def on_headers_complete(self) -> None:
            super().on_headers_complete()
            seen.append(self)

    with listen("127.0.0.1", 0) as listener:
        port = int(base_url(listener).rpartition(":")[2])
        async with serving(RecordingApp(), listener, Watched):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(post(0, header="X-Name: value\r\n"))
            await head_of(reader)
            protocol = seen[0]
            assert protocol.url == b"/path"
            assert (b"x-name", b"value") in protocol.headers
            assert protocol.scope["type"] == "http"
            assert protocol.loop is asyncio.get_running_loop()
            assert (protocol.cycle.response_started, protocol.cycle.response_complete) == (True, True)
            assert protocol.cycle.disconnected is False
            assert isinstance(protocol.cycle.message_event, asyncio.Event)
            writer.close()
