"""A zone behind a real server, in this process, and callers that sign what they send."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast
from uuid import uuid4

import msgspec
from tests.certificates import signing_key

from trunkline.agents.authentication.credentials import RequestSigner, TlsConfig
from trunkline.agents.authentication.signed_tokens import signed_token
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.serving import base_url, listen, serving
from trunkline.serving.tls import ServerTls
from trunkline.system_clock import SystemClock
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.https import HttpTransport
from trunkline.zones import Zone
from trunkline.zones.serving.http_server import ZoneConnection

AMPLE = 60.0
PRIVATE, PUBLIC = signing_key()
# Long enough that no other text has it by chance.
BOT_TOKEN = "xoxb-7f3a/é'\"\\nine-lives"


class ZoneAnswer(msgspec.Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: JsonObject

    @property
    def error(self) -> JsonObject:
        return cast("JsonObject", self.body["error"])


@asynccontextmanager
async def zone_server(zone: Zone, folder: Path, tls: ServerTls | None = None) -> AsyncGenerator[str]:
    with listen("127.0.0.1", 0) as listener:
        async with zone.running(folder), serving(zone, listener, ZoneConnection, tls=tls):
            yield base_url(listener, "http" if tls is None else "https")


def call(method: str = "execute_task", id_: str | None = None, **params: Json) -> bytes:
    return encode({"jsonrpc": "2.0", "id": id_ or str(uuid4()), "method": method, "params": params})


def token_for(body: bytes, **changed: str | int) -> dict[str, str]:
    """The header of a caller that the zone knows as `verification`."""
    usual = RequestSigner(key=PRIVATE, issuer="verification", audience="execution")
    signer = msgspec.structs.replace(usual, **changed)
    return {"Authorization": f"Bearer {signed_token(signer, body, SystemClock().now(), str(uuid4()))}"}


async def post(
    url: str, body: bytes, headers: Mapping[str, str] | None = None, tls: TlsConfig | None = None
) -> ZoneAnswer:
    async with HttpTransport(AddressPolicy(allow_loopback=True)) as transport:
        answer = await transport.post(url, body, headers or {}, AMPLE, tls)
    return ZoneAnswer(answer.status, answer.headers, cast("JsonObject", decode(answer.body)))
