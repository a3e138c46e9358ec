"""Every role a process of its own, two of each: one system, whoever is asked and whoever works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import NamedTuple

import aiohttp
import pytest
from tests.scenarios.distributed.in_process_roles import serving_roles
from tests.scenarios.distributed.topic_records import TopicReader

from trunkline.jsontypes import Json, JsonObject
from trunkline.messages.codec import MAX_VALUE_BYTES
from trunkline.testing import (
    Call,
    FakeClock,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_task,
    simple_success,
    step_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

TWO: JsonObject = {
    "name": "two",
    "steps": {"first": {"agent": "Agent"}, "second": {"agent": "Agent", "input": "${ steps.first.output }"}},
}
ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent", "retry": {"max_attempts": 1}}}}


class Fleet(NamedTuple):
    apis: list[RunningSystem]
    executors: list[RunningSystem]
    bridges: list[RunningSystem]


@pytest.fixture
async def fleet() -> AsyncGenerator[Fleet]:
    """Two of each role."""
    async with AsyncExitStack() as stack:
        opened = Fleet([], [], [])
        for _ in range(2):
            opened.apis.append(await stack.enter_async_context(serving_roles("api")))
            opened.executors.append(await stack.enter_async_context(serving_roles("executor")))
            opened.bridges.append(await stack.enter_async_context(serving_roles("bridge")))
        yield opened


async def never(call: Call) -> Json:
    await asyncio.Event().wait()
    return None


async def test_two_of_each_role_share_the_runs_and_no_call_is_made_twice(fleet: Fleet) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        await fleet.apis[0].register("Agent", agent.url, protocol="simple-a2a")
        await fleet.apis[0].save(TWO)
        runs = [await fleet.apis[number % 2].start("two", {"n": number}) for number in range(40)]
        # Asked at the other door than the one where it was started.
        ended = [await fleet.apis[(number + 1) % 2].wait_for(run) for number, run in enumerate(runs)]
        bridged = [
            await bridge.metric("agent_protocol_requests_total", protocol="simple-a2a", agent_name="Agent")
            or 0
            for bridge in fleet.bridges
        ]
    assert {run["status"] for run in ended} == {"COMPLETED"}  # pyright: ignore[reportUnhashable] - texts
    assert sorted(str(call.id) for call in agent.calls) == sorted(
        f"{run}/{step}/0" for run in runs for step in ("first", "second")
    )
    assert sum(bridged) == 80
    for api in fleet.apis:
        assert await api.metric("trunkline_rows_without_wake_reason") == 0
        assert await api.metric("trunkline_queue_depth", queue="tasks_claimed") == 0


class Counting:
    """Holds every call until it is let go; knows how many there were at once."""

    def __init__(self) -> None:
        self.present = 0
        self.most = 0
        self.go_on = asyncio.Event()

    async def __call__(self, call: Call) -> Json:
        self.present += 1
        self.most = max(self.most, self.present)
        await self.go_on.wait()
        self.present -= 1
        return simple_success("ok")(call)


async def test_max_concurrency_holds_over_all_bridges(fleet: Fleet) -> None:
    counting = Counting()
    async with ScriptedAgent(counting) as agent:
        await fleet.apis[0].register("Agent", agent.url, protocol="simple-a2a", max_concurrency=3)
        await fleet.apis[0].save(ONE)
        runs = [await fleet.apis[0].start("one") for _ in range(12)]
        await agent.called(3)
        # All tasks have arrived, and wait for a slot.
        await fleet.apis[1].wait_for_metric("trunkline_queue_depth", 9, queue="tasks_queued")
        assert counting.present == 3
        counting.go_on.set()
        for run in runs:
            assert (await fleet.apis[0].wait_for(run))["status"] == "COMPLETED"
    assert counting.most == 3
    assert len(agent.calls) == 12


async def test_a_cancel_reaches_a_call_that_another_bridge_holds(kafka: TopicReader) -> None:
    async with (
        ScriptedAgent(never) as agent,
        serving_roles("api", "executor") as system,
        serving_roles("bridge"),
    ):
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(ONE)
        runs = [await system.start("one") for _ in range(8)]
        await agent.called(8)
        async with serving_roles("bridge") as other:
            # From here on some of the records go to the bridge that holds none of the calls.
            while not await other.metric("trunkline_records_consumed_total", topic=kafka.topics.tasks):
                await system.start("one")
                await asyncio.sleep(0.1)
            for run in runs:
                await system.call("POST", f"/runs/{run}/cancel")
            for run in runs:
                assert (await system.wait_for(run))["status"] == "CANCELLED"
            while not {f"{run}/only/0" for run in runs} <= {str(call.id) for call in agent.abandoned}:
                await asyncio.sleep(0.05)


async def test_an_api_that_does_not_execute_waits_for_a_run_and_streams_it(fleet: Fleet) -> None:
    api = fleet.apis[1]
    async with ScriptedAgent(simple_success("ok")) as agent:
        await api.register("Agent", agent.url, protocol="simple-a2a")
        await api.save(TWO)
        answer = await api.call("POST", "/workflows/two/execute?wait=60", {})
        assert (answer.status, answer.json["status"]) == (200, "COMPLETED")
        run_id = await api.start("two")
        url = f"{fleet.apis[0].url}/api/v1/runs/{run_id}/events"
        async with (
            aiohttp.ClientSession(headers={"Accept": "text/event-stream"}) as session,
            session.get(url) as response,
        ):
            # Ends by itself after the final event.
            streamed = (await response.read()).decode()
    types = [line.removeprefix("event: ") for line in streamed.splitlines() if line.startswith("event: ")]
    assert types == ["RunStarted", *["StepStarted", "StepCompleted"] * 2, "RunCompleted"]


async def test_a_change_of_an_agent_is_seen_by_the_bridges_after_two_seconds_at_most() -> None:
    clock = FakeClock()
    async with (
        ScriptedAgent(simple_success("old")) as old,
        ScriptedAgent(jsonrpc_task("new")) as new,
        serving_roles("api", clock=clock) as api,
        serving_roles("executor", clock=clock),
        serving_roles("bridge", clock=clock),
    ):
        secret: JsonObject = {"auth_type": "bearer", "auth_config": {"token": "old-secret"}}
        await api.register("Agent", old.url, protocol="simple-a2a", **secret)
        await api.save(ONE)
        before = await api.run("one")
        change: JsonObject = {
            "url": new.url,
            "protocol": "jsonrpc-2.0",
            "auth_type": "bearer",
            "auth_config": {"token": "new-secret"},
        }
        assert (await api.call("PATCH", "/agents/Agent", change)).status == 200
        clock.advance(timedelta(seconds=2))
        after = await api.run("one")
        assert (await api.call("DELETE", "/agents/Agent")).status == 204
        clock.advance(timedelta(seconds=2))
        gone = await api.run("one")
    assert [step_of(run, "only")["protocol"] for run in (before, after)] == ["simple-a2a", "jsonrpc-2.0"]
    assert old.calls[0].headers["Authorization"] == "Bearer old-secret"
    assert [call.headers["Authorization"] for call in new.calls] == ["Bearer new-secret"]
    assert gone["status"] == "FAILED"


async def test_what_is_too_long_for_a_record_travels_by_reference(kafka: TopicReader) -> None:
    # More than Kafka takes in one record, in both directions.
    long = "x" * 3_000_000
    async with (
        ScriptedAgent(simple_success(long)) as agent,
        serving_roles("api") as api,
        serving_roles("executor"),
        serving_roles("bridge"),
    ):
        await api.register("Agent", agent.url, protocol="simple-a2a")
        await api.save(ONE)
        run = await api.run("one", {"text": long})
    assert run["output"] == {"text": long}
    assert agent.calls[0].body["input"] == {"text": long}
    topics = kafka.topics
    written = await kafka.written(topics.tasks, topics.results, topics.events)
    assert {record.topic for record in written} == {topics.tasks, topics.results, topics.events}
    assert max(len(record.value) for record in written) < MAX_VALUE_BYTES
