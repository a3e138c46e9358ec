"""The zone client over real sockets: it proves who it is with each sending, and comes through cuts and restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from cryptography import x509
from structlog.testing import capture_logs
from tests.certificates import made, signing_key
from tests.scenarios.zones.zone_server import BOT_TOKEN, PRIVATE, PUBLIC, zone_server

from trunkline.jsontypes import JsonObject
from trunkline.serving import base_url, listen, serving
from trunkline.serving.tls import ServerTls
from trunkline.telemetry import log_events
from trunkline.transports.address_policy import AddressPolicy
from trunkline.zones import Zone, ZoneCallFailed, open_zone_client
from trunkline.zones.access.audit import newest_refusals
from trunkline.zones.serving.http_server import ZoneConnection

# A zone has a store of its own, and no broker.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

TIMEOUT_SECONDS = 60.0
SIGNED: JsonObject = {"callers": {"verification": {"keys": [PUBLIC]}}}
SIGNER: JsonObject = {"key": PRIVATE, "issuer": "verification", "audience": "execution"}
PARAMS: JsonObject = {"channel": "C1", "text": "hello", "bot_token": BOT_TOKEN}


class GatedZone:
    """Work that waits at a gate, and how often it began."""

    def __init__(self, policy: JsonObject | None = None) -> None:
        self._policy = policy
        self.gate = asyncio.Event()
        self.begun = 0

    def opened(self) -> Zone:
        zone = Zone("execution", accept_after=0.05, policy=self._policy, stop_timeout=60.0)
        zone.method("execute_task")(self._work)
        return zone

    async def _work(self, params: JsonObject) -> str:
        self.begun += 1
        await self.gate.wait()
        return f"{params['text']}!"

    async def has_begun(self) -> None:
        while not self.begun:
            await asyncio.sleep(0.01)


class CuttingProxy:
    """Between a client and a zone: cuts off the answers to the first requests."""

    def __init__(self, zone_url: str, cuts: int) -> None:
        self._port = int(zone_url.rpartition(":")[2])
        self._cuts = cuts
        self.heads: list[str] = []

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[str]:
        server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head.decode())
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                answer = await self._passed_on(head + await reader.readexactly(length))
                if len(self.heads) <= self._cuts:
                    return
                writer.write(answer)
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()

    async def _passed_on(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        writer.close()
        return head + body

    def tokens(self) -> list[str]:
        return [head.partition("Authorization: ")[2].partition("\r\n")[0] for head in self.heads]


async def test_each_sending_has_its_own_signature_and_the_work_runs_once(tmp_path: Path) -> None:
    gated = GatedZone(SIGNED)
    gated.gate.set()
    async with zone_server(gated.opened(), tmp_path) as zone_url, asyncio.timeout(TIMEOUT_SECONDS):
        wire = CuttingProxy(zone_url, cuts=2)
        async with (
            wire.open() as url,
            open_zone_client(url, auth_type="signed", auth_config=SIGNER, profile="slack") as client,
        ):
            result = await client.execute_task(PARAMS)
    assert (result["response_text"], gated.begun) == ("hello!", 1)
    tokens = wire.tokens()
    assert len(set(tokens)) == len(tokens) == 3
    assert all(token.startswith("Bearer ey") for token in tokens)
    assert newest_refusals(tmp_path, 10) == []


async def test_a_caller_that_the_zone_does_not_know_is_rejected_immediately(tmp_path: Path) -> None:
    other_signer: JsonObject = {**SIGNER, "key": signing_key()[0]}
    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        zone_server(GatedZone(SIGNED).opened(), tmp_path) as url,
        open_zone_client(url, auth_type="signed", auth_config=other_signer) as client,
    ):
        with pytest.raises(ZoneCallFailed, match="Not authenticated") as raised:
            await client.execute_task(PARAMS)
    assert (raised.value.error.http_status, raised.value.error.jsonrpc_code) == (401, -32000)
    assert raised.value.fix == "Set the agent's auth_type and auth_config."


async def test_a_caller_with_a_certificate_calls_over_mutual_tls(tmp_path: Path) -> None:
    root = made("root")
    (tmp_path / "server.pem").write_text("".join(made("server", signed_by=root)))
    (tmp_path / "root.pem").write_text(root[0])
    certificate, key = made("caller", signed_by=root, alternatives=[x509.DNSName("verification.example")])
    proof: JsonObject = {"certificate": certificate, "key": key, "authority": root[0]}
    gated = GatedZone({"callers": {"verification": {"certificates": ["verification.example"]}}})
    gated.gate.set()
    tls = ServerTls(tmp_path / "server.pem", authority=tmp_path / "root.pem", required=True)
    async with zone_server(gated.opened(), tmp_path / "data", tls) as url, asyncio.timeout(TIMEOUT_SECONDS):
        async with open_zone_client(url, auth_type="mtls", auth_config=proof) as client:
            assert (await client.execute_task(PARAMS))["response_text"] == "hello!"
        async with open_zone_client(url) as nobody:
            with pytest.raises(ZoneCallFailed) as raised:
                await nobody.execute_task(PARAMS)
    assert raised.value.error.code == "agent_tls_failed"


async def test_a_caller_that_calls_too_often_waits_as_long_as_the_zone_says(tmp_path: Path) -> None:
    rules: JsonObject = {"keys": [PUBLIC], "rate": {"per_second": 1, "burst": 1}}
    gated = GatedZone({"callers": {"verification": rules}})
    gated.gate.set()
    with capture_logs() as lines:
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            zone_server(gated.opened(), tmp_path) as url,
            open_zone_client(url, auth_type="signed", auth_config=SIGNER) as client,
        ):
            results = await asyncio.gather(client.execute_task(PARAMS), client.execute_task(PARAMS))
    assert [result["response_text"] for result in results] == ["hello!", "hello!"]
    waits = [line["after_seconds"] for line in lines if line["event"] == log_events.ZONE_CALL_SENT_AGAIN]
    assert waits
    assert min(waits) >= 1
    assert BOT_TOKEN not in str(lines)


async def test_a_client_survives_a_restart_of_the_zone(tmp_path: Path) -> None:
    gated, id_ = GatedZone(), str(uuid4())
    async with asyncio.timeout(TIMEOUT_SECONDS):
        with listen("127.0.0.1", 0) as listener:
            url = base_url(listener)
            async with open_zone_client(url) as client:
                first = gated.opened()
                async with first.running(tmp_path), serving(first, listener, ZoneConnection):
                    asked = asyncio.create_task(client.execute_task(PARAMS, id=id_))
                    await gated.has_begun()
                    gated.gate.set()
                # Nobody is there: the port is taken again by the next life.
                second = gated.opened()
                with listen("127.0.0.1", int(url.rpartition(":")[2])) as again:
                    async with second.running(tmp_path), serving(second, again, ZoneConnection):
                        assert (await asked)["response_text"] == "hello!"
                        assert (await client.execute_task(PARAMS, id=id_))["response_text"] == "hello!"
    assert gated.begun == 1


async def test_the_caller_decides_which_addresses_a_client_may_call() -> None:
    async with open_zone_client("http://127.0.0.1:9", addresses=AddressPolicy()) as client:
        with pytest.raises(ZoneCallFailed, match="loopback") as raised:
            await client.execute_task(PARAMS)
    assert raised.value.error.code == "agent_address_forbidden"
    async with open_zone_client("http://169.254.169.254/") as client:
        with pytest.raises(ZoneCallFailed, match="metadata") as raised:
            await client.execute_task(PARAMS)
    assert raised.value.error.code == "agent_address_forbidden"
