"""
Requests to our own application without a connection: a call over gRPC becomes a request of the HTTP+JSON binding.

So keys, limits, records and traces are the same for all bindings. A caller that goes away ends the request, as a lost
connection does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Scope

# In the scope: by which binding the caller has come.
BINDING = "trunkline.binding"


class InnerRequest(NamedTuple):
    method: str
    # Decoded.
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    # Of the caller.
    client: tuple[str, int] | None
    scheme: str
    binding: str


class InnerResponse(NamedTuple):
    status: int
    # In pieces; a stream goes on for as long as its task.
    pieces: AsyncIterator[bytes]

    async def body(self) -> bytes:
        return b"".join([piece async for piece in self.pieces])


@asynccontextmanager
async def answered(app: ASGIApp, request: InnerRequest) -> AsyncGenerator[InnerResponse]:
    """The response of the application. The request ends with the block."""
    # The application waits until a piece was taken, as it does for a connection.
    sent: asyncio.Queue[Message | None] = asyncio.Queue(1)
    received: list[Message] = [{"type": "http.request", "body": request.body, "more_body": False}]

    async def receive() -> Message:
        if received:
            return received.pop()
        # The end of the block cancels it.
        await asyncio.Event().wait()
        raise AssertionError

    async def run() -> None:
        try:
            await app(_scope(request), receive, sent.put)
        except Exception:
            await sent.put(None)
            raise
        # Not if it is cancelled: nobody takes anything then.
        await sent.put(None)

    running = asyncio.create_task(run())
    try:
        head = await sent.get()
        if head is None:
            await running
            raise RuntimeError("The application has not responded.")
        yield InnerResponse(head["status"], _pieces(sent))
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _pieces(sent: asyncio.Queue[Message | None]) -> AsyncIterator[bytes]:
    while (message := await sent.get()) is not None:
        if message["type"] != "http.response.body":
            continue
        if message.get("body"):
            yield message["body"]
        if not message.get("more_body"):
            return


def _scope(request: InnerRequest) -> Scope:
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in request.headers.items()]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "2",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": quote(request.path).encode(),
        "query_string": request.query.encode(),
        "root_path": "",
        "headers": headers,
        "client": request.client,
        "server": None,
        "state": {},
        BINDING: request.binding,
    }
