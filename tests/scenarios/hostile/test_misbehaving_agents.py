"""Agents that break every rule, on real sockets: each gives its documented error, and the door stays open."""

from __future__ import annotations

import asyncio
import gzip
import socket

import pytest
import uvloop
from tests.scenarios.hostile.agents import (
    LOOPBACK,
    OK,
    ConnectionScript,
    RawAgent,
    answers,
    endless,
    good,
    running,
    silent,
)

from trunkline.protocols.base import AgentAnswer
from trunkline.transports.base import TransportError
from trunkline.transports.https import HttpTransport

# Nothing here has a store or a broker.
pytestmark = pytest.mark.embedded_only

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
# Long enough for any machine: only a hang reaches it.
AMPLE = 60.0
SHORT = 0.3


async def refusing(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Closes as soon as it is connected."""


async def call(transport: HttpTransport, url: str, timeout: float = AMPLE) -> AgentAnswer | TransportError:
    try:
        return await transport.post(url, b"{}", JSON, timeout)
    except TransportError as exc:
        return exc


def outcome(
    script: ConnectionScript, timeout: float = AMPLE, max_answer_bytes: int = 1_000_000
) -> AgentAnswer | TransportError:
    """What a call of such an agent ends with; the same transport works afterwards."""

    async def main() -> AgentAnswer | TransportError:
        async with (
            running(script) as agent,
            HttpTransport(LOOPBACK, max_answer_bytes=max_answer_bytes) as transport,
        ):
            result = await call(transport, agent.url, timeout)
            agent.script = good
            again = await call(transport, agent.url)
            if isinstance(again, TransportError) and again.code == "agent_connection_lost":
                # It met the close of the connection that the first call left: no client can rule that out.
                again = await call(transport, agent.url)
            assert isinstance(again, AgentAnswer), again
            return result

    return uvloop.run(main())


def error(
    script: ConnectionScript, timeout: float = AMPLE, max_answer_bytes: int = 1_000_000
) -> TransportError:
    result = outcome(script, timeout, max_answer_bytes)
    assert isinstance(result, TransportError), result
    return result


def answer(script: ConnectionScript) -> AgentAnswer:
    result = outcome(script)
    assert isinstance(result, AgentAnswer), result
    return result


def test_html_is_carried_as_it_is() -> None:
    page = b"<html>502</html>"
    found = answer(
        answers(b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 16\r\n\r\n" + page)
    )
    assert (found.status, found.headers["content-type"], found.body) == (502, "text/html", page)


def test_an_empty_body_is_an_answer() -> None:
    assert answer(answers(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")).body == b""
    assert answer(answers(b"HTTP/1.1 204 No Content\r\n\r\n")).status == 204


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    assert answer(answers(b"HTTP/1.1 200 OK\r\n\r\n", b'{"a":', b"1}")).body == b'{"a":1}'


def test_a_chunked_body_is_put_together() -> None:
    found = answer(
        answers(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"2\r\n{}\r\n",
            b"1\r\n \r\n",
            b"0\r\n\r\n",
        )
    )
    assert found.body == b"{} "


def test_interim_answers_are_passed_over() -> None:
    assert (
        answer(
            answers(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n", OK)
        ).status
        == 200
    )


def test_repeated_headers_are_joined_and_odd_bytes_survive() -> None:
    found = answer(
        answers(b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\nX-B: \xff\xe9\r\nContent-Length: 0\r\n\r\n")
    )
    assert found.headers["x-a"] == "1, 2"
    assert found.headers["x-b"].encode("latin-1") == b"\xff\xe9"


def test_a_body_shorter_than_its_length_is_a_lost_connection() -> None:
    found = error(answers(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"half":'))
    assert found.code == "agent_connection_lost"
    assert found.sent
    assert found.partial is not None
    assert found.partial.body == b'{"half":'


def test_bytes_beyond_the_length_never_become_the_next_answer() -> None:
    smuggled = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"

    async def main() -> None:
        async with running(answers(OK + smuggled)) as agent, HttpTransport(LOOPBACK) as transport:
            for _ in range(3):
                result = await call(transport, agent.url)
                assert isinstance(result, AgentAnswer)
                assert result.body == b'{"ok":true}'
            assert agent.connections == 3

    uvloop.run(main())


def test_an_unsolicited_answer_never_answers_the_next_request() -> None:
    async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agent.request(reader)
        writer.write(OK)
        await go_on.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL")
        await writer.drain()
        written.set()
        await reader.read()

    go_on, written = asyncio.Event(), asyncio.Event()

    async def main() -> None:
        async with running(script) as agent, HttpTransport(LOOPBACK) as transport:
            await call(transport, agent.url)
            go_on.set()
            await written.wait()
            agent.script = good
            result = await call(transport, agent.url)
            assert isinstance(result, AgentAnswer)
            assert result.body == b'{"ok":true}'
            assert agent.connections == 2

    uvloop.run(main())


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nbroken header\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
    ],
)
def test_what_is_not_http_is_malformed(garbage: bytes) -> None:
    assert error(answers(garbage)).code == "agent_answer_malformed"


def test_an_error_does_not_repeat_what_the_agent_wrote() -> None:
    for garbage in (b"token-of-yours\r\n\r\n", OK + b"token-of-yours", b"HTTP/1.1 \"token-of-yours'\r\n\r\n"):
        found = error(answers(garbage))
        assert found.message.startswith("The agent's answer is not HTTP: Bad status line")
        assert "token" not in found.message


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "1\r\nX-B: 2"},
        {"X-A": "1\n"},
        {"X\r": "1"},
        {"X-A": "\0"},
        {"Content-Length": "0"},
        {"HOST": "x"},
    ],
)
def test_a_header_that_would_break_the_request_is_not_sent(headers: dict[str, str]) -> None:
    async def main() -> None:
        async with running(good) as agent, HttpTransport(LOOPBACK) as transport:
            with pytest.raises(TransportError) as caught:
                await transport.post(agent.url, b"{}", headers, AMPLE)
            assert (caught.value.code, caught.value.sent) == ("request_not_encodable", False)
            assert agent.connections == 0

    uvloop.run(main())


def test_endless_headers_end() -> None:
    assert (
        error(endless(b"HTTP/1.1 200 OK\r\n", b"X-Filler: aaaaaaaaaaaaaaaa\r\n")).code
        == "agent_answer_malformed"
    )


def test_a_broken_chunk_is_not_waited_for() -> None:
    found = error(
        answers(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"2\r\n{}\r\n", b"zz\r\nhello\r\n")
    )
    assert found.code in {"agent_connection_lost", "agent_answer_malformed"}


def test_a_broken_chunk_on_an_open_connection_is_not_waited_for() -> None:
    async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agent.request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.write(b"zz\r\nhello\r\n")
        await reader.read()

    assert error(script).code in {"agent_connection_lost", "agent_answer_malformed"}


def test_an_answer_announced_too_large_is_not_read() -> None:
    found = error(answers(b"HTTP/1.1 200 OK\r\nContent-Length: 20000000\r\n\r\n"))
    assert found.code == "agent_answer_too_large"


def test_an_answer_that_grows_too_large_is_cut() -> None:
    found = error(endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65_536))
    assert found.code == "agent_answer_too_large"
    assert found.partial is not None
    assert 1_000_000 < len(found.partial.body) < 3_000_000


def test_twenty_megabytes_are_over_the_usual_limit() -> None:
    body = b"x" * 20_000_000
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert error(answers(head, b"%x\r\n" % len(body), body), max_answer_bytes=16_777_216).code == (
        "agent_answer_too_large"
    )


def test_a_gzip_bomb_stays_compressed() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    found = answer(answers(head + bomb))
    assert found.headers["content-encoding"] == "gzip"
    assert found.body == bomb


@pytest.mark.parametrize(
    "start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "]
)
def test_one_byte_at_a_time_ends_at_the_deadline(start: bytes) -> None:
    assert error(endless(start, b"1" if start else b"H", pause=0.02), timeout=SHORT).code in {
        "agent_timeout",
        "agent_answer_malformed",
    }


def test_silence_ends_at_the_deadline_as_sent_without_answer() -> None:
    found = error(silent, timeout=SHORT)
    assert found.code == "agent_timeout"
    assert found.sent


@pytest.mark.parametrize("length", [0, 1, 12, 17, 20, 37])
def test_a_close_before_the_body_is_a_lost_connection(length: int) -> None:
    found = error(answers(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n"[:length]))
    assert found.code == "agent_connection_lost"
    assert found.sent


def test_a_close_at_accept_is_a_lost_connection() -> None:
    assert error(refusing).code == "agent_connection_lost"


def test_a_reset_is_a_lost_connection() -> None:
    async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agent.request(reader)
        writer.transport.abort()

    assert error(script).code == "agent_connection_lost"


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_reused_connection_that_closes_loses_the_request_and_sends_it_once(method: str) -> None:
    async def one_answer(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agent.request(reader)
        writer.write(OK)
        await agent.request(reader)

    async def main() -> None:
        async with running(one_answer) as agent, HttpTransport(LOOPBACK) as transport:
            assert isinstance(await call(transport, agent.url), AgentAnswer)
            post, get = transport.post(agent.url, b"{}", JSON, AMPLE), transport.get(agent.url, JSON, AMPLE)
            used, unused = (post, get) if method == "POST" else (get, post)
            unused.close()
            with pytest.raises(TransportError) as caught:
                await used
            assert caught.value.code == "agent_connection_lost"
            assert (agent.connections, len(agent.requests)) == (1, 2)

    uvloop.run(main())


def test_a_connection_that_closed_while_idle_is_not_used() -> None:
    async def main() -> None:
        async with running(answers(OK)) as agent, HttpTransport(LOOPBACK) as transport:
            for calls in range(1, 4):
                agent.left.clear()
                assert isinstance(await call(transport, agent.url), AgentAnswer)
                assert agent.connections == calls
                await agent.left.wait()

    uvloop.run(main())


def test_a_redirect_is_an_answer_and_leads_nowhere() -> None:
    async def main() -> None:
        async with running(good) as target, HttpTransport(LOOPBACK) as transport:
            for status in (301, 302, 303, 307, 308):
                moved = b"HTTP/1.1 %d Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n"
                async with running(answers(moved % (status, target.url.encode()))) as agent:
                    found = await call(transport, agent.url)
                    assert isinstance(found, AgentAnswer)
                    assert (found.status, found.headers["location"]) == (status, target.url)
            assert target.connections == 0

    uvloop.run(main())


def test_cookies_are_not_kept() -> None:
    async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await agent.request(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")

    async def main() -> None:
        async with running(script) as agent, HttpTransport(LOOPBACK) as transport:
            await call(transport, agent.url)
            await call(transport, agent.url)
            assert len(agent.requests) == 2
            assert b"cookie" not in agent.requests[1].lower()

    uvloop.run(main())


def test_an_agent_that_is_down_was_never_sent_anything() -> None:
    async def main() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            async with HttpTransport(LOOPBACK) as transport:
                found = await call(transport, f"http://127.0.0.1:{free.getsockname()[1]}/")
        assert isinstance(found, TransportError)
        assert found.code == "agent_unreachable"
        assert not found.sent

    uvloop.run(main())


def test_a_connection_that_is_never_accepted_was_never_sent_anything() -> None:
    async def main() -> None:
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            port = full.getsockname()[1]
            # The first connection fills the backlog; the kernel lets the next ones wait.
            with socket.create_connection(("127.0.0.1", port)):
                async with HttpTransport(LOOPBACK) as transport:
                    found = await call(transport, f"http://127.0.0.1:{port}/", timeout=SHORT)
        assert isinstance(found, TransportError)
        assert (found.code, found.sent) == ("agent_unreachable", False)
        assert "connect timed out" in found.message

    uvloop.run(main())


def test_a_name_that_does_not_exist_is_a_dns_failure() -> None:
    async def main() -> None:
        async with HttpTransport(LOOPBACK) as transport:
            found = await call(transport, "http://no-such-agent.invalid/")
        assert isinstance(found, TransportError)
        assert (found.code, found.sent) == ("agent_dns_failed", False)

    uvloop.run(main())


def test_cancelling_a_call_closes_its_connection() -> None:
    async def main() -> None:
        async with running(silent) as agent, HttpTransport(LOOPBACK) as transport:
            running_call = asyncio.create_task(call(transport, agent.url))
            while not agent.requests:
                await asyncio.sleep(0)
            running_call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running_call
            await agent.left.wait()

    uvloop.run(main())


def test_a_request_that_is_never_read_does_not_outlive_its_deadline() -> None:
    async def deaf(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()

    released = asyncio.Event()

    async def main() -> None:
        async with running(deaf) as agent, HttpTransport(LOOPBACK) as transport:
            with pytest.raises(TransportError) as caught:
                await transport.post(agent.url, bytes(30_000_000), JSON, SHORT)
            assert caught.value.code == "agent_timeout"
            released.set()

    uvloop.run(main())


def test_hundreds_of_calls_run_at_once() -> None:
    everyone = 300

    async def together(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await agent.request(reader)
        if len(agent.requests) == everyone:
            all_here.set()
        await all_here.wait()
        writer.write(OK)

    all_here = asyncio.Event()

    async def main() -> None:
        async with running(together) as agent, HttpTransport(LOOPBACK) as transport:
            results = await asyncio.gather(*(call(transport, agent.url) for _ in range(everyone)))
            assert all(isinstance(result, AgentAnswer) for result in results)

    uvloop.run(main())
