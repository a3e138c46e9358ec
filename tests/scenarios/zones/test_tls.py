"""TLS of a zone's server: who it is, and what the zone learns of a client's certificate."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvloop
from cryptography import x509
from starlette.types import Receive, Scope, Send
from tests.certificates import made, signing_key

from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.errors import ConfigurationError
from trunkline.jsontypes import Json, decode, encode
from trunkline.serving import base_url, listen, serving
from trunkline.serving.tls import ServerTls
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.base import TransportError
from trunkline.transports.https import HttpTransport
from trunkline.zones.access.client_certificates import client_names
from trunkline.zones.serving.http_server import ZoneConnection

# Nothing here has a store or a broker.
pytestmark = pytest.mark.embedded_only

AMPLE = 60.0
ROOT = made("root")
SERVER = made("server", signed_by=ROOT)
UNTRUSTED = made("verification", signed_by=made("another root"))


def files(folder: Path, **texts: str) -> list[Path]:
    for name, text in texts.items():
        (folder / f"{name}.pem").write_text(text)
    return [folder / f"{name}.pem" for name in texts]


async def names_seen(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with what a zone would learn."""
    body = encode(client_names(scope))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def server(folder: Path, *, required: bool = False, authority: bool = True) -> AsyncGenerator[str]:
    certificate, key, root = files(folder, certificate=SERVER[0], key=SERVER[1], root=ROOT[0])
    tls = ServerTls(certificate, key, root if authority else None, required=required)
    with listen("127.0.0.1", 0) as listener:
        async with serving(names_seen, listener, ZoneConnection, tls=tls):
            yield base_url(listener, "https")


async def names_of(url: str, client: tuple[str, str] | None) -> Json:
    certificate, key = client or (None, None)
    tls = TlsConfig(authority=ROOT[0], certificate=certificate, key=key)
    async with HttpTransport(AddressPolicy(allow_loopback=True)) as transport:
        answers = [await transport.post(url, b"{}", {}, AMPLE, tls) for _ in range(2)]
    first, second = (decode(answer.body) for answer in answers)
    assert first == second
    return first


@pytest.mark.parametrize(
    ("alternatives", "expected"),
    [
        ([], ["caller"]),
        ([x509.DNSName("verification.example")], ["verification.example"]),
        (
            [x509.DNSName("a.example"), x509.UniformResourceIdentifier("spiffe://zones/verification")],
            ["spiffe://zones/verification", "a.example"],
        ),
    ],
    ids=["common-name", "dns", "uri"],
)
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_zone_learns_the_names_in_a_clients_certificate(
    tmp_path: Path, run: Callable[..., Json], alternatives: list[x509.GeneralName], expected: list[str]
) -> None:
    async def ask() -> Json:
        async with server(tmp_path) as url:
            return await names_of(url, made("caller", signed_by=ROOT, alternatives=alternatives))

    assert run(ask()) == expected


@pytest.mark.anyio
async def test_a_client_without_a_certificate_has_no_names(tmp_path: Path) -> None:
    async with server(tmp_path) as url:
        assert await names_of(url, None) is None


@pytest.mark.anyio
async def test_without_an_authority_no_certificate_is_asked_for(tmp_path: Path) -> None:
    async with server(tmp_path, authority=False) as url:
        assert await names_of(url, UNTRUSTED) is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("client", "required"), [(UNTRUSTED, False), (UNTRUSTED, True), (None, True)], ids=["may", "must", "none"]
)
async def test_a_certificate_that_the_authority_has_not_signed_gets_no_connection(
    tmp_path: Path, client: tuple[str, str] | None, required: bool
) -> None:
    async with server(tmp_path, required=required) as url:
        with pytest.raises(TransportError):
            await names_of(url, client)


def test_nothing_older_than_tls_1_2_is_accepted(tmp_path: Path) -> None:
    certificate, key = files(tmp_path, certificate=SERVER[0], key=SERVER[1])
    assert ServerTls(certificate, key).context().minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.anyio
async def test_what_is_no_http_is_answered_over_tls_too(tmp_path: Path) -> None:
    async with server(tmp_path) as url:
        context = ssl.create_default_context(cadata=ROOT[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port, ssl=context)
        writer.write(b"no HTTP\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), AMPLE)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"jsonrpc":"2.0"' in answer


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    certificate, key = files(tmp_path, certificate=SERVER[0], key=SERVER[1])
    with pytest.raises(ConfigurationError, match=r"Its key in .*none.pem cannot be read: No such file"):
        ServerTls(certificate, tmp_path / "none.pem")
    (tmp_path / "der.pem").write_bytes(b"\x30\x82\xff")
    with pytest.raises(ConfigurationError, match=r"The server's certificate in .*der.pem cannot be read"):
        ServerTls(tmp_path / "der.pem", key)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            ("nothing", SERVER[1], ROOT[0]),
            r"The server's certificate in .* is not a certificate in PEM format",
        ),
        ((SERVER[0], "nothing", ROOT[0]), r"Its key in .* is not a private key in PEM format"),
        ((SERVER[0], made("other")[1], ROOT[0]), r"Its key in .* does not match the certificate"),
        ((SERVER[0], signing_key(password="pass")[0], ROOT[0]), r"Its key in .* is encrypted"),
        (
            (SERVER[0], SERVER[1], "nothing"),
            r"The clients' authority in .* is not a certificate in PEM format",
        ),
    ],
    ids=["certificate", "key", "another-key", "locked-key", "authority"],
)
def test_files_that_cannot_be_used_are_named(
    tmp_path: Path, texts: tuple[str, str, str], message: str
) -> None:
    certificate, key, authority = files(tmp_path, certificate=texts[0], key=texts[1], authority=texts[2])
    with pytest.raises(ConfigurationError, match=message):
        ServerTls(certificate, key, authority)
