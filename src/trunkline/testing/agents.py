"""
Agents for tests: real HTTP servers on free ports of this machine, whose answers a test decides.

    async with ScriptedAgent(simple_success({"result": "hi"})) as agent:
        ... agent.url ... agent.calls

An answer is a JSON value (sent with status 200), a `Reply`, a `Hangup`, an `EndlessReply`, a `Stream`, or a function
from the call to one of them; given several, each call takes the next, and the last one stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
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


class Hangup(msgspec.Struct, frozen=True):
    """Writes these bytes, whatever they are, and closes the connection."""

    sent: bytes = b""


class EndlessReply(msgspec.Struct, frozen=True):
    """An answer that goes on forever, one byte at a time."""

    pause: timedelta = timedelta(seconds=1)


class Stream:
    """
    Server-sent events: each item is one event's JSON. At an `asyncio.Event` it waits for that, at a `Hangup` it breaks
    off.
    """

    def __init__(self, *items: Json | asyncio.Event | Hangup) -> None:
        self.items = items


Scripted: TypeAlias = "Json | Reply | Hangup | EndlessReply | Stream"
Script: TypeAlias = "Scripted | Callable[[Call], Scripted | Awaitable[Scripted]]"


class ScriptedAgent:
    """
    Keeps every call, and those whose caller went away before the answer.

    `card` is what it publishes under `/.well-known/agent-card.json`, if anything; without a `port` it takes a free one.
    """

    def __init__(self, *scripts: Script, card: JsonObject | Reply | None = None, port: int = 0) -> None:
        self._scripts = list(scripts)
        self._card = card
        self._port = port
        self._changed = asyncio.Event()
        self.calls: list[Call] = []
        self.abandoned: list[Call] = []
        # Headers of the requests for the card.
        self.card_requests: list[dict[str, str]] = []
        self.url = ""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/.well-known/agent-card.json", self._show_card)
        app.router.add_post("/{path:.*}", self._answer)
        # Cancelled when the caller goes away: that is how an agent notices.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
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

    def publish(self, card: JsonObject | Reply | None) -> None:
        self._card = card

    @property
    def port(self) -> int:
        return self._runner.addresses[0][1]

    async def called(self, times: int = 1) -> Call:
        """Waits for that many calls; the last of them."""
        while len(self.calls) < times:
            await self._wait_for_change()
        return self.calls[times - 1]

    async def called_for(self, method: str) -> Call:
        """Waits for a call of this JSON-RPC method; the first of them."""
        while True:
            for call in self.calls:
                if call.method == method:
                    return call
            await self._wait_for_change()

    async def caller_left(self) -> Call:
        """Waits until a caller has gone away unanswered."""
        while not self.abandoned:
            await self._wait_for_change()
        return self.abandoned[0]

    async def _wait_for_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def _show_card(self, request: web.Request) -> web.Response:
        self.card_requests.append(dict(request.headers))
        match self._card:
            case None:
                return web.Response(status=404)
            case Reply():
                return _response(self._card)
            case card:
                return web.Response(body=encode(card), content_type="application/json")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = decode(await request.read())
        call = Call(
            len(self.calls) + 1,
            request.path_qs,
            dict(request.headers),
            body if isinstance(body, dict) else {},
        )
        self.calls.append(call)
        self._changed.set()
        try:
            return await self._say(request, call)
        except asyncio.CancelledError:
            self.abandoned.append(call)
            self._changed.set()
            raise

    async def _say(self, request: web.Request, call: Call) -> web.StreamResponse:
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        scripted = script(call) if callable(script) else script
        answer = await scripted if isinstance(scripted, Awaitable) else scripted
        match answer:
            case Reply():
                return _response(answer)
            case Hangup(sent):
                return _hang_up(request, sent)
            case EndlessReply(pause):
                return await _endless(request, pause)
            case Stream():
                return await _stream(request, answer)
            case value:
                return web.Response(body=encode(value), content_type="application/json")


def _response(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, body=reply.body, headers=reply.headers)


def _hang_up(request: web.Request, sent: bytes) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.write(sent)
        request.transport.close()
    return web.Response()


async def _endless(request: web.Request, pause: timedelta) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(pause.total_seconds())


async def _stream(request: web.Request, stream: Stream) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for item in stream.items:
        match item:
            case asyncio.Event():
                await item.wait()
            case Hangup(sent):
                return _hang_up(request, sent)
            case value:
                await response.write(b"data: " + encode(value) + b"\n\n")
    await response.write_eof()
    return response


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
