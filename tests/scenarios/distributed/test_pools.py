"""Bridge pools: the tasks of an agent in a pool are taken by its bridges, and by no others."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.resources import read_resource
from tests.scenarios.distributed.in_process_roles import serving_roles
from tests.scenarios.distributed.topic_records import TopicReader
from tests.services import wait_for_futures

from trunkline.api.resources.system import SystemState
from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Call, RunningSystem, ScriptedAgent, jsonrpc_task, simple_success, step_of

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

BOTH: JsonObject = {
    "name": "both",
    "steps": {"near": {"agent": "Near"}, "far": {"agent": "Far", "needs": ["near"]}},
}
FAR: JsonObject = {"name": "far", "steps": {"only": {"agent": "Far"}}}


@pytest.fixture
def pool(kafka: TopicReader, kafka_admin: AdminClient) -> str:
    """A pool that has its topic."""
    topic = NewTopic(kafka.topics.tasks_of("gpu"), 4)
    wait_for_futures(kafka_admin.create_topics([topic]))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - the library's futures
    return "gpu"


async def until_waiting(system: RunningSystem, kafka: TopicReader, wanted: dict[str, int]) -> SystemState:
    """By the ends of their topics' names: records that consumers have not settled."""
    prefix = kafka.topics.tasks.removesuffix("tasks")
    async with asyncio.timeout(60):
        while True:
            state = read_resource(SystemState, (await system.call("GET", "/system")).body)
            assert state["consumers"] is not None
            if {each["topic"].removeprefix(prefix): each["waiting"] for each in state["consumers"]} == wanted:
                return state
            await asyncio.sleep(0.2)


async def never(call: Call) -> Json:
    await asyncio.Event().wait()
    return None


async def test_only_a_bridge_of_the_pool_takes_its_tasks(pool: str, kafka: TopicReader) -> None:
    async with (
        ScriptedAgent(simple_success("near")) as near,
        ScriptedAgent(simple_success("far")) as far,
        serving_roles("api", "executor") as system,
        serving_roles("bridge"),
    ):
        await system.register("Near", near.url, protocol="simple-a2a")
        await system.register("Far", far.url, protocol="simple-a2a", pool=pool)
        await system.save(BOTH)
        first = await system.start("both")
        await system.wait_for_step(first, "far", {"RUNNING"})
        # The bridge without a pool goes on with everything else meanwhile.
        second = await system.start("both")
        await system.wait_for_step(second, "far", {"RUNNING"})
        assert not far.calls
        waiting = await until_waiting(system, kafka, {"tasks": 0, "tasks.gpu": 2, "results": 0})
        (warning,) = waiting["warnings"]
        assert warning.startswith(f"2 messages are waiting on {kafka.topics.tasks_of(pool)}")
        assert warning.endswith("trunkline serve --role bridge --pool gpu.")
        async with serving_roles("bridge", pool=pool):
            for run in (first, second):
                assert (await system.wait_for(run))["status"] == "COMPLETED"
            taken = await until_waiting(system, kafka, {"tasks": 0, "tasks.gpu": 0, "results": 0})
            assert taken["warnings"] == []
    assert len(near.calls) == len(far.calls) == 2
    assert len(await kafka.written(kafka.topics.tasks)) == 2
    assert len(await kafka.written(kafka.topics.tasks_of(pool))) == 2


async def test_a_bridge_of_a_pool_takes_nothing_else(pool: str) -> None:
    async with (
        ScriptedAgent(simple_success("near")) as near,
        ScriptedAgent(simple_success("far")) as far,
        serving_roles("api", "executor") as system,
        serving_roles("bridge", pool=pool),
    ):
        await system.register("Near", near.url, protocol="simple-a2a")
        await system.register("Far", far.url, protocol="simple-a2a", pool=pool)
        await system.save(BOTH)
        await system.save(FAR)
        waiting = await system.start("both")
        # One of its own, sent later, is done while the other still waits.
        assert (await system.run("far"))["status"] == "COMPLETED"
        assert step_of(await system.get(waiting), "near")["status"] == "RUNNING"
        assert not near.calls
        async with serving_roles("bridge"):
            assert (await system.wait_for(waiting))["status"] == "COMPLETED"


async def test_a_cancel_reaches_the_bridge_of_the_pool(pool: str) -> None:
    async with (
        ScriptedAgent(never) as far,
        serving_roles("api", "executor") as system,
        serving_roles("bridge"),
        serving_roles("bridge", pool=pool),
    ):
        await system.register("Far", far.url, protocol="simple-a2a", pool=pool)
        await system.save(FAR)
        run = await system.start("far")
        await far.called()
        await system.call("POST", f"/runs/{run}/cancel")
        assert (await system.wait_for(run))["status"] == "CANCELLED"
        await far.caller_left()


async def test_a_long_task_of_a_pool_is_polled_and_cancelled_by_its_bridge(pool: str) -> None:
    def works_on(call: Call) -> Json:
        return jsonrpc_task("", state="canceled" if call.method == "tasks/cancel" else "working")(call)

    async with (
        ScriptedAgent(works_on) as far,
        serving_roles("api", "executor") as system,
        serving_roles("bridge", pool=pool),
    ):
        await system.register("Far", far.url, protocol="jsonrpc-2.0", pool=pool)
        await system.save(FAR)
        run = await system.start("far")
        await far.called_for("tasks/get")
        await system.call("POST", f"/runs/{run}/cancel")
        await far.called_for("tasks/cancel")
        assert (await system.wait_for(run))["status"] == "CANCELLED"
