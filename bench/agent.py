"""
A very fast agent, in a process of its own: what is measured is the caller.

Speaks JSON-RPC (A2A 0.3, a completed task with one artifact) and Simple A2A, over just enough of HTTP/1.1:
Content-Length, keep-alive, no pipelining. Prints its port.
"""

from __future__ import annotations

import asyncio
from typing import cast

import msgspec
import uvloop

from bench.job import TEXT

_ANSWER_TEXT = TEXT.encode()
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class _Request(msgspec.Struct):
    id: str | None = None
    task_id: str | None = None


_requests = msgspec.json.Decoder(_Request)


def _answer(body: bytes) -> bytes:
    request = _requests.decode(body)
    if request.task_id is not None:
        return b'{"task_id":"%s","status":"success","output":{"text":"%s"},"error":null}' % (
            request.task_id.encode(),
            _ANSWER_TEXT,
        )
    return (
        b'{"jsonrpc":"2.0","id":"%s","result":{"kind":"task","id":"task-1","contextId":"context-1",'
        b'"status":{"state":"completed"},"artifacts":[{"artifactId":"answer","parts":[{"kind":"text","text":"%s"}]}]}}'
    ) % ((request.id or "").encode(), _ANSWER_TEXT)


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        head = received.find(b"\r\n\r\n")
        if head < 0:
            self._received = received
            return
        length = _content_length(received[:head])
        if len(received) < head + 4 + length:
            self._received = received
            return
        self._received = b""
        assert self._transport is not None
        self._transport.write(_respond(received, head + 4))


def _content_length(head: bytes) -> int:
    start = head.lower().find(b"\r\ncontent-length:")
    return 0 if start < 0 else int(head[start + 17 :].split(b"\r\n", 1)[0])


def _respond(request: bytes, body_at: int) -> bytes:
    if not request.startswith(b"POST"):
        return _NOT_FOUND
    body = _answer(request[body_at:])
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
