"""Each agent is known by its own authority, and knows us by the certificate that was given for it alone."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import pytest
import uvloop
from tests.certificates import made
from tests.scenarios.hostile.agents import LOOPBACK, OK, RawAgent, running

from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.transports.base import StreamLimits, TransportError
from trunkline.transports.https import HttpTransport

# Nothing here has a store or a broker.
pytestmark = pytest.mark.embedded_only

AMPLE = 60.0
LIMITS = StreamLimits(first_seconds=AMPLE, idle_seconds=AMPLE, total_seconds=AMPLE, total_bytes=1_000)
ROOT = made("root")
SERVER = made("server", signed_by=ROOT)
FIRST, SECOND = made("first", signed_by=ROOT), made("second", signed_by=ROOT)


def server_context(folder: Path, *, asks: bool) -> ssl.SSLContext:
    file = folder / "server.pem"
    file.write_text("".join(SERVER))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    if asks:
        context.load_verify_locations(cadata=ROOT[0])
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def shown_by(pair: tuple[str, str]) -> TlsConfig:
    return TlsConfig(authority=ROOT[0], certificate=pair[0], key=pair[1])


class Callers:
    """Who each request came from, as the connection says."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def script(
        self, agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        certificate = writer.get_extra_info("peercert")
        while True:
            await agent.request(reader)
            self.names.append(certificate["subject"][0][0][1] if certificate else "nobody")
            writer.write(OK)


async def stream(transport: HttpTransport, url: str, tls: TlsConfig) -> bytes:
    async with transport.stream(url, b"{}", {}, LIMITS, tls) as answer:
        return b"".join([chunk async for chunk in answer.chunks()])


def test_an_agent_is_known_by_its_own_authority_and_only_by_it(tmp_path: Path) -> None:
    async def main() -> None:
        callers = Callers()
        context = server_context(tmp_path, asks=False)
        async with running(callers.script, context) as agent, HttpTransport(LOOPBACK) as transport:
            answer = await transport.get(agent.url, {}, AMPLE, TlsConfig(authority=ROOT[0]))
            assert answer.status == 200
            for tls in (
                None,
                TlsConfig(authority=made("another")[0]),
                TlsConfig(certificate=FIRST[0], key=FIRST[1]),
            ):
                with pytest.raises(TransportError) as caught:
                    await transport.get(agent.url, {}, AMPLE, tls)
                assert (caught.value.code, caught.value.sent) == ("agent_tls_failed", False)
        assert callers.names == ["nobody"]

    uvloop.run(main())


def test_a_connection_made_with_one_agents_certificate_is_never_used_for_another(tmp_path: Path) -> None:
    async def main() -> None:
        callers = Callers()
        context = server_context(tmp_path, asks=True)
        async with running(callers.script, context) as agent, HttpTransport(LOOPBACK) as transport:
            first, second = shown_by(FIRST), shown_by(SECOND)
            for tls in (first, second, first, second):
                await transport.post(agent.url, b"{}", {}, AMPLE, tls)
                await stream(transport, agent.url, tls)
            # An equal one, made anew, is the same agent's.
            await transport.get(agent.url, {}, AMPLE, shown_by(FIRST))
            assert agent.connections == 2
        assert callers.names == ["first", "first", "second", "second"] * 2 + ["first"]

    uvloop.run(main())


def test_calls_of_two_agents_at_once_are_never_mixed_up(tmp_path: Path) -> None:
    async def main() -> None:
        context = server_context(tmp_path, asks=True)
        wrong: list[str] = []

        async def script(agent: RawAgent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            name = writer.get_extra_info("peercert")["subject"][0][0][1]
            while True:
                await agent.request(reader)
                if f"X-Who: {name}".encode() not in agent.requests.pop():
                    wrong.append(name)
                writer.write(OK)

        async with running(script, context) as agent, HttpTransport(LOOPBACK) as transport:
            pairs = {"first": shown_by(FIRST), "second": shown_by(SECOND)}
            for _ in range(10):
                await asyncio.gather(
                    *(
                        transport.post(agent.url, b"{}", {"X-Who": name}, AMPLE, tls)
                        for name, tls in pairs.items()
                        for _ in range(5)
                    )
                )
        assert wrong == []

    uvloop.run(main())


def refuse_one(listener: socket.socket, context: ssl.SSLContext) -> None:
    """A server that says why, as most do; asyncio's hangs up without a word."""
    connection = context.wrap_socket(listener.accept()[0], server_side=True, do_handshake_on_connect=False)
    with pytest.raises(ssl.SSLError):
        connection.do_handshake()
    with socket.socket(fileno=connection.detach()) as plain:
        plain.shutdown(socket.SHUT_WR)
        while plain.recv(4_096):
            pass


@pytest.mark.parametrize("tls", [TlsConfig(authority=ROOT[0]), shown_by(made("stranger"))])
def test_an_agent_that_does_not_accept_our_certificate_has_read_nothing(
    tmp_path: Path, tls: TlsConfig
) -> None:
    async def main() -> TransportError:
        context = server_context(tmp_path, asks=True)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            refusing = asyncio.create_task(asyncio.to_thread(refuse_one, listener, context))
            async with HttpTransport(LOOPBACK) as transport:
                with pytest.raises(TransportError) as caught:
                    await transport.post(
                        f"https://127.0.0.1:{listener.getsockname()[1]}/", b"{}", {}, AMPLE, tls
                    )
            await refusing
        return caught.value

    error = uvloop.run(main())
    assert (error.code, error.sent) == ("agent_tls_failed", False)
    assert "the agent rejected our certificate" in error.message


def test_the_key_is_on_no_disk_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def main() -> None:
        async with HttpTransport(LOOPBACK) as transport:
            with pytest.raises(TransportError):
                await transport.get("https://127.0.0.1:9/", {}, AMPLE, shown_by(FIRST))
        assert list(tmp_path.iterdir()) == []

    uvloop.run(main())


def test_what_cannot_be_used_is_said_without_its_content() -> None:
    async def main() -> TransportError:
        async with HttpTransport(LOOPBACK) as transport:
            with pytest.raises(TransportError) as caught:
                await transport.get("https://127.0.0.1:9/", {}, AMPLE, TlsConfig(authority="not PEM"))
            return caught.value

    error = uvloop.run(main())
    assert (error.code, error.sent) == ("agent_secret_unreadable", False)
    assert "not PEM" not in error.message
