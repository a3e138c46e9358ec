"""
A recorder between two zones: forwards every request to a zone, and checks requests and responses against the schemas
of the contract. It forwards the bytes unchanged.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from importlib.resources import files
from types import TracebackType
from typing import Self

import aiohttp
import jsonschema_rs
from aiohttp import web

from trunkline.jsontypes import Json, decode
from trunkline.protocols.zone.params_profiles import find_profile

# Headers of the connection, not of the message.
HOP_BY_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})


@dataclass(frozen=True)
class Exchange:
    request: bytes
    status: int
    response: bytes


@dataclass
class Recorder:
    """Use it as a context manager. `server` and `client` are the TLS contexts of the two sides, if they use TLS."""

    zone: str
    server: ssl.SSLContext | None = None
    client: ssl.SSLContext | None = None
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    url: str = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=100_000_000)
        app.router.add_post("/{path:.*}", self._hand_on)
        self._session = aiohttp.ClientSession(auto_decompress=False)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.server).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"{'http' if self.server is None else 'https'}://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _hand_on(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        target = f"{self.zone.rstrip('/')}/{request.match_info['path']}"
        async with self._session.post(target, data=body, headers=headers, ssl=self.client or True) as answer:
            response = await answer.read()
        self.exchanges.append(Exchange(body, answer.status, response))
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
        return web.Response(status=answer.status, body=response, headers=kept)

    def complaints(self) -> list[str]:
        """The violations of the contract."""
        return [
            complaint
            for exchange in self.exchanges
            for complaint in (*_wrong_request(exchange.request), *_wrong_by("response", exchange.response))
        ]


def _schemas() -> dict[str, Json]:
    folder = files("trunkline.zones") / "contract"
    return {file.name: decode(file.read_bytes()) for file in folder.iterdir() if file.name.endswith(".json")}


_REGISTRY = jsonschema_rs.Registry(list(_schemas().items()))
_VALIDATORS = {
    name: jsonschema_rs.Draft202012Validator({"$ref": f"{name}.json"}, registry=_REGISTRY)
    for name in ("request", "response", "get_task_result.params")
}


def _wrong_by(name: str, message: bytes) -> list[str]:
    return [f"{name}: {error.message}" for error in _VALIDATORS[name].iter_errors(decode(message))]


def _wrong_request(message: bytes) -> list[str]:
    wrong = _wrong_by("request", message)
    request = decode(message)
    if wrong or not isinstance(request, dict):
        return wrong
    params = request["params"]
    if request["method"] == "get_task_result":
        return [error.message for error in _VALIDATORS["get_task_result.params"].iter_errors(params)]
    return [f"{finding.path}: {finding.message}" for finding in find_profile("slack").check(params)]
