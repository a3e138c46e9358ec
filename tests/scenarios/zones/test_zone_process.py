"""A zone as a process: what it says of its callers, and never of their secrets."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import made
from tests.scenarios.zones.zone_server import AMPLE, BOT_TOKEN, PUBLIC, call, post, token_for

from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.transports.base import TransportError

# A zone has a store of its own, and no broker.
pytestmark = pytest.mark.embedded_only

PROGRAM = str(Path(sys.executable).with_name("trunkline"))
ROOT = Path(__file__).parents[3]
ZONE = "tests.scenarios.zones.echoing_zone:zone"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("TRUNKLINE_")}


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *words],
        capture_output=True,
        text=True,
        timeout=AMPLE,
        cwd=ROOT,
        env=ENVIRONMENT,
        check=False,
    )


@asynccontextmanager
async def zone_process(data: Path, *flags: str) -> AsyncGenerator[tuple[str, Process]]:
    words = (
        PROGRAM,
        "zone",
        "serve",
        ZONE,
        "--port",
        "0",
        "--data",
        str(data),
        "--log-level",
        "debug",
        *flags,
    )
    process = await asyncio.create_subprocess_exec(
        *words, stdout=PIPE, stderr=PIPE, cwd=ROOT, env=ENVIRONMENT, limit=1 << 24
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(AMPLE):
            url = (await process.stdout.readline()).decode().strip()
        yield url, process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def said_by(process: Process) -> str:
    """Everything that it has logged, after it was asked to stop."""
    process.terminate()
    async with asyncio.timeout(AMPLE):
        _, errors = await process.communicate()
    assert process.returncode == 0
    return errors.decode()


def forms(secret: str) -> list[str]:
    """Parts of it that any way to write it down would leave: none of them has a letter that is ever escaped."""
    return [part for part in ("xoxb-7f3a", "ine-lives") if part in secret]


@pytest.mark.anyio
async def test_no_secret_of_a_call_is_logged_although_its_handler_repeats_it(tmp_path: Path) -> None:
    async with zone_process(tmp_path) as (url, process):
        for method in ("repeat", "repeat_later", "encode"):
            answer = await post(url, call(method, bot_token=BOT_TOKEN, pin=271828, text="hello"))
            assert answer.error == {"code": -32603, "message": "Internal error"}
        logged = await said_by(process)
    assert logged.count('"zone_handler_failed"') == 3
    assert "cannot post with [redacted]" in logged
    assert forms(BOT_TOKEN)
    for part in (*forms(BOT_TOKEN), "271828", "eG94Yi03"):
        assert part not in logged


@pytest.mark.anyio
async def test_no_answer_repeats_a_secret_of_its_call_and_none_is_kept(tmp_path: Path) -> None:
    async with zone_process(tmp_path) as (url, process):
        params = {"bot_token": BOT_TOKEN, "text": "hello", "author": "nobody"}
        answered = await post(url, call("return_it", **params))
        refused = await post(url, call("raise_it", **params))
        kept = b"".join(path.read_bytes() for path in tmp_path.glob("zone.db*"))
        logged = await said_by(process)
    shown = {**params, "bot_token": "[redacted]"}
    assert answered.body["result"] == {
        "status": "success",
        "response_text": "posted with [redacted]",
        "used": [shown],
    }
    assert refused.error == {
        "code": -32050,
        "message": "Slack refuses [redacted]",
        "data": {"used": [shown]},
    }
    for part in forms(BOT_TOKEN):
        assert part not in logged
        assert part.encode() not in kept


@pytest.mark.anyio
async def test_the_audit_shows_refusals_while_the_zone_runs_and_no_token(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"callers": {"verification": {"keys": [PUBLIC]}}}))
    body = call("\x1b[2Jrepeat", bot_token=BOT_TOKEN, correlation_id="c-1")
    data = tmp_path / "data"
    async with zone_process(data, "--policy", str(policy)) as (url, process):
        headers = token_for(body, audience="billing")
        assert (await post(url, body, headers)).status == 401
        assert (await post(url, body)).status == 401
        table = command("zone", "audit", "--data", str(data))
        shown: dict[str, Any] = json.loads(
            command("zone", "audit", "--data", str(data), "--limit", "1", "--json").stdout
        )
        logged = await said_by(process)
    assert table.returncode == 0
    lines = table.stdout.splitlines()
    assert [line.split("  ")[-1] for line in lines[1:]] == [
        "the request has neither a token nor a certificate",
        "the token is for another zone, or for more than one",
    ]
    assert [item["reason"] for item in shown["items"]] == ["no_credentials"]
    assert logged.count('"zone_call_refused"') == 2
    for secret in (headers["Authorization"].removeprefix("Bearer "), *forms(BOT_TOKEN)):
        assert secret not in logged + table.stdout


@pytest.mark.anyio
@pytest.mark.parametrize("takes_tokens", [True, False], ids=["tokens-too", "certificates-only"])
async def test_only_whom_the_policy_knows_by_a_key_needs_no_certificate(
    tmp_path: Path, takes_tokens: bool
) -> None:
    root = made("root")
    (tmp_path / "server.pem").write_text("".join(made("server", signed_by=root)))
    (tmp_path / "root.pem").write_text(root[0])
    known = f'keys = ["""{PUBLIC}"""]' if takes_tokens else 'certificates = ["verification"]'
    (tmp_path / "policy.toml").write_text(
        f'[callers.verification]\n{known}\n[callers.other]\ncertificates = ["other"]\n'
    )
    flags = ("--policy", str(tmp_path / "policy.toml"), "--tls-cert", str(tmp_path / "server.pem"))
    body = call("return_it", bot_token=BOT_TOKEN)
    client = made("other", signed_by=root)
    async with zone_process(tmp_path / "data", *flags, "--client-ca", str(tmp_path / "root.pem")) as (url, _):
        assert url.startswith("https://127.0.0.1:")
        certified = TlsConfig(authority=root[0], certificate=client[0], key=client[1])
        assert (await post(url, body, tls=certified)).status == 200
        without_certificate = TlsConfig(authority=root[0])
        if takes_tokens:
            assert (await post(url, body, token_for(body), tls=without_certificate)).status == 200
            assert (await post(url, body, tls=without_certificate)).status == 401
        else:
            with pytest.raises(TransportError):
                await post(url, body, token_for(body), tls=without_certificate)


def test_an_audit_needs_a_zones_folder(tmp_path: Path) -> None:
    found = command("zone", "audit", "--data", str(tmp_path))
    assert found.returncode == 7
    assert "zone-audit.db does not exist" in found.stderr
    assert "--data" in found.stderr


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ('{"callers": {}}', "callers: is empty"),
        ('{"callers": {"a": {"keys": ["x"]}}}', "callers.a.keys[0]: must be a public key in PEM format"),
        ("{", "is not JSON"),
    ],
    ids=["nobody", "key", "json"],
)
def test_a_zone_does_not_start_with_a_policy_that_makes_no_sense(
    tmp_path: Path, policy: str, message: str
) -> None:
    (tmp_path / "policy.json").write_text(policy)
    started = command(
        "zone", "serve", ZONE, "--port", "0", "--data", str(tmp_path / "data"),
        "--policy", str(tmp_path / "policy.json"),
    )  # fmt: skip
    assert started.returncode == 7
    assert message in started.stderr
    assert started.stdout == ""


def test_a_zone_does_not_start_with_a_key_of_another_certificate(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text(made("server")[0])
    (tmp_path / "key.pem").write_text(made("server")[1])
    started = command(
        "zone", "serve", ZONE, "--port", "0", "--data", str(tmp_path / "data"),
        "--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"),
    )  # fmt: skip
    assert started.returncode == 7
    assert "does not match the certificate" in started.stderr
