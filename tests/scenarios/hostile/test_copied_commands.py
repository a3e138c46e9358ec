"""A copied curl command is run as it is, in sh, against a real server: what arrives is what was recorded."""

from __future__ import annotations

import asyncio
import os
import shutil

import pytest
import uvloop

from trunkline.agents.authentication.auth_config import Credentials, credentials
from trunkline.bridge.wire.exchanges import SentRequest, record_exchange, to_curl
from trunkline.clock import Instant
from trunkline.jsontypes import JsonObject
from trunkline.telemetry.redaction import Redaction

# Nothing here has a store or a broker.
pytestmark = [
    pytest.mark.embedded_only,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]

HEADERS = {"Content-Type": "application/json", "X-Correlation-ID": 'it\'s "$HOME" `id` \\ !', "X-Empty": ""}


async def arrives(
    body: bytes, login: Credentials, variables: dict[str, str], path: str = "/agent"
) -> tuple[list[str], bytes]:
    """Head lines and body of the request that the copied command makes."""
    got: asyncio.Future[tuple[list[str], bytes]] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        length = next(
            (int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length")), 0
        )
        got.set_result((lines, await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = login.add_to(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{path}")
        made = record_exchange(
            Redaction(login),
            SentRequest("POST", url, {**HEADERS, **login.headers}, body),
            None,
            step="s",
            attempt=1,
            started_at=Instant(0),
            duration_ms=0.0,
        )
        command = to_curl(made)
        assert not any(secret in command for secret in login.secrets)
        environment = {"PATH": os.environ["PATH"], "NO_PROXY": "*", **variables}
        shell = await asyncio.create_subprocess_exec("sh", "-c", command, env=environment)
        assert await shell.wait() == 0
        return await got


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"",
        b"@/etc/passwd",
        b'it\'s "quoted" $HOME `id` $(id) \\n %s !!\n\ttwo lines\n',
        '{"text":"Grüße, 世界 🙂"}'.encode(),
        b"nul \x00 escape \x1b[31m bell \x07 back\\slash \\0101 %b",
        b"x" * 60_000,
    ],
)
def test_every_body_arrives_unchanged(body: bytes) -> None:
    login = credentials("A", "bearer", {"token": "t0k3n!"})
    lines, arrived = uvloop.run(arrives(body, login, {"TRUNKLINE_SECRET_A": "t0k3n!"}))
    assert arrived == body
    assert "Authorization: Bearer t0k3n!" in lines
    assert f"X-Correlation-ID: {HEADERS['X-Correlation-ID']}" in lines
    assert any(line.startswith("X-Empty:") for line in lines)


@pytest.mark.parametrize(
    ("auth_type", "config", "variables", "expected"),
    [
        ("none", {}, {}, "Accept-Encoding: identity"),
        (
            "api_key",
            {"name": "X-Key", "value": "k3y-value"},
            {"TRUNKLINE_SECRET_A": "k3y-value"},
            "X-Key: k3y-value",
        ),
        (
            "basic",
            {"username": "u", "password": "pass word"},
            {"TRUNKLINE_SECRET_A": "u:pass word"},
            "Authorization: Basic dTpwYXNzIHdvcmQ=",
        ),
        (
            "headers",
            {"X-One": "first1", "X-Two": "second2"},
            {"TRUNKLINE_SECRET_A_X_ONE": "first1", "TRUNKLINE_SECRET_A_X_TWO": "second2"},
            "X-Two: second2",
        ),
        (
            "api_key",
            {"name": "key", "value": "in-the-url", "in": "query"},
            {"TRUNKLINE_SECRET_A": "in-the-url"},
            "POST /agent?a[]={b,c}&key=in-the-url HTTP/1.1",
        ),
    ],
)
def test_secrets_come_from_the_environment(
    auth_type: str, config: JsonObject, variables: dict[str, str], expected: str
) -> None:
    login = credentials("A", auth_type, config)
    path = "/agent?a[]={b,c}" if config.get("in") == "query" else "/agent"
    lines, _ = uvloop.run(arrives(b"{}", login, variables, path))
    assert expected in lines
