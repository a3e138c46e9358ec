"""A run's history, as pages and as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast

import aiohttp
import msgspec
import pytest
from starlette.types import Message
from tests.resources import read_resource

from trunkline.api.event_streams import EventStream
from trunkline.api.resources.runs import EventPage
from trunkline.errors import Unavailable
from trunkline.ids import RunId
from trunkline.jsontypes import Json, JsonObject, decode
from trunkline.machine.state import RunStatus
from trunkline.stores.base import Store
from trunkline.testing import RunningSystem, ScriptedAgent, running_system, simple_success
from trunkline.testing.agents import Call
from trunkline.wiring import Interceptors

pytestmark = pytest.mark.anyio

# Two events a step, each the end of a connection: more than a hundred cuts.
STEPS = 50
CHAIN = "name: chain\nsteps:\n" + "".join(
    f"  s{number}: {{agent: A, needs: [{f's{number - 1}' if number else ''}]}}\n" for number in range(STEPS)
)


class Received(msgspec.Struct):
    id: int
    event: str
    data: JsonObject


def parse(block: bytes) -> Received | None:
    """One block of a stream; None for a comment."""
    fields = dict(line.split(": ", 1) for line in block.decode().splitlines() if not line.startswith(":"))
    if not fields:
        return None
    data = decode(fields["data"])
    assert isinstance(data, dict)
    return Received(int(fields["id"]), fields["event"], data)


async def stream(
    system: RunningSystem, run_id: str, last_event_id: int | None = None, step: str | None = None
) -> AsyncGenerator[Received]:
    headers = {"Accept": "text/event-stream"}
    if last_event_id is not None:
        headers["Last-Event-ID"] = str(last_event_id)
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            f"{system.url}/api/v1/runs/{run_id}/events{'' if step is None else f'?step={step}'}",
            headers=headers,
        ) as response,
    ):
        assert response.status == 200
        assert response.headers["Content-Type"].startswith("text/event-stream")
        buffer = b""
        async for chunk in response.content.iter_any():
            *blocks, buffer = (buffer + chunk).split(b"\n\n")
            for block in blocks:
                received = parse(block)
                if received is not None:
                    yield received


async def history(system: RunningSystem, run_id: str) -> list[Json]:
    answer = await system.call("GET", f"/runs/{run_id}/events?limit=1000")
    read_resource(EventPage, answer.body)
    items = answer.json["items"]
    assert isinstance(items, list)
    return items


@pytest.fixture
async def agent(system: RunningSystem) -> AsyncGenerator[ScriptedAgent]:
    async with ScriptedAgent(simple_success({"text": "done"})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        await system.save(CHAIN)
        yield agent


async def test_a_stream_that_is_opened_at_the_start_ends_after_the_final_event(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    run_id = await system.start("chain")
    received = [event async for event in stream(system, run_id)]
    assert [event.id for event in received] == list(range(1, len(received) + 1))
    assert (received[0].event, received[-1].event) == ("RunStarted", "RunCompleted")
    assert all((event.data["seq"], event.data["type"]) == (event.id, event.event) for event in received)
    assert [event.data for event in received] == await history(system, run_id)


async def test_a_client_that_is_cut_a_hundred_times_misses_nothing_and_sees_nothing_twice(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    turn = asyncio.Semaphore(0)

    async def one_at_a_time(call: Call) -> Json:
        await turn.acquire()
        return {"task_id": call.id, "status": "success", "output": {}, "error": None}

    agent.script(one_at_a_time)
    run_id = await system.start("chain")
    received: list[Received] = []
    cuts = 0
    while not received or received[-1].event != "RunCompleted":
        # Each connection is dropped after its first event.
        events = stream(system, run_id, received[-1].id if received else None)
        async for event in events:
            received.append(event)
            break
        await events.aclose()
        cuts += 1
        turn.release()
    assert cuts > 100
    assert [event.data for event in received] == await history(system, run_id)
    assert len(agent.calls) == STEPS


async def test_a_client_that_leaves_does_not_disturb_the_run(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    run_id = await system.start("chain")
    for _ in range(3):
        events = stream(system, run_id)
        await anext(events)
        await events.aclose()
    assert (await system.wait_for(run_id))["status"] == "COMPLETED"
    assert len(agent.calls) == STEPS


async def test_a_stream_of_a_finished_run_begins_after_last_event_id(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    run = await system.run("chain")
    run_id = str(run["id"])
    last = len(await history(system, run_id))
    assert [event.id async for event in stream(system, run_id, last - 2)] == [last - 1, last]
    assert [event.id async for event in stream(system, run_id, last)] == []
    assert [event.id async for event in stream(system, f"{run_id}", last + 10)] == []
    after = await system.call("GET", f"/runs/{run_id}/events?after={last - 1}")
    items = after.json["items"]
    assert isinstance(items, list)
    assert len(items) == 1


async def test_pages_join_to_the_whole_history(system: RunningSystem, agent: ScriptedAgent) -> None:
    run_id = str((await system.run("chain"))["id"])
    seen: list[Json] = []
    cursor: Json = 0
    while cursor is not None:
        page = (await system.call("GET", f"/runs/{run_id}/events?limit=7&cursor={cursor}")).json
        assert isinstance(page["items"], list)
        assert len(page["items"]) <= 7
        seen += page["items"]
        cursor = page["next_cursor"]
    assert seen == await history(system, run_id)


async def test_events_of_one_step_come_as_pages_and_as_a_stream(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    run_id = await system.start("chain")
    followed = [event.data async for event in stream(system, run_id, step="s1")]
    expected = [
        item
        for item in await system.items(f"/runs/{run_id}/events?limit=1000")
        if cast("JsonObject", item["data"]).get("step") == "s1"
    ]
    assert [item["type"] for item in expected] == ["StepStarted", "StepCompleted"]
    assert followed == expected
    assert await system.items(f"/runs/{run_id}/events?step=s1&limit=1") == expected
    assert await system.items(f"/runs/{run_id}/events?step=s1&after={expected[0]['seq']}") == expected[1:]
    assert await system.items(f"/runs/{run_id}/events?step=nobody") == []
    assert (await system.call("GET", "/runs/nothing/events?step=s1")).status == 404


async def test_a_wrong_last_event_id_is_refused(system: RunningSystem, agent: ScriptedAgent) -> None:
    run_id = await system.start("chain")
    headers = {"Accept": "text/event-stream", "Last-Event-ID": "yesterday"}
    answer = await system.call("GET", f"/runs/{run_id}/events", headers=headers)
    assert answer.status == 422
    await system.wait_for(run_id)


async def test_a_silent_stream_shows_that_it_lives(system: RunningSystem, agent: ScriptedAgent) -> None:
    gate, pinged = asyncio.Event(), asyncio.Event()

    async def never(call: Call) -> Json:
        await gate.wait()
        return None

    async def send(message: Message) -> None:
        if message.get("body") == b": ping\n\n":
            pinged.set()

    async def receive() -> Message:
        await pinged.wait()
        return {"type": "http.disconnect"}

    agent.script(never)
    run_id = RunId(await system.start("chain"))
    await EventStream(system.embedded.api, run_id, 0, ping_after=0.01)({}, receive, send)
    assert pinged.is_set()
    gate.set()


class UnavailableStore:
    """A store that goes away when a stream has begun, and comes back after two vain looks at it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked = 0

        self.runs = UnavailableRuns(self, store)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


class UnavailableRuns:
    def __init__(self, away: UnavailableStore, store: Store) -> None:
        self._away = away
        self._runs = store.runs

    def __getattr__(self, name: str) -> object:
        return getattr(self._runs, name)

    async def status(self, run_id: RunId) -> tuple[RunStatus, int] | None:
        self._away.asked += 1
        if self._away.asked in {2, 3}:
            raise Unavailable("on purpose")
        return await self._runs.status(run_id)


async def test_a_stream_outlasts_a_store_that_is_away(tmp_path: Path) -> None:
    stores: list[UnavailableStore] = []

    def between(store: Store) -> Store:
        stores.append(UnavailableStore(store))
        return cast("Store", stores[0])

    async with ScriptedAgent(simple_success("ok")) as agent, running_system(tmp_path / "data") as system:
        await system.register("A", agent.url, protocol="simple-a2a")
        await system.save(CHAIN)
        run_id = str((await system.run("chain"))["id"])
        expected = [event.event async for event in stream(system, run_id)]
    async with running_system(tmp_path / "data", interceptors=Interceptors(store=between)) as system:
        assert [event.event async for event in stream(system, run_id)] == expected
    assert stores[0].asked > 3


async def test_streams_end_when_the_process_is_asked_to_stop(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    gate = asyncio.Event()

    async def never(call: Call) -> Json:
        await gate.wait()
        return None

    agent.script(never)
    run_id = await system.start("chain")
    events = stream(system, run_id)
    await anext(events)
    system.embedded.stopping.set()
    assert [event.event async for event in events] == ["StepStarted"]
    gate.set()
