"""The whole system in this process, on a free port, with a client that speaks its REST interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from trunkline.api.server import base_url, listen, serving
from trunkline.clock import Clock
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.settings import load_settings
from trunkline.wiring import Interceptors, System, open_system
from trunkline.wiring.descriptors import connection_limits

_FINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


class Answer(msgspec.Struct, frozen=True):
    """What the API said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> JsonObject:
        value = decode(self.body)
        if not isinstance(value, dict):
            raise TypeError(f"The answer is not a JSON object: {self.body[:200]!r}")
        return value


class RunningSystem:
    def __init__(self, url: str, session: aiohttp.ClientSession, embedded: System) -> None:
        self.url = url
        self.embedded = embedded
        self._session = session

    async def call(
        self, method: str, path: str, body: Json | bytes = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """`path` is under `/api/v1` unless it begins with two slashes."""
        address = self.url + (path[1:] if path.startswith("//") else f"/api/v1{path}")
        data = body if isinstance(body, bytes) else None if body is None else encode(body)
        async with self._session.request(method, address, data=data, headers=headers) as response:
            return Answer(response.status, response.headers.copy(), await response.read())

    async def register(self, name: str, url: str, **fields: Json) -> JsonObject:
        answer = await self.call("POST", "/agents", {"name": name, "url": url, **fields})
        return _expect(answer, {201}).json

    async def save(self, definition: Json | str) -> JsonObject:
        """Saves a workflow, given as YAML text or as a JSON value."""
        body = definition.encode() if isinstance(definition, str) else encode(definition)
        return _expect(await self.call("POST", "/workflows", body), {200, 201}).json

    async def start(
        self, workflow: str, run_input: Json = None, headers: Mapping[str, str] | None = None
    ) -> str:
        answer = await self.call(
            "POST", f"/workflows/{workflow}/execute", {} if run_input is None else run_input, headers
        )
        return str(_expect(answer, {200, 202}).json["id"])

    async def run(
        self,
        workflow: str,
        run_input: Json = None,
        *,
        timeout: timedelta = timedelta(minutes=1),  # noqa: ASYNC109 - of the request
    ) -> JsonObject:
        """Starts a run and waits for its end."""
        path = f"/workflows/{workflow}/execute?wait={round(timeout.total_seconds())}"
        return _expect(await self.call("POST", path, {} if run_input is None else run_input), {200}).json

    async def get(self, run_id: str) -> JsonObject:
        return _expect(await self.call("GET", f"/runs/{run_id}"), {200}).json

    async def items(self, path: str) -> list[JsonObject]:
        """All items of a list, page after page, e.g. of `/runs/{id}/events`."""
        found: list[JsonObject] = []
        cursor: Json = None
        separator = "&" if "?" in path else "?"
        while True:
            page = f"{path}{separator}cursor={cursor}" if cursor else path
            answer = _expect(await self.call("GET", page), {200}).json
            found += objects_in(answer["items"])
            cursor = answer["next_cursor"]
            if cursor is None:
                return found

    async def metric(self, name: str, **labels: str) -> float | None:
        """One sample of `/metrics`; None when there is none with exactly these labels."""
        text = _expect(await self.call("GET", "//metrics"), {200}).body.decode()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == name and sample.labels == labels:
                    return sample.value
        return None

    async def wait_for_metric(self, name: str, value: float, **labels: str) -> None:
        """Until the sample has that value."""
        while await self.metric(name, **labels) != value:  # noqa: ASYNC110 - metrics have no notification
            await asyncio.sleep(0.02)

    async def wait_for(self, run_id: str, statuses: Collection[str] = _FINAL) -> JsonObject:
        """Follows the run's events until it has one of the statuses; the test's own time limit ends a vain wait."""
        seen = 0
        while True:
            run = await self.get(run_id)
            if run["status"] in statuses:
                return run
            with self.embedded.api.run_queries.watch(_run_id(run_id)) as watch:
                status, seq = await self.embedded.api.run_queries.status(_run_id(run_id))
                if status not in statuses and seq == seen:
                    await watch.changed(1.0)
                seen = seq

    async def wait_for_step(self, run_id: str, step: str, statuses: Collection[str]) -> JsonObject:
        while True:
            run = await self.get(run_id)
            found = step_of(run, step)
            if found["status"] in statuses:
                return found
            with self.embedded.api.run_queries.watch(_run_id(run_id)) as watch:
                await watch.changed(0.05)


def step_of(run: JsonObject, name: str) -> JsonObject:
    steps = run["steps"]
    if isinstance(steps, list):
        for step in steps:
            if isinstance(step, dict) and step["name"] == name:
                return step
    raise LookupError(f"The run has no step {name}.")


def error_of(thing: JsonObject) -> JsonObject:
    """The error of a run or a step; there must be one."""
    error = thing["error"]
    if not isinstance(error, dict):
        raise TypeError(f"It has no error: {thing}")
    return error


def objects_in(value: Json) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _run_id(text: str) -> RunId:
    return RunId(text)


def _expect(answer: Answer, statuses: Collection[int]) -> Answer:
    if answer.status not in statuses:
        raise AssertionError(f"HTTP {answer.status}: {answer.body.decode(errors='replace')[:2000]}")
    return answer


@asynccontextmanager
async def running_system(
    data: Path,
    *,
    port: int = 0,
    clock: Clock | None = None,
    interceptors: Interceptors | None = None,
    **settings: object,
) -> AsyncGenerator[RunningSystem]:
    """Starts it on `data`; `settings` are those of `trunkline up`."""
    flags = {"host": "127.0.0.1", "port": port, "data": data, "stop_timeout": "1s", **settings}
    loaded = load_settings(flags)
    with listen("127.0.0.1", port) as listener:
        async with (
            open_system(loaded, clock=clock, interceptors=interceptors) as embedded,
            serving(embedded.app, listener, limits=connection_limits(loaded)),
            aiohttp.ClientSession() as session,
        ):
            yield RunningSystem(base_url(listener), session, embedded)
