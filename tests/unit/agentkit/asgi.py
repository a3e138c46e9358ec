"""Calls of an agent without a socket: its ASGI app, and a caller who can go away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from trunkline.agentkit import Agent
from trunkline.agentkit.asgi import Event
from trunkline.jsontypes import Json, JsonObject, decode, encode


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> JsonObject:
        value = decode(self.body)
        assert isinstance(value, dict)
        return value


class Exchange:
    """One request under way."""

    def __init__(self, agent: Agent, scope: dict[str, Any], body: bytes) -> None:
        self._parts = [body[: len(body) // 2], body[len(body) // 2 :]]
        self._gone = asyncio.Event()
        self._sent: asyncio.Queue[Event] = asyncio.Queue()
        self._app = asyncio.create_task(self._call(agent, scope))

    async def _call(self, agent: Agent, scope: dict[str, Any]) -> None:
        await agent(scope, self._receive, self._sent.put)

    async def _receive(self) -> Event:
        if self._parts:
            part = self._parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self._parts)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def go_away(self) -> None:
        """Until the app has noticed."""
        self._gone.set()
        await self._app

    async def answer(self) -> Answer:
        start = await self._sent.get()
        chunks: list[bytes] = []
        while True:
            event = await self._sent.get()
            chunks.append(event["body"])
            if not event.get("more_body", False):
                break
        await self._app
        return Answer(start["status"], _headers(start), b"".join(chunks))

    async def events(self) -> AsyncGenerator[JsonObject]:
        """The results in the events of a stream, as they come."""
        start = await self._sent.get()
        assert _headers(start)["content-type"] == "text/event-stream"
        while (event := await self._sent.get()).get("more_body", False):
            data: bytes = event["body"]
            answer = decode(data.removeprefix(b"data: ").strip())
            assert isinstance(answer, dict)
            result = answer["result"]
            assert isinstance(result, dict)
            yield result


def begin(
    agent: Agent,
    body: Json | bytes = b"",
    *,
    method: str = "POST",
    path: str = "/",
    headers: Mapping[str, str] | None = None,
) -> Exchange:
    told = {"host": "agent.example", **(headers or {})}
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "scheme": "https",
        "headers": [(name.encode(), value.encode()) for name, value in told.items()],
    }
    return Exchange(agent, scope, body if isinstance(body, bytes) else encode(body))


async def post(agent: Agent, body: Json | bytes, **fields: Any) -> Answer:
    return await begin(agent, body, **fields).answer()


async def call(agent: Agent, method: str, params: Json, call_id: Json = "c-1") -> JsonObject:
    """The whole answer."""
    answer = await post(agent, {"jsonrpc": "2.0", "id": call_id, "method": method, "params": params})
    assert answer.status == 200
    assert answer.json["id"] == call_id
    return answer.json


async def result_of(agent: Agent, method: str, params: Json) -> JsonObject:
    answer = await call(agent, method, params)
    result = answer.get("result")
    assert isinstance(result, dict), answer
    return result


def stream(agent: Agent, method: str, params: Json) -> Exchange:
    return begin(agent, {"jsonrpc": "2.0", "id": "s-1", "method": method, "params": params})


@asynccontextmanager
async def living(agent: Agent) -> AsyncGenerator[Agent]:
    """The agent from its server's start to its end, at which it ends what it still does."""
    events: asyncio.Queue[Event] = asyncio.Queue()
    said: asyncio.Queue[Event] = asyncio.Queue()

    async def live() -> None:
        await agent({"type": "lifespan"}, events.get, said.put)

    life = asyncio.create_task(live())
    await events.put({"type": "lifespan.startup"})
    assert (await said.get())["type"] == "lifespan.startup.complete"
    try:
        yield agent
    finally:
        await events.put({"type": "lifespan.shutdown"})
        await life


def _headers(start: Event) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in start["headers"]}
