"""A token endpoint for tests: a real server that gives one token after the other, or whatever a test says."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import unquote_plus

import msgspec
from aiohttp import web

from trunkline.jsontypes import Json, JsonObject, encode


class TokenRequest(msgspec.Struct, frozen=True):
    form: Mapping[str, str]
    # From the header, if it had any.
    client: tuple[str, str] | None


class TokenEndpoint:
    def __init__(self, prefix: str) -> None:
        self.url = ""
        self.requests: list[TokenRequest] = []
        self.tokens: list[str] = []
        # What to answer instead of a token; several in turn, then tokens again.
        self.scripted: list[tuple[int, bytes]] = []
        # Beside the token.
        self.more: JsonObject = {"token_type": "Bearer", "expires_in": 3600}
        # Nobody is answered before.
        self.open = asyncio.Event()
        self.open.set()
        self._prefix = prefix

    async def answer(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.requests.append(TokenRequest(form, _client(request)))
        await self.open.wait()
        if self.scripted:
            status, body = self.scripted.pop(0)
            return web.Response(status=status, body=body)
        self.tokens.append(f"{self._prefix}-{len(self.tokens) + 1}")
        granted: Json = {"access_token": self.tokens[-1], **self.more}
        return web.Response(body=encode(granted), content_type="application/json")


def _client(request: web.Request) -> tuple[str, str] | None:
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    if scheme != "Basic":
        return None
    name, _, secret = b64decode(encoded).decode().partition(":")
    return unquote_plus(name), unquote_plus(secret)


@asynccontextmanager
async def token_endpoint(prefix: str = "token") -> AsyncGenerator[TokenEndpoint]:
    endpoint = TokenEndpoint(prefix)
    app = web.Application()
    app.router.add_post("/token", endpoint.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        endpoint.url = f"http://{host}:{port}/token"
        yield endpoint
    finally:
        await runner.cleanup()
