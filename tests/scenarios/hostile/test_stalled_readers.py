"""Clients that ask for long responses and do not read them: they are cut, and what is buffered for them is freed."""

from __future__ import annotations

import asyncio
import socket

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trunkline.api.server import ApiConnection, listen, serving

# Nothing here has a store or a broker.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

LONG = bytes(16 * 1024 * 1024)


async def long_answer(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(LONG)(scope, receive, send)


async def test_a_client_that_reads_nothing_is_cut() -> None:
    closed = asyncio.Event()

    class ImpatientConnection(ApiConnection):
        write_seconds = 0.05

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            closed.set()

    listener = listen("127.0.0.1", 0)
    async with serving(long_answer, listener, ImpatientConnection):
        client = socket.create_connection(listener.getsockname())
        try:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            # Long enough for any machine: only a connection that is never cut reaches it.
            async with asyncio.timeout(20):
                await closed.wait()
        finally:
            client.close()


async def test_a_client_that_reads_gets_all_of_it() -> None:
    class ImpatientConnection(ApiConnection):
        write_seconds = 5.0

    listener = listen("127.0.0.1", 0)
    async with serving(long_answer, listener, ImpatientConnection):
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        text = await reader.read()
        writer.close()
    assert text.endswith(LONG)
