"""
The agents of the crash tests: one HTTP server, one path for each kind of agent.

They live in the test's own process, so they outlive every life, and note each call. They hold nothing against a
second call: what they answer follows from the request alone, except for what the world outside would remember
too (a question asked before, a task under way).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import Literal, Self, TypeAlias, cast

import msgspec
from aiohttp import web

from trunkline.bridge.agents.resolver import PROCESS_HEADER
from trunkline.jsontypes import Json, JsonObject, decode, encode

CallKind: TypeAlias = Literal["send", "poll", "cancel"]
# None: hangs up. A list: the events of a stream.
Behaviour: TypeAlias = Callable[["Request"], Awaitable["JsonObject | list[JsonObject] | web.Response | None"]]

_KINDS: dict[Json, CallKind] = {"tasks/get": "poll", "tasks/resubscribe": "poll", "tasks/cancel": "cancel"}
# Between the events of a stream, so that something can happen there.
_BETWEEN_EVENTS = 0.03


class ReceivedCall(msgspec.Struct, kw_only=True):
    """One request that an agent got."""

    agent: str
    kind: CallKind
    task_id: str
    message_id: str | None
    body: bytes
    # The number of the life that sent it.
    life: int
    # By the clock of this process.
    at: float = 0.0


class Request(msgspec.Struct, kw_only=True):
    """A call, with what its agent needs to answer it."""

    agent: str
    call: ReceivedCall
    body: JsonObject
    query: dict[str, str]

    @property
    def text(self) -> str:
        """What the caller said, in either dialect."""
        if "input" in self.body:
            return str(cast("JsonObject", self.body["input"])["text"])
        parts = cast("list[JsonObject]", self.message["parts"])
        return str(parts[0]["text"])

    @property
    def message(self) -> JsonObject:
        return cast("JsonObject", cast("JsonObject", self.body.get("params", {})).get("message", {}))

    @property
    def remote_task(self) -> str:
        params = cast("JsonObject", self.body.get("params", {}))
        return str(params.get("id") or self.message.get("taskId") or f"remote-{self.call.task_id}")


class CrashTestAgents:
    """
    `life` is the number of the process that runs now; the code that starts one sets it. If several run at once,
    `life_of` finds the caller's by the name that it sends with each request (`process_header` of the settings).
    """

    def __init__(self) -> None:
        app = web.Application()
        app.router.add_post("/{agent}", self._serve)
        app.router.add_get("/streaming/.well-known/agent-card.json", self._card)
        # A caller that goes away ends the work on its call.
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        self._address = ""
        self.life = 0
        self.life_of: Callable[[str], int] | None = None
        self.calls: list[ReceivedCall] = []
        # Told of each call before it is answered, and after.
        self.on_received: Callable[[], None] = _nothing
        self.on_answered: Callable[[], None] = _nothing
        self.gate = asyncio.Event()
        self._arrival = asyncio.Event()
        self._polls: Counter[str] = Counter()
        self._cut: set[str] = set()
        # By remote task: what it comes to.
        self._said: dict[str, JsonObject] = {}
        self.cancelled: set[str] = set()
        self.behaviours: dict[str, Behaviour] = {
            "plain": self._plain,
            "rpc": self._rpc,
            "flaky": self._flaky,
            "polled": self._polled,
            "asking": self._asking,
            "holding": self._holding,
            "gated": self._gated,
            "lasting": self._lasting,
            "cutting": self._cutting,
            "streaming": self._streaming,
            "careless": self._careless,
        }

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self._address = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    def url(self, agent: str, query: str = "") -> str:
        return f"{self._address}/{agent}" + (f"?{query}" if query else "")

    def forget(self) -> None:
        """Before a new case."""
        self.calls = []
        self.life = 0
        self.life_of = None
        self.gate = asyncio.Event()
        self.on_received = self.on_answered = _nothing

    async def called_for(self, run_id: str) -> None:
        """Returns when an agent has been called for this run."""
        while not any(call.task_id.startswith(f"{run_id}/") for call in self.calls):
            self._arrival.clear()
            await self._arrival.wait()

    async def next_send(self, agent: str) -> ReceivedCall:
        """The next call for work that this agent gets; it is under way when this returns."""
        seen = len(self.calls)
        while True:
            for call in self.calls[seen:]:
                if call.agent == agent and call.kind == "send":
                    return call
            seen = len(self.calls)
            self._arrival.clear()
            await self._arrival.wait()

    async def left_alone(self) -> None:
        """
        Returns when nobody is connected any more: whatever comes from now on, a new life has sent.

        Seen twice, with a turn of the loop between: a connection that was made but not yet taken is found too.
        """
        quiet = 0
        while quiet < 2:
            await asyncio.sleep(0.002)
            server = self._runner.server
            quiet = 0 if server is None or server.connections else quiet + 1

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = cast("JsonObject", decode(raw))
        agent = request.match_info["agent"]
        message = cast("JsonObject", cast("JsonObject", body.get("params", {})).get("message", {}))
        call = ReceivedCall(
            agent=agent,
            kind=_KINDS.get(body.get("method"), "send"),
            task_id=str(body.get("id", body.get("task_id"))),
            message_id=cast("str | None", message.get("messageId")),
            body=raw,
            life=self.life if self.life_of is None else self.life_of(request.headers.get(PROCESS_HEADER, "")),
            at=monotonic(),
        )
        self.calls.append(call)
        self._arrival.set()
        self.on_received()
        understood = Request(agent=agent, call=call, body=body, query=dict(request.query))
        if "ms" in request.query:
            await asyncio.sleep(float(request.query["ms"]) / 1000)
        answer = await self.behaviours[agent](understood)
        if answer is None:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if isinstance(answer, list):
            return await self._stream(request, answer)
        response = answer if isinstance(answer, web.Response) else web.Response(body=encode(answer))
        # The caller may be dead by now: that is what is tested.
        with suppress(ConnectionResetError):
            await response.prepare(request)
            await response.write_eof()
        self.on_answered()
        return response

    async def _stream(self, request: web.Request, events: list[JsonObject]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        # As above.
        with suppress(ConnectionResetError):
            await response.prepare(request)
            for event in events:
                await response.write(b"data: " + encode(event) + b"\n\n")
                await asyncio.sleep(_BETWEEN_EVENTS)
            await response.write_eof()
        self.on_answered()
        return response

    async def _card(self, request: web.Request) -> web.Response:
        card: JsonObject = {
            "name": "streaming",
            "url": self.url("streaming"),
            "protocolVersion": "0.3.0",
            "preferredTransport": "JSONRPC",
            "capabilities": {"streaming": True},
            "skills": [],
        }
        del request
        return web.Response(body=encode(card), content_type="application/json")

    async def _plain(self, request: Request) -> JsonObject:
        return _simple(request, f"plain({request.text})")

    async def _rpc(self, request: Request) -> JsonObject:
        return _task(request, "completed", f"rpc({request.text})")

    async def _flaky(self, request: Request) -> JsonObject | web.Response:
        """Fails twice: the task's id counts the failures that were answered."""
        failures = int(request.call.task_id.rpartition("/")[2])
        if failures < 2:
            return web.Response(status=503, text="busy")
        return _task(request, "completed", f"flaky({request.text})")

    async def _polled(self, request: Request) -> JsonObject:
        """Takes the work, and is done when it is asked for the second time (`polls`)."""
        if request.call.kind == "send":
            return _task(request, "working", request.text)
        self._polls[request.remote_task] += 1
        if self._polls[request.remote_task] < int(request.query.get("polls", "2")):
            return _task(request, "working", "not yet")
        return _task(request, "completed", "polled")

    async def _asking(self, request: Request) -> JsonObject:
        if "taskId" not in request.message:
            return _task(request, "input-required", "Which one?")
        return _task(request, "completed", f"asked({request.text})")

    async def _holding(self, request: Request) -> JsonObject:
        """Answers when its caller has gone away: never."""
        await asyncio.Event().wait()
        return _simple(request, "held")

    async def _gated(self, request: Request) -> JsonObject:
        """Answers when the test opens the gate."""
        await self.gate.wait()
        return _simple(request, f"gated({request.text})")

    async def _lasting(self, request: Request) -> JsonObject:
        """Works until it is told to stop."""
        if request.call.kind == "cancel":
            self.cancelled.add(request.call.task_id)
        return _task(request, "canceled" if request.call.task_id in self.cancelled else "working", "lasting")

    async def _streaming(self, request: Request) -> JsonObject | list[JsonObject]:
        """Says that it works, gives its answer piece by piece, and goes on with it whoever listens."""
        if request.call.kind == "send":
            whole = self._said[request.remote_task] = _task(
                request, "completed", f"streaming({request.text})"
            )
            return [_task(request, "working", "It begins"), whole]
        known = self._said[request.remote_task]
        return [known] if request.body["method"] == "tasks/resubscribe" else known

    async def _careless(self, request: Request) -> JsonObject:
        """Answers in the required format when it is asked to: the suffix of a task's id counts the corrections."""
        corrected = "." in request.call.task_id.rpartition("/")[2]
        return _task(request, "completed", '{"text": "corrected"}' if corrected else "I have no idea.")

    async def _cutting(self, request: Request) -> JsonObject | None:
        """Loses the answer to the first call."""
        if request.call.task_id not in self._cut:
            self._cut.add(request.call.task_id)
            return None
        return _simple(request, f"cutting({request.text})")


def _nothing() -> None:
    """Nobody wants to know."""


def _simple(request: Request, text: str) -> JsonObject:
    return {"task_id": request.call.task_id, "status": "success", "output": {"text": text}, "error": None}


def _task(request: Request, state: str, text: str) -> JsonObject:
    parts: Json = [{"kind": "text", "text": text}]
    status: JsonObject = {"state": state}
    result: JsonObject = {
        "kind": "task",
        "id": request.remote_task,
        "contextId": f"context-{request.call.task_id}",
        "status": status,
    }
    if state == "completed":
        result["artifacts"] = [{"artifactId": "answer", "parts": parts}]
    else:
        status["message"] = {"kind": "message", "role": "agent", "messageId": "m-1", "parts": parts}
    return {"jsonrpc": "2.0", "id": request.call.task_id, "result": result}
