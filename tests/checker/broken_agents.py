"""
The agents of good_agents.py and defects.py behind one real HTTP server.

    async with broken_agents() as home:
        home.agent(name)        the address of a key of DEFECTS or of WARNED, or of `good-<protocol>`
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec
from aiohttp import web
from tests.checker.defects import DEFECTS, WARNED
from tests.checker.good_agents import (
    GOOD,
    AgentRequest,
    ClosesConnection,
    EndlessAnswer,
    NeverAnswers,
    Reaction,
    Reply,
)

from trunkline.jsontypes import decode, encode

_MEBIBYTE = b"x" * 1024 * 1024
_DEFECTS = {**DEFECTS, **WARNED}


class _Server:
    def __init__(self) -> None:
        self.asked: dict[str, list[AgentRequest]] = {}
        self.played: dict[str, str] = {}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        asked = await _read(request)
        self.asked.setdefault(name, []).append(asked)
        name = self.played.get(name, name)
        defect = _DEFECTS.get(name)
        protocol = name.removeprefix("good-") if defect is None else defect.protocol
        if asked.method == "GET" and not (asked.wants_card and protocol.startswith("a2a")):
            good = Reply(status=405 if not asked.wants_card else 404, value={"error": "Send a POST"})
        else:
            good = GOOD[protocol](asked)
        return await _react(request, good if defect is None else defect.alter(asked, good))


async def _read(request: web.Request) -> AgentRequest:
    body = await request.read()
    try:
        value = decode(body)
    except msgspec.DecodeError:
        value = None
    return AgentRequest(request.method, request.path, request.headers.get("Content-Type", ""), body, value)


async def _react(request: web.Request, reaction: Reaction) -> web.StreamResponse:
    match reaction:
        case Reply(status=status, value=value, raw=raw, headers=headers):
            return web.Response(status=status, body=encode(value) if raw is None else raw, headers=headers)
        case NeverAnswers():
            await asyncio.Event().wait()
            return web.Response()
        case ClosesConnection(sent=sent):
            assert request.transport is not None
            request.transport.write(sent)
            request.transport.close()
            return web.Response()
        case EndlessAnswer():
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            for _ in range(100):
                await response.write(_MEBIBYTE)
            return response


class AgentServer(NamedTuple):
    url: str
    # Every request, by the name of the agent.
    asked: Mapping[str, list[AgentRequest]]
    # Which agent plays another one at that one's address.
    played: dict[str, str]

    def agent(self, name: str) -> str:
        return f"{self.url}/{name}/agent"


@asynccontextmanager
async def broken_agents() -> AsyncGenerator[AgentServer]:
    server = _Server()
    app = web.Application()
    app.router.add_route("*", "/{name}/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield AgentServer(f"http://{host}:{port}", server.asked, server.played)
    finally:
        await runner.cleanup()
