"""Requests to our own application: their responses come in pieces, and end with their callers."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from trunkline.publishing.grpc_binding.asgi_calls import BINDING, InnerRequest, answered

pytestmark = pytest.mark.anyio

REQUEST = InnerRequest(
    method="POST",
    path="/a2a/workflows/a b/message:send",
    query="n=1",
    headers={"A2A-Version": "1.0"},
    body=b"{}",
    client=("127.0.0.1", 5000),
    scheme="http",
    binding="GRPC",
)


async def test_the_application_gets_the_request_as_from_a_connection() -> None:
    seen: list[object] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend([scope["path"], scope["raw_path"], scope["headers"], scope[BINDING], await receive()])
        await send({"type": "http.response.start", "status": 201, "headers": []})
        for piece in (b"one, ", b"two"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async with answered(app, REQUEST) as response:
        assert (response.status, await response.body()) == (201, b"one, two")
    assert seen == [
        "/a2a/workflows/a b/message:send",
        b"/a2a/workflows/a%20b/message%3Asend",
        [(b"a2a-version", b"1.0")],
        "GRPC",
        {"type": "http.request", "body": b"{}", "more_body": False},
    ]


async def test_a_response_ends_when_its_caller_goes_away() -> None:
    was_cancelled = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": b"more", "more_body": True})
        except asyncio.CancelledError:
            was_cancelled.set()
            raise

    async with answered(app, REQUEST) as response:
        assert await anext(response.pieces) == b"more"
    assert was_cancelled.is_set()


async def test_an_application_that_fails_before_it_responds_fails_the_call() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        async with answered(app, REQUEST):
            pass
