"""
Agents for tests: real HTTP servers on free ports of this machine, whose answers a test decides.

    async with ScriptedAgent(simple_success({"result": "hi"})) as agent:
        ... agent.url ... agent.calls

An answer is a JSON value (sent with status 200), a `Reply`, or a function from the call to one of both; given several,
each call takes the next, and the last one stays.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import Self, TypeAlias

import msgspec
from aiohttp import web

from trunkline.jsontypes import Json, JsonObject, decode, encode


class Call(msgspec.Struct, frozen=True):
    """One request that the agent got."""

    number: int
    path: str
    headers: dict[str, str]
    body: JsonObject

    @property
    def method(self) -> Json:
        return self.body.get("method")

    @property
    def id(self) -> Json:
        """The task's id, whichever dialect the request is in."""
        return self.body.get("id", self.body.get("task_id"))

    @property
    def message(self) -> JsonObject:
        """`params.message` of a JSON-RPC request."""
        params = self.body.get("params")
        message = params.get("message") if isinstance(params, dict) else None
        return message if isinstance(message, dict) else {}


class Reply(msgspec.Struct, frozen=True):
    """An answer that is not just JSON with status 200."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = MappingProxyType({"Content-Type": "application/json"})


Scripted: TypeAlias = "Json | Reply"
Script: TypeAlias = "Scripted | Callable[[Call], Scripted | Awaitable[Scripted]]"


class ScriptedAgent:
    """Keeps every call; `card` is what it publishes under `/.well-known/agent-card.json`, if anything."""

    def __init__(self, *scripts: Script, card: JsonObject | None = None) -> None:
        self._scripts = list(scripts)
        self._card = card
        self.calls: list[Call] = []
        self.url = ""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/.well-known/agent-card.json", self._show_card)
        app.router.add_post("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/agent"
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    def script(self, *scripts: Script) -> None:
        """From now on."""
        self._scripts = list(scripts)

    def publish(self, card: JsonObject | None) -> None:
        self._card = card

    async def _show_card(self, request: web.Request) -> web.Response:
        del request
        if self._card is None:
            return web.Response(status=404)
        return web.Response(body=encode(self._card), content_type="application/json")

    async def _answer(self, request: web.Request) -> web.Response:
        body = decode(await request.read())
        call = Call(
            len(self.calls) + 1, request.path, dict(request.headers), body if isinstance(body, dict) else {}
        )
        self.calls.append(call)
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        scripted = script(call) if callable(script) else script
        answer = await scripted if isinstance(scripted, Awaitable) else scripted
        if isinstance(answer, Reply):
            return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
        return web.Response(body=encode(answer), content_type="application/json")


def simple_success(output: Json) -> Callable[[Call], Json]:
    return lambda call: {"task_id": call.id, "status": "success", "output": output, "error": None}


def simple_error(message: str) -> Callable[[Call], Json]:
    return lambda call: {"task_id": call.id, "status": "error", "output": None, "error": message}


def jsonrpc_task(
    text: str, *, state: str = "completed", remote_id: str = "remote-1", context_id: str = "context-1"
) -> Callable[[Call], Json]:
    """A task of A2A 0.3; its text is the artifact's when it is completed, the status message's otherwise."""

    def answer(call: Call) -> Json:
        parts: Json = [{"kind": "text", "text": text}]
        status: JsonObject = {"state": state}
        result: JsonObject = {"kind": "task", "id": remote_id, "contextId": context_id, "status": status}
        if state == "completed":
            result["artifacts"] = [{"artifactId": "answer", "parts": parts}]
        else:
            status["message"] = {"kind": "message", "role": "agent", "messageId": "m-1", "parts": parts}
        return {"jsonrpc": "2.0", "id": call.id, "result": result}

    return answer


def jsonrpc_error(code: int, message: str) -> Callable[[Call], Json]:
    return lambda call: {"jsonrpc": "2.0", "id": call.id, "error": {"code": code, "message": message}}
