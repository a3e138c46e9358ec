"""A client of the REST interface that can tell a rejected request from a process that has died."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from time import monotonic
from typing import cast

import aiohttp
import msgspec

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.sse import SseParser

_MAX_EVENT_BYTES = 16 * 1024 * 1024


class ServerGone(Exception):
    """The process that was asked is not there, or went away before it had answered."""


class RequestRefused(Exception):
    """The answer is an error."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"HTTP {status}: {body[:1000]}")
        self.status = status


class RunEvent(msgspec.Struct, frozen=True):
    seq: int
    type: str
    data: JsonObject


class TrunklineClient:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.url = url
        self._session = session

    async def call(
        self, method: str, path: str, body: Json | bytes = None, headers: Mapping[str, str] | None = None
    ) -> JsonObject:
        return cast("JsonObject", decode(await self.raw(method, f"/api/v1{path}", body, headers)))

    async def raw(
        self, method: str, path: str, body: Json | bytes = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        data = body if isinstance(body, bytes) else None if body is None else encode(body)
        try:
            async with self._session.request(method, self.url + path, data=data, headers=headers) as response:
                content = await response.read()
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as exc:
            raise ServerGone from exc
        if response.status >= 400:
            raise RequestRefused(response.status, content.decode(errors="replace"))
        return content

    async def start(self, workflow: str, key: str) -> str:
        """Starts the run that belongs to `key`, or finds it."""
        headers = {"Idempotency-Key": key}
        run = await self.call("POST", f"/workflows/{workflow}/execute", {"key": key}, headers)
        return str(run["id"])

    async def run(self, run_id: str) -> JsonObject:
        return await self.call("GET", f"/runs/{run_id}")

    async def send_command(self, path: str, body: Json = None) -> None:
        """Asks for something that may have been done already: a conflict says so."""
        try:
            await self.call("POST", path, {} if body is None else body)
        except RequestRefused as exc:
            if exc.status != 409:
                raise

    async def follow(self, run_id: str) -> AsyncGenerator[RunEvent]:
        """The events of the run, from the first to the final one; `ServerGone` when the stream ends before."""
        event = RunEvent(0, "", {})
        try:
            async with self._session.get(
                f"{self.url}/api/v1/runs/{run_id}/events", headers={"Accept": "text/event-stream"}
            ) as response:
                parser = SseParser(max_line_bytes=_MAX_EVENT_BYTES, max_event_bytes=_MAX_EVENT_BYTES)
                async for chunk in response.content.iter_any():
                    for message in parser.feed(chunk):
                        event = msgspec.json.decode(message.data, type=RunEvent)
                        yield event
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as exc:
            raise ServerGone from exc
        if event.type not in FINAL_EVENTS:
            raise ServerGone

    async def pages(self, path: str) -> list[JsonObject]:
        items: list[JsonObject] = []
        cursor: Json = None
        while True:
            begin = "&" if "?" in path else "?"
            query = f"limit=1000&cursor={cursor}" if cursor is not None else "limit=1000"
            page = await self.call("GET", f"{path}{begin}{query}")
            items += cast("list[JsonObject]", page["items"])
            cursor = page["next_cursor"]
            if cursor is None:
                return items

    async def gauge(self, name: str) -> dict[str, float]:
        """The values of a metric by its labels as they are written."""
        text = (await self.raw("GET", "/metrics")).decode()
        values = (
            line.removeprefix(name).rpartition(" ") for line in text.splitlines() if line.startswith(name)
        )
        return {labels: float(value) for labels, _, value in values}


class FailoverClient(TrunklineClient):
    """Asks another process when one is gone or cannot serve; `ServerGone` when none has answered for a long time."""

    def __init__(self, session: aiohttp.ClientSession, urls: Callable[[], Sequence[str]]) -> None:
        super().__init__(session, "")
        self._urls = urls
        self._turn = 0

    async def raw(
        self, method: str, path: str, body: Json | bytes = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        until = monotonic() + _TIMEOUT_SECONDS
        while True:
            self._go_on()
            try:
                return await super().raw(method, path, body, headers)
            except ServerGone:
                if monotonic() > until:
                    raise
            except RequestRefused as exc:
                if exc.status != _UNAVAILABLE or monotonic() > until:
                    raise
            await asyncio.sleep(_PAUSE_SECONDS)

    async def follow(self, run_id: str) -> AsyncGenerator[RunEvent]:
        self._go_on()
        async for event in super().follow(run_id):
            yield event

    def _go_on(self) -> None:
        urls = self._urls()
        self._turn += 1
        self.url = urls[self._turn % len(urls)]


_UNAVAILABLE = 503
_PAUSE_SECONDS = 0.5
# Only a system that is down for good takes so long.
_TIMEOUT_SECONDS = 90

FINAL_EVENTS = {"RunCompleted": "COMPLETED", "RunFailed": "FAILED", "RunCancelled": "CANCELLED"}
