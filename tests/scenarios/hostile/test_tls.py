"""TLS that cannot be trusted: nothing is sent."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.base import TransportError
from trunkline.transports.https import HttpTransport

# Nothing here has a store or a broker.
pytestmark = pytest.mark.embedded_only

LOOPBACK = AddressPolicy(allow_loopback=True)
AMPLE = 60.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def certificate(folder: Path, address: str = "127.0.0.1", *, valid: timedelta = timedelta(days=1)) -> Path:
    """A self-signed certificate and its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "agent")])
    start = datetime.now(UTC) - timedelta(days=2)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(datetime.now(UTC) + valid)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "agent.pem"
    file.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return file


class Agent:
    def __init__(self) -> None:
        self.requests = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A caller that does not trust us goes away.
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while True:
                await reader.readuntil(b"{}")
                self.requests += 1
                writer.write(OK)
        writer.close()


@asynccontextmanager
async def running(certificate_file: Path | None) -> AsyncGenerator[Agent]:
    agent = Agent()
    context = None
    if certificate_file is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate_file)
    server = await asyncio.start_server(agent.serve, "127.0.0.1", 0, ssl=context)
    agent.port = server.sockets[0].getsockname()[1]
    try:
        yield agent
    finally:
        server.close()


def refused(certificate_file: Path | None, trusted: ssl.SSLContext | None = None) -> TransportError:
    async def main() -> TransportError:
        async with (
            running(certificate_file) as agent,
            HttpTransport(LOOPBACK, ssl_context=trusted) as transport,
        ):
            with pytest.raises(TransportError) as caught:
                await transport.post(f"https://127.0.0.1:{agent.port}/", b"{}", {}, AMPLE)
            assert agent.requests == 0
            return caught.value

    error = uvloop.run(main())
    assert not error.sent
    return error


def test_a_server_with_a_trusted_certificate_is_called_and_its_connection_reused(tmp_path: Path) -> None:
    file = certificate(tmp_path)

    async def main() -> None:
        trusted = ssl.create_default_context(cafile=file)
        async with running(file) as agent, HttpTransport(LOOPBACK, ssl_context=trusted) as transport:
            for _ in range(3):
                answer = await transport.post(f"https://127.0.0.1:{agent.port}/", b"{}", {}, AMPLE)
                assert (answer.status, answer.body) == (200, b"{}")

    uvloop.run(main())


def test_a_self_signed_certificate_is_refused(tmp_path: Path) -> None:
    error = refused(certificate(tmp_path))
    assert error.code == "agent_tls_failed"
    assert "certificate" in error.message


def test_a_certificate_for_another_host_is_refused(tmp_path: Path) -> None:
    file = certificate(tmp_path, address="127.0.0.2")
    assert refused(file, ssl.create_default_context(cafile=file)).code == "agent_tls_failed"


def test_a_certificate_that_has_run_out_is_refused(tmp_path: Path) -> None:
    file = certificate(tmp_path, valid=-timedelta(days=1))
    assert refused(file, ssl.create_default_context(cafile=file)).code == "agent_tls_failed"


def test_plain_http_under_an_https_url_is_a_tls_failure() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        async with server, HttpTransport(LOOPBACK) as transport:
            with pytest.raises(TransportError) as caught:
                await transport.get(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", {}, AMPLE)
        assert (caught.value.code, caught.value.sent) == ("agent_tls_failed", False)
        assert "Should the URL start with http://?" in caught.value.message

    uvloop.run(main())


def test_a_handshake_that_never_ends_was_never_sent_anything() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        async with server, HttpTransport(LOOPBACK) as transport:
            with pytest.raises(TransportError) as caught:
                await transport.get(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", {}, 0.3)
        assert (caught.value.code, caught.value.sent) == ("agent_unreachable", False)

    uvloop.run(main())


def test_a_handshake_that_is_cut_was_never_sent_anything(tmp_path: Path) -> None:
    async def cutting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    async def main() -> None:
        server = await asyncio.start_server(cutting, "127.0.0.1", 0)
        async with server, HttpTransport(LOOPBACK) as transport:
            with pytest.raises(TransportError) as caught:
                await transport.get(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", {}, AMPLE)
        assert not caught.value.sent

    uvloop.run(main())
