"""Every transport to a zone, each with a real server or process at the other end, and a record of what was sent."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import msgspec
import pytest
from deploy.local.agentcore import StandIn
from tests.certificates import made, signing_key

from trunkline.agents.authentication.auth_config import credentials
from trunkline.agents.authentication.credentials import NO_CREDENTIALS, Credentials, TlsConfig
from trunkline.agents.authentication.signed_tokens import signed_token
from trunkline.agents.stdio_programs import StdioProgram
from trunkline.jsontypes import JsonObject, encode
from trunkline.protocols.base import AgentAnswer
from trunkline.system_clock import SystemClock
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.aws_agentcore import AgentCoreTransport
from trunkline.transports.base import StreamedAnswer, StreamLimits, Transport
from trunkline.transports.https import HttpTransport
from trunkline.transports.stdio import StdioTransport
from trunkline.zones.client import ZoneClient

HERE = Path(__file__).parent
# Long enough for any machine: only a hang reaches it.
AMPLE = 60.0
RECORD = "ZONE_RECORD"
SERVE = (sys.executable, "-m", "trunkline", "zone", "serve", "served_zone:zone")
ARN = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/contract"


class PayloadExchange(NamedTuple):
    """The application's payloads, as they are."""

    request: bytes
    response: bytes


class RecordingTransport:
    """A transport that writes down what it is given and what it brings, in the order in which it was asked."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._said: dict[int, PayloadExchange] = {}
        self._number = 0

    @property
    def exchanges(self) -> list[PayloadExchange]:
        return [self._said[number] for number in sorted(self._said)]

    def forget(self) -> None:
        self._said.clear()

    def note(self, exchange: PayloadExchange) -> None:
        self._number += 1
        self._said[self._number] = exchange

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: float,
        tls: TlsConfig | None = None,
    ) -> AgentAnswer:
        number = self._number = self._number + 1
        answer = await self._transport.post(url, body, headers, timeout, tls)
        self._said[number] = PayloadExchange(body, answer.body)
        return answer

    async def get(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float,
        tls: TlsConfig | None = None,
    ) -> AgentAnswer:
        return await self._transport.get(url, headers, timeout, tls)

    def stream(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: StreamLimits,
        tls: TlsConfig | None = None,
    ) -> AbstractAsyncContextManager[StreamedAnswer]:
        return self._transport.stream(url, body, headers, limits, tls)


class ZoneTransport:
    """A way to a zone."""

    def __init__(
        self,
        transport: Transport,
        url: str,
        record: Path,
        *,
        proof: Credentials = NO_CREDENTIALS,
        unlabelled: Callable[[bytes], Awaitable[bytes]] | None = None,
    ) -> None:
        self._recorder = RecordingTransport(transport)
        self._unlabelled = unlabelled
        self._url = url
        self._record = record
        self._proof = proof

    def client(self, method: str = "execute_task", *, profile: str = "any") -> ZoneClient:
        return ZoneClient(self._recorder, self._url, credentials=self._proof, method=method, profile=profile)

    async def send(self, body: bytes) -> bytes:
        """The answer to these bytes."""
        headers = {"Content-Type": "application/json", **self._proof.headers}
        if self._proof.signer is not None:
            token = signed_token(self._proof.signer, body, SystemClock().now(), str(uuid4()))
            headers["Authorization"] = f"Bearer {token}"
        answer = await self._recorder.post(self._url, body, headers, AMPLE, self._proof.tls)
        assert answer.status == 200
        return answer.body

    async def send_unlabelled(self, body: bytes) -> bytes:
        """As above, for what has no id that a transport could know the answer by."""
        if self._unlabelled is None:
            return await self.send(body)
        answer = await self._unlabelled(body)
        self._recorder.note(PayloadExchange(body, answer))
        return answer

    def forget(self) -> None:
        self._recorder.forget()
        self._record.write_bytes(b"")

    @property
    def here(self) -> list[PayloadExchange]:
        """What was said, as it was at this end."""
        return self._recorder.exchanges

    @property
    def there(self) -> list[PayloadExchange]:
        """As it was at the zone's end."""
        pairs = [
            msgspec.json.decode(line, type=tuple[str, str]) for line in self._record.read_bytes().splitlines()
        ]
        return [PayloadExchange(*(text.encode("latin-1") for text in pair)) for pair in pairs]


# --- the zone as a process


@asynccontextmanager
async def started(folder: Path, *flags: str) -> AsyncGenerator[Process]:
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(*SERVE, "--data", str(folder / "data"), *flags),
            stdin=PIPE,
            stdout=PIPE,
            stderr=log,
            cwd=HERE,
            env={**os.environ, RECORD: str(folder / "record")},
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), AMPLE)


@asynccontextmanager
async def served(folder: Path, *flags: str) -> AsyncGenerator[str]:
    """Its address."""
    async with started(folder, "--port", "0", *flags) as process:
        assert process.stdout is not None
        yield (await asyncio.wait_for(process.stdout.readline(), AMPLE)).decode().strip()


# --- the ways


@asynccontextmanager
async def http(folder: Path) -> AsyncGenerator[ZoneTransport]:
    async with served(folder) as url, HttpTransport(AddressPolicy(allow_loopback=True)) as transport:
        yield ZoneTransport(transport, url, folder / "record")


@asynccontextmanager
async def https_with_certificate(folder: Path) -> AsyncGenerator[ZoneTransport]:
    root = made("root")
    server, client = made("server", signed_by=root), made("verification", signed_by=root)
    config: JsonObject = {"certificate": client[0], "key": client[1], "authority": root[0]}
    flags = (*_server_files(folder, server), "--client-ca", _file(folder, "root.pem", root[0]))
    async with served(folder, *flags) as url, HttpTransport(AddressPolicy(allow_loopback=True)) as transport:
        yield ZoneTransport(transport, url, folder / "record", proof=credentials("zone", "mtls", config))


@asynccontextmanager
async def https_with_token(folder: Path) -> AsyncGenerator[ZoneTransport]:
    root = made("root")
    private, public = signing_key()
    _file(folder, "public.pem", public)
    policy = encode({"callers": {"verification": {"keys": [{"file": "public.pem"}]}}}).decode()
    config: JsonObject = {
        "key": private,
        "issuer": "verification",
        "audience": "contract",
        "tls": {"authority": root[0]},
    }
    flags = (
        *_server_files(folder, made("server", signed_by=root)),
        *("--policy", _file(folder, "policy.json", policy)),
    )
    async with served(folder, *flags) as url, HttpTransport(AddressPolicy(allow_loopback=True)) as transport:
        yield ZoneTransport(transport, url, folder / "record", proof=credentials("zone", "signed", config))


@asynccontextmanager
async def aws_agentcore(folder: Path) -> AsyncGenerator[ZoneTransport]:
    async with served(folder) as url, StandIn(url) as endpoint:
        with _variables(endpoint.env):
            async with AgentCoreTransport() as transport:
                yield ZoneTransport(transport, ARN, folder / "record")
        assert endpoint.complaints == []


@asynccontextmanager
async def stdio(folder: Path) -> AsyncGenerator[ZoneTransport]:
    variables = {RECORD: str(folder / "record"), "PYTHONPATH": str(HERE)}
    program = StdioProgram((*SERVE, "--stdio", "--data", str(folder / "program")), tuple(variables))
    # The transport does not send what has no id; a program that gets it all the same must answer it, too.
    async with started(folder, "--stdio") as process:

        async def say(line: bytes) -> bytes:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(line + b"\n")
            return (await asyncio.wait_for(process.stdout.readline(), AMPLE)).removesuffix(b"\n")

        with _variables(variables):
            async with StdioTransport({"contract": program}, end_seconds=AMPLE) as transport:
                yield ZoneTransport(transport, "stdio:contract", folder / "record", unlabelled=say)


@contextmanager
def _variables(variables: Mapping[str, str]) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


def _server_files(folder: Path, pair: tuple[str, str]) -> tuple[str, ...]:
    certificate, key = pair
    return (
        *("--tls-cert", _file(folder, "certificate.pem", certificate)),
        *("--tls-key", _file(folder, "key.pem", key)),
    )


def _file(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


TRANSPORTS: Mapping[str, Callable[[Path], AbstractAsyncContextManager[ZoneTransport]]] = {
    "https-with-certificate": https_with_certificate,
    "https-with-token": https_with_token,
    "http": http,
    "aws-agentcore": aws_agentcore,
    "stdio": stdio,
}
