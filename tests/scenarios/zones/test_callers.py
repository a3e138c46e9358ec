"""Who may call a zone that is served: with signed tokens, with certificates, and with neither."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from cryptography import x509
from tests.certificates import made, signing_key
from tests.scenarios.zones.zone_server import (
    AMPLE,
    BOT_TOKEN,
    PUBLIC,
    ZoneAnswer,
    call,
    post,
    token_for,
    zone_server,
)

from trunkline.agents.authentication.credentials import TlsConfig
from trunkline.jsontypes import JsonObject
from trunkline.serving.tls import ServerTls
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.base import TransportError
from trunkline.transports.https import HttpTransport
from trunkline.zones import Zone
from trunkline.zones.access.audit import REASONS, explain_reason, newest_refusals
from trunkline.zones.zone import zone_file

# A zone has a store of its own, and no broker.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

ROOT = made("root")
SERVER = made("server", signed_by=ROOT)
SIGNED: JsonObject = {"callers": {"verification": {"keys": [PUBLIC]}}}
CERTIFIED: JsonObject = {
    "callers": {"verification": {"certificates": ["verification.example"]}},
}


def zone_with(policy: JsonObject) -> Zone:
    zone = Zone("execution", policy=policy)

    @zone.method("execute_task")
    def execute_task(params: JsonObject) -> str:
        return str(params.get("text"))

    return zone


def refused(answer: ZoneAnswer, status: int) -> str:
    """The message of a refusal, which is a JSON-RPC response whatever the status."""
    assert answer.status == status
    assert answer.body["jsonrpc"] == "2.0"
    assert "result" not in answer.body
    assert answer.error["code"] == -32000
    return str(answer.error["message"])


def reasons(folder: Path) -> list[str]:
    return [refusal.reason for refusal in newest_refusals(folder, 100)]


async def test_a_signed_call_is_answered_and_its_token_is_worth_nothing_any_more(tmp_path: Path) -> None:
    body = call(text="hello", bot_token=BOT_TOKEN)
    headers = token_for(body)
    async with zone_server(zone_with(SIGNED), tmp_path) as url:
        answer = await post(url, body, headers)
        assert answer.body["result"] == {"status": "success", "response_text": "hello"}
        assert refused(await post(url, body, headers), 401).startswith("Not authenticated.")
    async with zone_server(zone_with(SIGNED), tmp_path) as url:
        again = await post(url, body, headers)
        assert refused(again, 401)
        assert again.headers["www-authenticate"] == "Bearer"
    assert reasons(tmp_path) == ["token_used", "token_used"]


async def test_the_same_call_with_a_new_token_is_answered_from_memory(tmp_path: Path) -> None:
    body = call(text="hello", id_="same")
    async with zone_server(zone_with(SIGNED), tmp_path) as url:
        first, second = [await post(url, body, token_for(body)) for _ in range(2)]
    assert first.body == second.body


async def test_a_token_of_one_request_does_not_carry_another(tmp_path: Path) -> None:
    body = call(text="hello")
    headers = token_for(body)
    async with zone_server(zone_with(SIGNED), tmp_path) as url:
        refused(await post(url, call(text="steal"), headers), 401)
        assert (await post(url, body, headers)).status == 200
    assert reasons(tmp_path) == ["token_body"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"audience": "billing"}, "token_audience"),
        ({"issuer": "stranger"}, "token_issuer"),
        ({"key": signing_key()[0]}, "token_signature"),
        ({"lifetime_seconds": 301}, "token_too_long_lived"),
        ({"lifetime_seconds": -60}, "token_expired"),
    ],
    ids=["audience", "issuer", "key", "life", "expiry"],
)
async def test_a_token_that_is_wrong_runs_nothing(
    tmp_path: Path, changed: dict[str, str | int], reason: str
) -> None:
    body = call(text="hello")
    async with zone_server(zone_with(SIGNED), tmp_path) as url:
        answer = await post(url, body, token_for(body, **changed))
    assert reason not in refused(answer, 401)
    assert answer.body["id"] is None
    assert reasons(tmp_path) == [reason]


async def test_an_unauthenticated_caller_is_answered_before_its_body_arrives(tmp_path: Path) -> None:
    async with zone_server(zone_with(SIGNED), tmp_path) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
        writer.write(b"POST / HTTP/1.1\r\nHost: zone\r\nContent-Length: 50000000\r\n\r\n{")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), AMPLE)
        writer.close()
    assert head.startswith(b"HTTP/1.1 401 ")
    assert reasons(tmp_path) == ["no_credentials"]


async def test_documents_and_health_need_no_token(tmp_path: Path) -> None:
    async with (
        zone_server(zone_with(SIGNED), tmp_path) as url,
        HttpTransport(AddressPolicy(allow_loopback=True)) as transport,
    ):
        for path in ("/ping", "/openrpc.json"):
            assert (await transport.get(url + path, {}, AMPLE)).status == 200


async def test_what_a_policy_limits_is_refused_with_its_own_status(tmp_path: Path) -> None:
    rules: JsonObject = {
        "keys": [PUBLIC],
        "methods": ["execute_task"],
        "max_bytes": 1000,
        "rate": {"per_second": 0.001, "burst": 1},
        "profiles": ["slack"],
    }
    async with zone_server(zone_with({"callers": {"verification": rules}}), tmp_path) as url:

        async def signed(body: bytes) -> ZoneAnswer:
            return await post(url, body, token_for(body))

        assert "It may call: execute_task." in refused(await signed(call("purge")), 403)
        invalid_params = await signed(call(text="hello"))
        assert (invalid_params.status, invalid_params.error["code"]) == (200, -32602)
        assert invalid_params.error["data"] == {
            "fields": [
                {"path": "channel", "message": "is required"},
                {"path": "bot_token", "message": "is required"},
            ]
        }
        assert "1000 bytes" in refused(await signed(call(text="x" * 1000)), 413)
        fits = {"channel": "C1", "text": "hello", "bot_token": BOT_TOKEN, "correlation_id": "c-1"}
        assert (await signed(call(**fits))).status == 200
        late = await signed(call(**fits))
        assert "Try again in" in refused(late, 429)
        assert 990 <= int(late.headers["retry-after"]) <= 1000
        assert late.error["data"] == {
            "correlation_id": "c-1",
            "retry_after_ms": int(late.headers["retry-after"]) * 1000,
        }
    assert reasons(tmp_path) == ["too_fast", "too_large", "profile_not_allowed", "method_not_allowed"]
    assert all(explain_reason(reason) in REASONS.values() for reason in reasons(tmp_path))


def tls_of(client: tuple[str, str] | None) -> TlsConfig:
    certificate, key = client or (None, None)
    return TlsConfig(authority=ROOT[0], certificate=certificate, key=key)


def certified(name: str) -> tuple[str, str]:
    return made("caller", signed_by=ROOT, alternatives=[x509.DNSName(name)])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "server.pem").write_text("".join(SERVER))
    (tmp_path / "root.pem").write_text(ROOT[0])
    return tmp_path / "server.pem", tmp_path / "root.pem"


async def test_a_certificate_is_as_good_as_a_token(tmp_path: Path, files: tuple[Path, Path]) -> None:
    tls = ServerTls(files[0], authority=files[1])
    async with zone_server(zone_with(CERTIFIED), tmp_path / "data", tls) as url:
        known = await post(url, call(text="hello"), tls=tls_of(certified("verification.example")))
        assert known.body["result"] == {"status": "success", "response_text": "hello"}
        unknown = await post(url, call(text="hello"), tls=tls_of(certified("other.example")))
        assert "Ask its operator" in refused(unknown, 403)
        refused(await post(url, call(text="hello"), tls=tls_of(None)), 401)
        with pytest.raises(TransportError):
            await post(url, call(), tls=tls_of(made("verification.example", signed_by=made("root"))))
    assert reasons(tmp_path / "data") == ["no_credentials", "certificate_unknown"]


async def test_two_callers_with_certificates_do_not_see_each_others_calls(
    tmp_path: Path, files: tuple[Path, Path]
) -> None:
    tls = ServerTls(files[0], authority=files[1], required=True)
    zone = zone_with({})
    id_ = str(uuid4())
    async with zone_server(zone, tmp_path / "data", tls) as url:
        for name in ("a.example", "b.example"):
            answer = await post(url, call(text=name, id_=id_), tls=tls_of(certified(name)))
            assert answer.body["result"] == {"status": "success", "response_text": name}


async def test_no_token_and_no_secret_is_in_the_zones_file(tmp_path: Path) -> None:
    body = call(text="hello", bot_token=BOT_TOKEN)
    headers = token_for(body)
    async with zone_server(zone_with(SIGNED), tmp_path) as url:
        for _ in range(2):
            await post(url, body, headers)
        for changed in ({"audience": "billing"}, {"issuer": "stranger"}):
            await post(url, body, token_for(body, **changed))
        written = b"".join(path.read_bytes() for path in tmp_path.glob(f"{zone_file(tmp_path).stem}*"))
    assert b"token_used" in written
    token = headers["Authorization"].removeprefix("Bearer ")
    for secret in (token, token.split(".")[2], "xoxb-7f3a", "stranger"):
        assert secret.encode() not in written
