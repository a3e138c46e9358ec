"""
A very fast agent, in a process of its own: what is measured is the caller.

Speaks every dialect (a completed task with one artifact), over just enough of HTTP/1.1: Content-Length, keep-alive, no
pipelining. Under `/carded` it has a card of A2A 0.3, under `/streaming` one that offers streams. Prints its port.
"""

from __future__ import annotations

import asyncio
from typing import cast

import msgspec
import uvloop

from bench.harness.job import TEXT

_TEXT = TEXT.encode()
_JSON = b"application/json"
_EVENTS = b"text/event-stream"
_CARD = b"/.well-known/agent-card.json"
_ARTIFACT_03 = b'[{"artifactId":"answer","parts":[{"kind":"text","text":"%s"}]}]' % _TEXT
_TASK_03 = (
    b'{"kind":"task","id":"task-1","contextId":"context-1","status":{"state":"completed"},"artifacts":%s}'
    % _ARTIFACT_03
)
_TASK_10 = (
    b'{"id":"task-1","contextId":"context-1","status":{"state":"TASK_STATE_COMPLETED"},'
    b'"artifacts":[{"artifactId":"answer","parts":[{"text":"%s"}]}]}'
) % _TEXT
_TASK_01 = (
    b'{"id":"task-1","status":{"state":"completed"},"artifacts":[{"parts":[{"type":"text","text":"%s"}]}]}'
) % _TEXT
# By method: the result.
_RESULTS = {
    "message/send": _TASK_03,
    "message/stream": _TASK_03,
    "tasks/send": _TASK_01,
    "SendMessage": b'{"task":%s}' % _TASK_10,
    "SendStreamingMessage": b'{"task":%s}' % _TASK_10,
    "execute_task": b'{"status":"success","text":"%s"}' % _TEXT,
}
_STREAMED = frozenset({"message/stream", "SendStreamingMessage"})


class _Request(msgspec.Struct):
    id: str | None = None
    task_id: str | None = None
    method: str = "message/send"


_requests = msgspec.json.Decoder(_Request)


def _answer(path: bytes, body: bytes) -> bytes:
    if path.endswith(b"/message:send"):
        return _response(_JSON, b'{"task":%s}' % _TASK_10)
    request = _requests.decode(body)
    if request.task_id is not None:
        text = b'{"task_id":"%s","status":"success","output":{"text":"%s"},"error":null}'
        return _response(_JSON, text % (request.task_id.encode(), _TEXT))
    answer = b'{"jsonrpc":"2.0","id":"%s","result":%s}' % (
        (request.id or "").encode(),
        _RESULTS[request.method],
    )
    if request.method in _STREAMED:
        return _response(_EVENTS, b"data: %s\n\n" % answer)
    return _response(_JSON, answer)


def _card(path: bytes, host: bytes) -> bytes:
    if path not in (b"/carded" + _CARD, b"/streaming" + _CARD):
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    place = path.removesuffix(_CARD)
    streams = b"true" if place == b"/streaming" else b"false"
    return _response(
        _JSON,
        b'{"name":"bench","url":"http://%s%s","protocolVersion":"0.3.0","preferredTransport":"JSONRPC",'
        b'"capabilities":{"streaming":%s},"skills":[]}' % (host, place, streams),
    )


def _response(content_type: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
    return head % (content_type, len(body)) + body


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
        length = int(_header(received[:head], b"content-length") or 0)
        if len(received) < head + 4 + length:
            self._received = received
            return
        self._received = b""
        assert self._transport is not None
        self._transport.write(_respond(received, head))


def _header(head: bytes, name: bytes) -> bytes:
    start = head.lower().find(b"\r\n%s:" % name)
    return b"" if start < 0 else head[start + len(name) + 3 :].split(b"\r\n", 1)[0].strip()


def _respond(request: bytes, head: int) -> bytes:
    method, path, _ = request.split(b" ", 2)
    if method != b"POST":
        return _card(path, _header(request[:head], b"host"))
    return _answer(path, request[head + 4 :])


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
