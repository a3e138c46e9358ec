"""A connection that sends no request, no HTTP, or too much of it is refused with a problem, and lets go of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.api.server import ApiConnection, listen, serving
from trunkline.serving import ConnectionLimits

# Nothing here has a store or a broker.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

HEAD = b"POST /echo HTTP/1.1\r\nHost: x\r\n"
WHOLE = HEAD + b"Content-Length: 2\r\n\r\nhi"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await Response(body)(scope, receive, send)


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(b"no", 413)(scope, receive, send)


class ImpatientClient(ApiConnection):
    """Limits that a test can wait for."""

    head_seconds = 0.01
    body_seconds = 0.01


@asynccontextmanager
async def connected(
    kind: type[ApiConnection] = ApiConnection, app: ASGIApp = echo
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    with listen("127.0.0.1", 0) as listener:
        async with serving(app, listener, kind):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            try:
                yield reader, writer
            finally:
                writer.close()


async def all_that_comes(reader: asyncio.StreamReader) -> bytes:
    """Returns when the server has ended the connection."""
    return await asyncio.wait_for(reader.read(), 60)


def assert_problem(answer: bytes, status: int) -> None:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    assert first.startswith(f"HTTP/1.1 {status} "), answer
    assert headers["content-type"] == "application/problem+json"
    problem = json.loads(body)
    assert problem["status"] == status
    assert problem["detail"]
    assert problem["fix"]
    assert problem["correlation_id"] == headers["x-correlation-id"]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x00\x01garbage\r\n\r\n",
        b"FROB /echo HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        HEAD + b"Content-Length: -5\r\n\r\n",
        HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
        HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhi\r\n",
    ],
)
async def test_what_is_no_http_is_answered_with_a_problem(request_bytes: bytes) -> None:
    async with connected() as (reader, writer):
        writer.write(request_bytes)
        assert_problem(await all_that_comes(reader), 400)


async def test_headers_without_end_are_refused_before_they_fill_the_memory() -> None:
    async with connected() as (reader, writer):
        writer.write(HEAD)
        for _ in range(100):
            writer.write(b"X-Long: " + b"a" * 1_000 + b"\r\n")
        assert_problem(await all_that_comes(reader), 431)


async def test_a_large_head_that_comes_at_once_is_refused_too() -> None:
    async with connected() as (reader, writer):
        writer.write(HEAD + b"X-Long: " + b"a" * 70_000 + b"\r\nContent-Length: 2\r\n\r\nhi" + WHOLE)
        assert_problem(await all_that_comes(reader), 431)


async def test_a_large_body_behind_a_small_head_is_none_of_its_business() -> None:
    body = b"b" * 1_000_000
    async with connected() as (reader, writer):
        writer.write(HEAD + b"Connection: close\r\nContent-Length: 1000000\r\n\r\n" + body)
        assert (await all_that_comes(reader)).endswith(b"\r\n\r\n" + body)


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
async def test_who_is_refused_before_all_is_sent_sees_the_answer_where_it_ends_the_connection(
    version: bytes,
) -> None:
    body = b"b" * 9_000_000
    async with connected(app=refuse) as (reader, writer):
        head = HEAD.replace(b"1.1", version) + b"Connection: close\r\nContent-Length: 9000000\r\n\r\n"
        writer.write(head + body)
        await writer.drain()
        answer = await all_that_comes(reader)
        assert answer.startswith(b"HTTP/1.1 413 "), answer
        assert answer.endswith(b"\r\n\r\nno"), answer


async def test_who_is_refused_and_does_not_go_on_is_let_go_of() -> None:
    async with connected(ImpatientClient, refuse) as (reader, writer):
        writer.write(HEAD + b"Connection: close\r\nContent-Length: 9000000\r\n\r\nb")
        assert (await all_that_comes(reader)).endswith(b"\r\n\r\nno")


@pytest.mark.parametrize(
    "beginning",
    [b"POST /ec", HEAD, HEAD + b"Content-Length: 5\r\n\r\n", HEAD + b"Content-Length: 5\r\n\r\nhi"],
)
async def test_a_request_that_does_not_end_is_given_up(beginning: bytes) -> None:
    async with connected(ImpatientClient) as (reader, writer):
        writer.write(beginning)
        assert_problem(await all_that_comes(reader), 408)


async def test_a_connection_on_which_nothing_is_asked_is_closed() -> None:
    class SmallLimits(ApiConnection):
        idle_seconds = 0.01

    async with connected(SmallLimits) as (reader, _):
        assert await all_that_comes(reader) == b""


async def test_a_second_request_that_does_not_end_is_given_up_after_the_first_was_answered() -> None:
    async with connected(ImpatientClient) as (reader, writer):
        writer.write(WHOLE)
        assert (await reader.readuntil(b"\r\n\r\nhi")).startswith(b"HTTP/1.1 200 ")
        writer.write(HEAD)
        assert_problem(await all_that_comes(reader), 408)


async def test_many_requests_are_answered_on_one_connection() -> None:
    async with connected() as (reader, writer):
        # Together more than a head may have.
        for _ in range(1_500):
            writer.write(WHOLE)
            assert (await reader.readuntil(b"\r\n\r\nhi")).startswith(b"HTTP/1.1 200 ")


async def test_a_connection_too_many_is_refused_with_a_problem_while_requests_are_in_progress() -> None:
    is_asked, may_answer = asyncio.Event(), asyncio.Event()

    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        is_asked.set()
        await may_answer.wait()
        await Response(b"done")(scope, receive, send)

    with listen("127.0.0.1", 0) as listener:
        async with serving(wait, listener, limits=ConnectionLimits(1, 1)):
            address = listener.getsockname()
            reader, writer = await asyncio.open_connection(*address)
            writer.write(WHOLE)
            await is_asked.wait()
            refused, _ = await asyncio.open_connection(*address)
            assert_problem(await all_that_comes(refused), 503)
            may_answer.set()
            assert (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200 ")
            # It has its answer, and gives way.
            later, asking = await asyncio.open_connection(*address)
            asking.write(WHOLE)
            assert (await later.readuntil(b"done")).startswith(b"HTTP/1.1 200 ")
            assert await all_that_comes(reader) == b""
            for each in (writer, asking):
                each.close()
