"""Answers that are read as they come, from agents that end them well and from agents that do not."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct

import pytest
import uvloop
from tests.scenarios.hostile.agents import (
    LOOPBACK,
    ConnectionScript,
    RawAgent,
    answers,
    endless,
    good,
    running,
    silent,
)

from trunkline.transports.base import StreamLimits, TransportError
from trunkline.transports.https import HttpTransport

# Nothing here has a store or a broker.
pytestmark = pytest.mark.embedded_only

# Long enough for any machine: only a hang reaches it.
AMPLE = 60.0
SHORT = 0.3
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
EVENTS = b'data: {"n":1}\n\n', b'data: {"n":2}\n\n'
WHOLE = CHUNKED + b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in EVENTS) + b"0\r\n\r\n"


def limits(
    first: float = AMPLE, idle: float = AMPLE, total: float = AMPLE, size: int = 1_000_000
) -> StreamLimits:
    return StreamLimits(first_seconds=first, idle_seconds=idle, total_seconds=total, total_bytes=size)


async def read(
    transport: HttpTransport, url: str, given: StreamLimits, body: bytes | None = b"{}"
) -> tuple[bytes, TransportError | None]:
    """What came, and how it broke off if it did."""
    came = bytearray()
    try:
        async with transport.stream(url, body, {"Accept": "text/event-stream"}, given) as answer:
            async for chunk in answer.chunks():
                came += chunk
    except TransportError as exc:
        return bytes(came), exc
    return bytes(came), None


def read_from(
    script: ConnectionScript, given: StreamLimits | None = None
) -> tuple[bytes, TransportError | None]:
    """What a stream of such an agent gives; the same transport works afterwards."""

    async def main() -> tuple[bytes, TransportError | None]:
        async with running(script) as agent, HttpTransport(LOOPBACK) as transport:
            found = await read(transport, agent.url, given or limits())
            agent.script = good
            assert await read(transport, agent.url, limits()) == (b'{"ok":true}', None)
            return found

    return uvloop.run(main())


def error_of(script: ConnectionScript, given: StreamLimits | None = None) -> TransportError:
    _, error = read_from(script, given)
    assert error is not None
    return error


async def opened_and_left(transport: HttpTransport, url: str) -> None:
    async with transport.stream(url, None, {}, limits()) as answer:
        async for _ in answer.chunks():
            break


@pytest.mark.parametrize(
    "script",
    [
        answers(WHOLE),
        answers(*(WHOLE[at : at + 1] for at in range(len(WHOLE)))),
        answers(HEAD + b"Content-Length: %d\r\n\r\n" % sum(map(len, EVENTS)), *EVENTS),
        answers(HEAD + b"Connection: close\r\n\r\n", *EVENTS),
        answers(b"HTTP/1.1 103 Early Hints\r\n\r\n" + WHOLE),
    ],
    ids=["chunked", "byte by byte", "with a length", "until the close", "after an interim answer"],
)
def test_a_stream_that_ends_properly_is_read_to_its_end(script: ConnectionScript) -> None:
    assert read_from(script) == (b"".join(EVENTS), None)


def test_pieces_are_given_on_as_they_come() -> None:
    async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agent.request(reader)
        writer.write(CHUNKED + b"d\r\ndata: first\n\n\r\n")
        await go_on.wait()
        writer.write(b"e\r\ndata: second\n\n\r\n0\r\n\r\n")

    go_on = asyncio.Event()

    async def main() -> list[bytes]:
        pieces: list[bytes] = []
        async with (
            running(script) as agent,
            HttpTransport(LOOPBACK) as transport,
            transport.stream(agent.url, b"{}", {}, limits()) as answer,
        ):
            assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
            async for chunk in answer.chunks():
                pieces.append(chunk)
                go_on.set()
        return pieces

    assert uvloop.run(main()) == [b"data: first\n\n", b"data: second\n\n"]


def test_without_a_body_it_is_a_get() -> None:
    async def main() -> None:
        async with running(answers(WHOLE)) as agent, HttpTransport(LOOPBACK) as transport:
            await read(transport, agent.url, limits(), body=None)
            await read(transport, agent.url, limits(), body=b"{}")
            assert agent.requests[0].startswith(b"GET /agent HTTP/1.1\r\n")
            assert b"Accept-Encoding: identity\r\n" in agent.requests[0]
            assert b"content-length" not in agent.requests[0].lower()
            assert agent.requests[1].endswith(b"Content-Length: 2\r\n\r\n{}")

    uvloop.run(main())


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_a_close_at_any_byte_is_a_lost_connection(length: int) -> None:
    came, error = read_from(answers(WHOLE[:length]))
    assert error is not None
    assert (error.code, error.sent) == ("agent_connection_lost", True)
    assert b"".join(EVENTS).startswith(came)
    if came:
        assert error.partial is not None
        assert (error.partial.status, error.partial.body) == (200, came)


@pytest.mark.parametrize("start", [HEAD + b"Connection: close\r\n\r\n", HEAD + b"Content-Length: 9\r\n\r\n"])
def test_a_reset_in_the_middle_is_a_lost_connection(start: bytes) -> None:
    async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agent.request(reader)
        writer.write(start + b"data: ")
        await writer.drain()
        # The close is a reset then.
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    found = error_of(script)
    assert (found.code, found.sent) == ("agent_connection_lost", True)


@pytest.mark.parametrize("rest", [b"zz\r\nhello\r\n", b"-1\r\n", b"ffffffffffffffffff\r\n", b"5\r\nhelloXX"])
def test_a_broken_chunk_is_an_error_though_the_connection_stays_open(rest: bytes) -> None:
    async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agent.request(reader)
        writer.write(CHUNKED + b"2\r\n: \r\n")
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(rest)
        await reader.read()

    assert error_of(script).code in {"agent_connection_lost", "agent_answer_malformed"}


@pytest.mark.parametrize("length", [1, 13])
def test_a_length_that_is_too_short_ends_the_stream_and_the_connection(length: int) -> None:
    """What comes after it is never taken for the answer to the next request."""
    came, error = read_from(answers(HEAD + b"Content-Length: %d\r\n\r\n" % length + b"".join(EVENTS)))
    assert error is None or error.code == "agent_answer_malformed"
    assert len(came) <= length


def test_a_length_that_is_too_long_is_a_lost_connection() -> None:
    assert error_of(answers(HEAD + b"Content-Length: 999\r\n\r\n", *EVENTS)).code == "agent_connection_lost"


def test_what_comes_after_the_end_never_answers_the_next_request() -> None:
    async def main() -> None:
        async with running(answers(WHOLE + WHOLE)) as agent, HttpTransport(LOOPBACK) as transport:
            for _ in range(3):
                came, error = await read(transport, agent.url, limits())
                assert came in {b"".join(EVENTS), b""}
                assert error is None or error.code == "agent_answer_malformed"
            assert agent.connections == 3

    uvloop.run(main())


@pytest.mark.parametrize("encoding", [b"gzip", b"br", b"deflate, gzip", b"GZIP"])
def test_a_compressed_stream_is_refused_unread(encoding: bytes) -> None:
    bomb = gzip.compress(bytes(5_000_000))
    head = HEAD + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (encoding, len(bomb))
    came, error = read_from(answers(head, bomb))
    assert error is not None
    assert (came, error.code) == (b"", "agent_answer_compressed")
    assert error.partial is not None
    assert error.partial.headers["content-encoding"].encode() == encoding


def test_identity_is_no_compression() -> None:
    assert (
        read_from(answers(WHOLE.replace(b"\r\n\r\n", b"\r\nContent-Encoding: identity\r\n\r\n", 1)))[1]
        is None
    )


def test_a_stream_announced_too_long_is_not_read() -> None:
    came, error = read_from(answers(HEAD + b"Content-Length: 1001\r\n\r\n" + bytes(1001)), limits(size=1_000))
    assert error is not None
    assert (came, error.code) == (b"", "agent_answer_too_large")


@pytest.mark.parametrize("start", [CHUNKED, HEAD + b"\r\n"])
def test_an_endless_line_ends_at_the_limit(start: bytes) -> None:
    piece = b"8000\r\n" + b"x" * 0x8000 + b"\r\n" if start == CHUNKED else b"x" * 0x8000
    came, error = read_from(endless(start, piece), limits(size=200_000))
    assert error is not None
    assert error.code == "agent_answer_too_large"
    assert len(came) <= 200_000
    # The record keeps the beginning, not all of it.
    assert error.partial is not None
    assert len(error.partial.body) == 64 * 1024


def test_one_byte_after_the_other_ends_when_the_time_is_up() -> None:
    found = error_of(endless(CHUNKED, b"1\r\n:\r\n", pause=0.02), limits(total=SHORT))
    assert found.code == "agent_timeout"
    assert found.message == "The agent did not answer within 0.3 s."
    assert found.partial is not None


def test_silence_in_a_stream_ends_it() -> None:
    async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agent.request(reader)
        writer.write(CHUNKED + b"2\r\n: \r\n")
        await reader.read()

    came, error = read_from(script, limits(idle=SHORT))
    assert came == b": "
    assert error is not None
    assert (error.code, error.message) == ("agent_timeout", "The agent's stream was silent for 0.3 s.")


@pytest.mark.parametrize(("first", "total"), [(SHORT, AMPLE), (AMPLE, SHORT)])
def test_a_head_that_does_not_come_ends_the_wait(first: float, total: float) -> None:
    for script in (silent, endless(b"HTTP/1.1 200 OK\r\nX: ", b"y", pause=0.02)):
        found = error_of(script, limits(first=first, total=total))
        assert (found.code, found.sent, found.partial) == ("agent_timeout", True, None)


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        HEAD + b"X: " + b"x" * 100_000 + b"\r\n\r\n",
        HEAD + b"X: y\r\n" * 10_000 + b"\r\n",
    ],
)
def test_what_is_not_http_is_malformed(garbage: bytes) -> None:
    assert error_of(answers(garbage)).code == "agent_answer_malformed"


def test_a_redirect_is_an_answer_and_leads_nowhere() -> None:
    async def main() -> None:
        async with running(good) as target, HttpTransport(LOOPBACK) as transport:
            moved = b"HTTP/1.1 307 Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % target.url.encode()
            async with (
                running(answers(moved)) as agent,
                transport.stream(agent.url, b"{}", {}, limits()) as answer,
            ):
                assert (answer.status, [chunk async for chunk in answer.chunks()]) == (307, [])
            assert target.connections == 0

    uvloop.run(main())


def test_a_stream_that_is_left_in_the_middle_closes_its_connection() -> None:
    async def main() -> None:
        async with running(endless(CHUNKED, b"1\r\n:\r\n")) as agent, HttpTransport(LOOPBACK) as transport:
            await opened_and_left(transport, agent.url)
            await agent.left.wait()

    uvloop.run(main())


def test_a_stream_that_was_read_to_its_end_leaves_its_connection_to_the_next() -> None:
    async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await agent.request(reader)
            writer.write(WHOLE)

    async def main() -> None:
        async with running(script) as agent, HttpTransport(LOOPBACK) as transport:
            for _ in range(3):
                assert (await read(transport, agent.url, limits()))[1] is None
            assert agent.connections == 1
            await opened_and_left(transport, agent.url)
            assert (await read(transport, agent.url, limits()))[1] is None

    uvloop.run(main())


@pytest.mark.parametrize("script", [silent, endless(CHUNKED, b"1\r\n:\r\n", pause=0.01)])
def test_cancelling_closes_the_connection_at_once(script: ConnectionScript) -> None:
    async def main() -> None:
        async with running(script) as agent, HttpTransport(LOOPBACK) as transport:
            reading = asyncio.create_task(read(transport, agent.url, limits()))
            while not agent.requests:
                await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await agent.left.wait()

    uvloop.run(main())


def test_an_error_of_the_listener_is_its_own_and_closes_the_connection() -> None:
    async def main() -> None:
        async with running(endless(CHUNKED, b"1\r\n:\r\n")) as agent, HttpTransport(LOOPBACK) as transport:
            with pytest.raises(OSError, match="disk full"):
                async with transport.stream(agent.url, b"{}", {}, limits()):
                    raise OSError("disk full")
            await agent.left.wait()

    uvloop.run(main())
