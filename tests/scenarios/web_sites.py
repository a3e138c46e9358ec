"""
Web servers on which agents live as they do in the world: under a path, behind a strict router, next to others.

A site has what a test puts at its paths and nothing else: a GET is answered by a card, with its ETag, a POST by a
speaker. A path that differs by its last slash is redirected to, as many frameworks do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self, TypeAlias

from aiohttp import web

from trunkline.jsontypes import Json, JsonObject, decode, encode

Speaker: TypeAlias = Callable[[JsonObject], "Json | web.Response"]


class SeenRequest(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    status: int
    body: JsonObject


class SiteCard(NamedTuple):
    content: JsonObject | bytes
    etag: str | None = None


class AgentSite:
    def __init__(self) -> None:
        self.cards: dict[str, SiteCard] = {}
        self.speakers: dict[str, Speaker] = {}
        self.seen: list[SeenRequest] = []
        self.url = ""
        self._bell = asyncio.Event()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    @property
    def port(self) -> int:
        return self._runner.addresses[0][1]

    def asked(self, method: str, status: int | None = None) -> list[SeenRequest]:
        return [seen for seen in self.seen if seen.method == method and status in (None, seen.status)]

    async def has_answered(self, method: str, status: int, times: int = 1) -> SeenRequest:
        """Waits until it has answered so, that many times."""
        while len(self.asked(method, status)) < times:
            self._bell.clear()
            await self._bell.wait()
        return self.asked(method, status)[times - 1]

    async def _answer(self, request: web.Request) -> web.Response:
        content = await request.read()
        body = decode(content) if content else {}
        document = body if isinstance(body, dict) else {}
        response = self._get(request) if request.method == "GET" else self._post(request, document)
        self.seen.append(
            SeenRequest(request.method, request.path, dict(request.headers), response.status, document)
        )
        self._bell.set()
        return response

    def _get(self, request: web.Request) -> web.Response:
        card = self.cards.get(request.path)
        if card is None:
            return web.Response(status=404)
        headers = {} if card.etag is None else {"ETag": card.etag}
        if card.etag is not None and request.headers.get("If-None-Match") == card.etag:
            return web.Response(status=304, headers=headers)
        content = card.content if isinstance(card.content, bytes) else encode(card.content)
        return web.Response(body=content, content_type="application/json", headers=headers)

    def _post(self, request: web.Request, body: JsonObject) -> web.Response:
        path = request.path
        speaker = self.speakers.get(path)
        if speaker is not None:
            said = speaker(body)
            return said if isinstance(said, web.Response) else web.Response(body=encode(said))
        other = path.removesuffix("/") if path.endswith("/") else f"{path}/"
        if other in self.speakers:
            return web.Response(status=307, headers={"Location": other})
        return web.Response(status=404)


def refused(body: JsonObject, code: int = -32601, message: str = "Method not found") -> JsonObject:
    return {"jsonrpc": "2.0", "id": body.get("id"), "error": {"code": code, "message": message}}


def speaks_v03(body: JsonObject) -> Json:
    """A2A 0.2 and 0.3, and nothing else."""
    if body.get("method") != "message/send":
        return refused(body)
    parts: Json = [{"kind": "text", "text": "in 0.3"}]
    task: JsonObject = {"kind": "task", "id": "t-1", "contextId": "c-1", "status": {"state": "completed"}}
    task["artifacts"] = [{"artifactId": "a", "parts": parts}]
    return {"jsonrpc": "2.0", "id": body["id"], "result": task}


def speaks_v1(body: JsonObject) -> Json:
    """A2A 1.0 over JSON-RPC, and nothing else."""
    if body.get("method") != "SendMessage":
        return refused(body)
    return {"jsonrpc": "2.0", "id": body["id"], "result": speaks_v1_http(body)}


def speaks_v1_http(body: JsonObject) -> Json:
    """What is answered to `POST /message:send`."""
    del body
    task: JsonObject = {"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_COMPLETED"}}
    task["artifacts"] = [{"artifactId": "a", "parts": [{"text": "in 1.0"}]}]
    return {"task": task}


def card_v03(url: str | None, version: str | None = "0.3.0", **fields: Json) -> JsonObject:
    card: JsonObject = {"name": "Agent", "skills": [], **fields}
    if url is not None:
        card["url"] = url
    if version is not None:
        card["protocolVersion"] = version
    return card


def card_v1(*interfaces: tuple[str, str, str], **fields: Json) -> JsonObject:
    """Each interface with its url, binding and version."""
    listed: list[Json] = [
        {"url": url, "protocolBinding": binding, "protocolVersion": version}
        for url, binding, version in interfaces
    ]
    return {"name": "Agent", "supportedInterfaces": listed, **fields}
