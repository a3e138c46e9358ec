"""Agents that say with each connection exactly what a test wants, byte by byte."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from trunkline.transports.address_policy import AddressPolicy

ConnectionScript = Callable[["RawAgent", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

LOOPBACK = AddressPolicy(allow_loopback=True)
OK = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}'


class RawAgent:
    """A server that does with each connection what a test says."""

    def __init__(self, script: ConnectionScript) -> None:
        self.script = script
        self.url = ""
        self.connections = 0
        self.requests: list[bytes] = []
        # Set when a conversation has ended.
        self.left = asyncio.Event()
        self.open_connections: set[asyncio.Task[None]] = set()

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self.open_connections.add(task)
        task.add_done_callback(self.open_connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # The caller may go away at any moment: that is what is tested.
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self.script(self, reader, writer)
                await writer.drain()
        finally:
            writer.close()
            self.left.set()

    async def stop(self) -> None:
        for task in self.open_connections:
            task.cancel()
        await asyncio.gather(*self.open_connections, return_exceptions=True)

    async def request(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
        self.requests.append(head + await reader.readexactly(length))


@asynccontextmanager
async def running(script: ConnectionScript, tls: ssl.SSLContext | None = None) -> AsyncGenerator[RawAgent]:
    agent = RawAgent(script)
    server = await asyncio.start_server(agent.serve, "127.0.0.1", 0, backlog=512, ssl=tls)
    scheme = "http" if tls is None else "https"
    agent.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/agent"
    try:
        yield agent
    finally:
        server.close()
        await agent.stop()


async def good(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await agent.request(reader)
        writer.write(OK)


def answers(*pieces: bytes) -> ConnectionScript:
    """Reads one request, writes these bytes, closes."""

    async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agent.request(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return script


def endless(start: bytes, piece: bytes, pause: float = 0.0) -> ConnectionScript:
    async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agent.request(reader)
        writer.write(start)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return script


async def silent(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await agent.request(reader)
    await reader.read()
