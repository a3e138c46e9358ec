"""Tasks for one agent, sent together to a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from trunkline.bridge.calls.batches import BatchSender
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.protocols.json_rpc.batches import BatchLimits
from trunkline.transports.address_policy import AddressPolicy
from trunkline.transports.base import TransportError
from trunkline.transports.https import HttpTransport

pytestmark = pytest.mark.anyio

SOON = BatchLimits(max=10, wait_ms=50)
# Only a full batch leaves in time.
FULL_OF_TWO = BatchLimits(max=2, wait_ms=1000)
TIMEOUT = 20.0
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer x"}


class FakeAgent:
    """Keeps what it got; `answer` makes the answers of the calls in one request."""

    def __init__(self) -> None:
        self.bodies: list[Json] = []
        self.headers: list[Mapping[str, str]] = []
        self.answer: Callable[[list[JsonObject]], Json] = lambda calls: [
            echo(call) for call in reversed(calls)
        ]
        self.has_got = asyncio.Event()
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.was_left = asyncio.Event()
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        body: Json = decode(await request.read())
        self.bodies.append(body)
        self.headers.append(request.headers)
        self.has_got.set()
        try:
            await self.is_open.wait()
        except asyncio.CancelledError:
            self.was_left.set()
            raise
        if isinstance(body, dict):
            return web.Response(body=encode(echo(body)), content_type="application/json")
        assert isinstance(body, list)
        answer = self.answer([call for call in body if isinstance(call, dict)])
        return web.Response(body=encode(answer), content_type="application/json")


def echo(call: JsonObject) -> Json:
    return {"jsonrpc": "2.0", "id": call["id"], "result": call["params"]}


def call_of(name: str, size: int = 0) -> bytes:
    return encode({"jsonrpc": "2.0", "id": name, "method": "m", "params": {"for": name, "x": "x" * size}})


@pytest.fixture
async def server() -> AsyncIterator[FakeAgent]:
    agent = FakeAgent()
    app = web.Application(client_max_size=10_000_000)
    app.router.add_post("/", agent.handle)
    async with TestServer(app) as running:
        agent.url = str(running.make_url("/"))
        yield agent
        agent.is_open.set()


@pytest.fixture
async def batches() -> AsyncIterator[BatchSender]:
    async with (
        HttpTransport(AddressPolicy(allow_loopback=True)) as transport,
        BatchSender(transport) as sender,
    ):
        yield sender


async def sent(batches: BatchSender, server: FakeAgent, name: str, limits: BatchLimits | None = SOON) -> Json:
    answer = await batches.post(limits, server.url, call_of(name), HEADERS, TIMEOUT)
    body = decode(answer.body)
    assert isinstance(body, dict)
    assert body["id"] == name
    return body["result"]


async def test_tasks_that_come_together_travel_together(batches: BatchSender, server: FakeAgent) -> None:
    names = ["a", "b", "c"]
    results = await asyncio.gather(*(sent(batches, server, name) for name in names))
    assert results == [{"for": name, "x": ""} for name in names]
    assert server.bodies == [[decode(call_of(name)) for name in names]]


async def test_one_alone_is_sent_as_it_is(batches: BatchSender, server: FakeAgent) -> None:
    await sent(batches, server, "a")
    assert server.bodies == [decode(call_of("a"))]


async def test_a_full_batch_does_not_wait(batches: BatchSender, server: FakeAgent) -> None:
    await asyncio.gather(*(sent(batches, server, name, FULL_OF_TWO) for name in "abcd"))
    assert [len(body) for body in server.bodies if isinstance(body, list)] == [2, 2]


async def test_without_batching_every_task_has_its_own_request(
    batches: BatchSender, server: FakeAgent
) -> None:
    await asyncio.gather(sent(batches, server, "a", None), sent(batches, server, "b", None))
    assert all(isinstance(body, dict) for body in server.bodies)


async def test_other_credentials_are_another_batch(batches: BatchSender, server: FakeAgent) -> None:
    other = {**HEADERS, "Authorization": "Bearer y"}
    theirs = batches.post(SOON, server.url, call_of("b"), other, TIMEOUT)
    await asyncio.gather(sent(batches, server, "a"), theirs)
    assert sorted(headers["Authorization"] for headers in server.headers) == ["Bearer x", "Bearer y"]


async def test_a_batch_names_the_correlation_of_all(batches: BatchSender, server: FakeAgent) -> None:
    headers = {name: {**HEADERS, "X-Correlation-ID": f"c-{name}", "traceparent": name} for name in "ab"}
    await asyncio.gather(
        *(batches.post(SOON, server.url, call_of(name), own, TIMEOUT) for name, own in headers.items())
    )
    assert [got["X-Correlation-ID"] for got in server.headers] == ["c-a, c-b"]


async def test_the_same_id_twice_is_never_in_one_batch(batches: BatchSender, server: FakeAgent) -> None:
    await asyncio.gather(sent(batches, server, "a"), sent(batches, server, "a"))
    assert server.bodies == [decode(call_of("a"))] * 2


async def test_a_batch_stays_below_what_servers_take(batches: BatchSender, server: FakeAgent) -> None:
    bodies = [call_of(name, size=40_000) for name in "abc"]
    await asyncio.gather(*(batches.post(SOON, server.url, body, HEADERS, TIMEOUT) for body in bodies))
    assert sorted(len(body) if isinstance(body, list) else 1 for body in server.bodies) == [1, 2]


async def test_a_missing_answer_fails_its_own_task_only(batches: BatchSender, server: FakeAgent) -> None:
    server.answer = lambda calls: [echo(call) for call in calls if call["id"] != "b"]
    results = await asyncio.gather(*(sent(batches, server, name) for name in "abc"), return_exceptions=True)
    missing = results[1]
    assert isinstance(missing, TransportError)
    assert (missing.code, missing.sent) == ("agent_batch_answer_missing", True)
    assert [results[0], results[2]] == [{"for": "a", "x": ""}, {"for": "c", "x": ""}]


async def test_an_agent_that_is_not_there_fails_all(batches: BatchSender, server: FakeAgent) -> None:
    gone = "http://127.0.0.1:1/"
    results = await asyncio.gather(
        *(batches.post(SOON, gone, call_of(name), HEADERS, TIMEOUT) for name in "ab"), return_exceptions=True
    )
    assert [result.code for result in results if isinstance(result, TransportError)] == [
        "agent_unreachable"
    ] * 2
    assert server.bodies == []


async def test_one_that_is_given_up_leaves_the_others_where_they_are(
    batches: BatchSender, server: FakeAgent
) -> None:
    server.is_open.clear()
    async with asyncio.TaskGroup() as group:
        first, second = (group.create_task(sent(batches, server, name, FULL_OF_TWO)) for name in "ab")
        await server.has_got.wait()
        first.cancel()
        server.is_open.set()
    assert second.result() == {"for": "b", "x": ""}
    assert first.cancelled()


async def test_one_whose_time_is_over_fails_alone(batches: BatchSender, server: FakeAgent) -> None:
    server.is_open.clear()
    async with asyncio.TaskGroup() as group:
        patient = group.create_task(sent(batches, server, "b", FULL_OF_TWO))
        with pytest.raises(TransportError) as raised:
            await batches.post(FULL_OF_TWO, server.url, call_of("a"), HEADERS, 0.1)
        server.is_open.set()
    assert raised.value.code == "agent_timeout"
    assert patient.result() == {"for": "b", "x": ""}


async def test_a_batch_that_no_caller_waits_for_is_cancelled(batches: BatchSender, server: FakeAgent) -> None:
    server.is_open.clear()
    callers = [asyncio.ensure_future(sent(batches, server, name, FULL_OF_TWO)) for name in "ab"]
    await server.has_got.wait()
    for caller in callers:
        caller.cancel()
    async with asyncio.timeout(TIMEOUT):
        await server.was_left.wait()
