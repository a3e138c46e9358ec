"""A caller of published workflows that sees what is on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.sse import SseParser
from trunkline.testing import RunningSystem
from trunkline.testing.system import objects_in

_TERMINAL = ("completed", "failed", "canceled", "rejected")
# No stream of these tests has more; one that repeats itself would never end.
_MOST_EVENTS = 500


class StreamEvent(NamedTuple):
    # None: the event has no id.
    id: str | None
    result: JsonObject

    @property
    def kind(self) -> str:
        return next(iter(self.result)) if "kind" not in self.result else str(self.result["kind"])


class A2ACaller:
    """Of one publication, in one version of A2A."""

    def __init__(self, system: RunningSystem | str, publication: str, version: str = "1.0") -> None:
        """`system`: or its base URL."""
        base = system if isinstance(system, str) else system.url
        self.url = f"{base}/a2a/{publication}"
        self._headers = {"Content-Type": "application/json"}
        if version != "0.3":
            self._headers["A2A-Version"] = version

    async def response(self, method: str, params: Json) -> JsonObject:
        """The JSON-RPC response, with its result or its error."""
        return await self.post({"jsonrpc": "2.0", "id": "1", "method": method, "params": params})

    async def post(self, body: Json, headers: dict[str, str] | None = None) -> JsonObject:
        data = body if isinstance(body, bytes) else encode(body)
        sent = self._headers | (headers or {})
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.url, data=data, headers=sent) as response,
        ):
            found = decode(await response.read())
        assert isinstance(found, dict)
        return found

    async def call(self, method: str, params: Json) -> JsonObject:
        """The result."""
        response = await self.response(method, params)
        result = response.get("result")
        assert isinstance(result, dict), response
        return result

    async def refused(self, method: str, params: Json) -> int:
        """The code of the error."""
        error = (await self.response(method, params)).get("error")
        assert isinstance(error, dict)
        assert isinstance(error["code"], int)
        return error["code"]

    async def send(self, message: JsonObject, **configuration: Json) -> JsonObject:
        """`SendMessage`: the task."""
        params: JsonObject = {"message": message, "configuration": configuration}
        task = (await self.call("SendMessage", params))["task"]
        assert isinstance(task, dict)
        return task

    async def task(self, task_id: Json) -> JsonObject:
        return await self.call("GetTask", {"id": task_id})

    async def task_in(self, task_id: Json, *states: str) -> JsonObject:
        """Waits until the task has one of the states."""
        while True:
            task = await self.task(task_id)
            if state_of(task) in states:
                return task
            await asyncio.sleep(0.02)

    @asynccontextmanager
    async def stream(
        self, method: str, params: Json, last_event_id: str | None = None
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent]]:
        headers = dict(self._headers)
        if last_event_id is not None:
            headers["Last-Event-ID"] = last_event_id
        body = encode({"jsonrpc": "2.0", "id": "1", "method": method, "params": params})
        timeout = aiohttp.ClientTimeout(total=60)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(self.url, data=body, headers=headers) as response,
        ):
            assert response.headers["Content-Type"].startswith("text/event-stream"), await response.text()
            yield _events(response)

    async def streamed(
        self, method: str, params: Json, last_event_id: str | None = None
    ) -> list[StreamEvent]:
        """All events up to the end of the stream."""
        found: list[StreamEvent] = []
        async with self.stream(method, params, last_event_id) as events:
            async for event in events:
                found.append(event)
                assert len(found) < _MOST_EVENTS, "the stream does not end"
        return found


async def _events(response: aiohttp.ClientResponse) -> AsyncGenerator[StreamEvent]:
    parser = SseParser(max_line_bytes=10_000_000, max_event_bytes=10_000_000)
    async for chunk in response.content.iter_any():
        for event in parser.feed(chunk):
            data = decode(event.data)
            assert isinstance(data, dict)
            assert isinstance(data["result"], dict)
            yield StreamEvent(event.id or None, data["result"])


def text(message: str, message_id: str = "m-1", **fields: Json) -> JsonObject:
    """A message of 1.0 with one text part."""
    return {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": message}], **fields}


def text_v03(message: str, message_id: str = "m-1", **fields: Json) -> JsonObject:
    parts: Json = [{"kind": "text", "text": message}]
    return {"kind": "message", "messageId": message_id, "role": "user", "parts": parts, **fields}


def state_of(task: JsonObject) -> str:
    status = task["status"]
    assert isinstance(status, dict)
    return str(status["state"]).removeprefix("TASK_STATE_").lower().replace("_", "-")


def status_text(task: JsonObject) -> str:
    status = task["status"]
    assert isinstance(status, dict)
    message = status["message"]
    assert isinstance(message, dict)
    return "".join(str(part["text"]) for part in objects_in(message["parts"]) if "text" in part)


def parts_of(task: JsonObject) -> list[JsonObject]:
    """Of all artifacts."""
    return [part for artifact in objects_in(task.get("artifacts")) for part in objects_in(artifact["parts"])]
