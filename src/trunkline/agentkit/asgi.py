"""Requests and responses as plain ASGI, without a web framework."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, MutableMapping, Sequence
from typing import Any, TypeAlias, TypeVar

from trunkline.agentkit.errors import RequestTooLarge

# As ASGI has them: what is in a message depends on its type.
Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
Header: TypeAlias = tuple[bytes, bytes]

T = TypeVar("T")


class ClientDisconnected(Exception):
    """The client has disconnected before it got its response."""


def header(scope: Scope, name: bytes) -> str:
    found: Sequence[Header] = scope.get("headers", ())
    return next((value.decode("latin-1").strip() for key, value in found if key.lower() == name), "")


async def read_body(receive: Receive, limit: int) -> bytes:
    """Raises `RequestTooLarge` before more than the limit is kept, and `ClientDisconnected`."""
    chunks: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ClientDisconnected
        chunk: bytes = event.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise RequestTooLarge(limit)
        chunks.append(chunk)
        if not event.get("more_body", False):
            return b"".join(chunks)


async def while_connected(receive: Receive, coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of the coroutine; cancels it and raises `ClientDisconnected` if the client disconnects first."""
    working = asyncio.ensure_future(coroutine)
    disconnected = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({working, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnected
        return working.result()
    finally:
        for task in (working, disconnected):
            task.cancel()
        await asyncio.gather(working, disconnected, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def respond(send: Send, status: int, body: bytes, headers: Sequence[Header] = ()) -> None:
    all_headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": body})


async def respond_with_events(send: Send, events: AsyncGenerator[bytes]) -> None:
    headers = [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-cache"),
        # nginx would gather events until it has a buffer full of them.
        (b"x-accel-buffering", b"no"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for event in events:
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
