"""A lean HTTP/1.1 client: ready bytes out, the body of the answer back. Keep-alive, Content-Length only."""

from __future__ import annotations

import asyncio
from typing import cast
from urllib.parse import urlsplit


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("The server closed the connection."))

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        head = received.find(b"\r\n\r\n")
        if head < 0 or len(received) < head + 4 + _content_length(received[:head]):
            self._received = received
            return
        self._received = b""
        answer, self._answer = self._answer, None
        assert answer is not None, "an answer to no request"
        answer.set_result((int(received[9:12]), received[head + 4 :]))

    async def call(self, request: bytes) -> bytes:
        """The body of a 2xx answer; anything else ends the measurement."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        status, body = await self._answer
        if not 200 <= status < 300:
            raise RuntimeError(f"HTTP {status}: {body[:1_000].decode(errors='replace')}")
        return body

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _content_length(head: bytes) -> int:
    start = head.lower().find(b"\r\ncontent-length:")
    return 0 if start < 0 else int(head[start + 17 :].split(b"\r\n", 1)[0])


async def connect(url: str) -> Connection:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    _, connection = await asyncio.get_running_loop().create_connection(Connection, parts.hostname, parts.port)
    return connection


def request(
    url: str, path: str, body: bytes = b"", *, method: str = "POST", content_type: str = "application/json"
) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
