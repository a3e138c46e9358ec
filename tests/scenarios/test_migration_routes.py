"""Agents with two sides: a run keeps the one that it began with, whatever becomes of the migration meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import (
    Call,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_error,
    jsonrpc_task,
    running_system,
    simple_error,
    simple_success,
)
from trunkline.testing.agents import Script, Scripted
from trunkline.testing.system import objects_in, step_of

pytestmark = pytest.mark.anyio

_numbers = count(1)


class TwoDialectAgent:
    """An agent that speaks Simple A2A and JSON-RPC on one address, each by a script of its own."""

    def __init__(self, agent: ScriptedAgent, name: str) -> None:
        self.agent = agent
        self.name = name
        self.old: Script = simple_success({"text": "sunny"})
        self.new: Script = jsonrpc_task("sunny")

    def answer(self, call: Call) -> Scripted | Awaitable[Scripted]:
        script = self.new if is_new(call) else self.old
        return script(call) if callable(script) else script

    def spoken(self) -> list[str]:
        """Without the checks of the old side before a rollback, which give it no work."""
        calls = (call for call in self.agent.calls if is_new(call) or "input" in call.body)
        return ["new" if is_new(call) else "old" for call in calls]

    async def called_on(self, side: str, times: int = 1) -> None:
        calls = len(self.agent.calls)
        while self.spoken().count(side) < times:
            await self.agent.called(calls := max(calls, len(self.agent.calls)) + 1)


def is_new(call: Call) -> bool:
    return call.body.get("jsonrpc") == "2.0"


@asynccontextmanager
async def serving() -> AsyncGenerator[TwoDialectAgent]:
    async with ScriptedAgent(None) as agent:
        sides = TwoDialectAgent(agent, f"agent-{next(_numbers)}")
        agent.script(sides.answer)
        yield sides


async def prepare(system: RunningSystem, sides: TwoDialectAgent, **fields: Json) -> None:
    name = sides.name
    await system.register(name, sides.agent.url, protocol="simple-a2a", repeatable=True, **fields)
    step: JsonObject = {"agent": name, "input": "${ input }", "retry": {"max_attempts": 1}}
    await system.save({"name": name, "steps": {"first": step, "second": {**step, "needs": ["first"]}}})


@asynccontextmanager
async def two_sided(system: RunningSystem, **fields: Json) -> AsyncGenerator[TwoDialectAgent]:
    async with serving() as sides:
        await prepare(system, sides, **fields)
        yield sides


async def move(system: RunningSystem, sides: TwoDialectAgent, how: str, **body: Json) -> JsonObject:
    answer = await system.call(
        "POST", f"/migration/agents/{sides.name}/{how}", {"why": "a test", "who": "ann", **body}
    )
    assert answer.status == 200, answer.body
    return answer.json


async def stage(system: RunningSystem, sides: TwoDialectAgent) -> str:
    status = (await system.call("GET", f"/migration/agents/{sides.name}")).json
    migration = status["migration"]
    assert isinstance(migration, dict)
    return str(migration["stage"])


async def protocols(system: RunningSystem, run: JsonObject) -> set[str]:
    """What each step says that was spoken, and what the wire says of the side."""
    records = await system.items(f"/runs/{run['id']}/wire")
    notes = {str(note).split(" endpoint")[0] for record in records for note in list_of(record["notes"])}
    return notes | {str(step["protocol"]) for step in objects_in(run["steps"])}


def list_of(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


async def test_a_run_goes_on_with_the_protocol_that_it_began_with(shared_system: RunningSystem) -> None:
    system = shared_system
    may_answer = asyncio.Event()

    async def slowly(call: Call) -> Json:
        await may_answer.wait()
        return simple_success({"text": "sunny"})(call)

    async with two_sided(system) as sides:
        sides.old = slowly
        before = await system.start(sides.name)
        await sides.called_on("old")
        await move(system, sides, "canary", percent=100)
        during = await system.run(sides.name)
        may_answer.set()
        ended = await system.wait_for(before)
        # Its second step was dispatched long after the move.
        assert await protocols(system, ended) == {"simple-a2a"}
        assert await protocols(system, during) == {"jsonrpc-2.0", "To the new"}
        assert sides.spoken() == ["old", "new", "new", "old"]
        await move(system, sides, "rollback")
        assert await protocols(system, await system.run(sides.name)) == {"simple-a2a"}
    # The agent's own row is the old side, whatever the new one speaks.
    row = (await system.call("GET", f"/agents/{sides.name}")).json
    assert (row["protocol"], row["dialect"]) == ("simple-a2a", None)


async def taken_before_a_rollback(system: RunningSystem, sides: TwoDialectAgent) -> str:
    """A run whose task the new side works on, although new runs call the old one again."""
    await move(system, sides, "canary", percent=100)
    sides.new = jsonrpc_task("", state="working")
    run_id = await system.start(sides.name)
    await sides.agent.called_for("tasks/get")
    await move(system, sides, "rollback")
    return run_id


async def test_what_the_new_side_has_taken_is_asked_there_after_a_rollback(
    shared_system: RunningSystem,
) -> None:
    system = shared_system
    async with two_sided(system) as sides:
        run_id = await taken_before_a_rollback(system, sides)
        sides.new = jsonrpc_task("Which city?", state="input-required")
        await system.wait_for(run_id, {"WAITING"})
        sides.new = jsonrpc_task("sunny")
        reply = await system.call("POST", f"/runs/{run_id}/steps/first/reply", {"text": "Rome"})
        assert reply.status == 202, reply.body
        ended = await system.wait_for(run_id)
    assert ended["status"] == "COMPLETED"
    assert set(sides.spoken()) == {"new"}


async def test_a_run_that_is_cancelled_after_a_rollback_cancels_at_the_endpoint_that_has_its_task(
    shared_system: RunningSystem,
) -> None:
    system = shared_system
    async with two_sided(system) as sides:
        run_id = await taken_before_a_rollback(system, sides)
        sides.new = jsonrpc_task("", state="canceled")
        await system.call("POST", f"/runs/{run_id}/cancel")
        await sides.agent.called_for("tasks/cancel")
        assert (await system.wait_for(run_id))["status"] == "CANCELLED"
    assert set(sides.spoken()) == {"new"}


async def test_a_canary_takes_some_runs_and_each_of_them_as_a_whole(shared_system: RunningSystem) -> None:
    system = shared_system
    async with two_sided(system) as sides:
        await move(system, sides, "canary", percent=50)
        runs = await asyncio.gather(*(system.run(sides.name) for _ in range(20)))
        spoken = [{str(step["protocol"]) for step in objects_in(run["steps"])} for run in runs]
        assert all(len(each) == 1 for each in spoken)
        # Once in a million by chance.
        assert {protocol for each in spoken for protocol in each} == {"simple-a2a", "jsonrpc-2.0"}


async def test_a_shadow_answers_no_run_and_its_differences_are_kept(shared_system: RunningSystem) -> None:
    system = shared_system
    may_answer = asyncio.Event()

    async def late(call: Call) -> Json:
        await may_answer.wait()
        return jsonrpc_task("rainy")(call)

    async with two_sided(system, auth_type="bearer", auth_config={"token": "t-0-p"}) as sides:
        sides.new = late
        await move(system, sides, "shadow", percent=100)
        run = await system.run(sides.name, {"query": "weather"})
        # The run has ended while the new side is still silent.
        assert run["status"] == "COMPLETED"
        assert await protocols(system, run) == {"simple-a2a", "To the old"}
        await sides.called_on("new", 2)
        may_answer.set()
        found: list[JsonObject] = []
        while len(found) < 2:
            found = await system.items(f"/migration/agents/{sides.name}/comparisons")
        calls = sides.agent.calls
    assert {(str(each["run"]), str(each["verdict"])) for each in found} == {(str(run["id"]), "differ")}
    assert found[0]["comparison"] == {
        "verdict": "differ",
        "old_protocol": "simple-a2a",
        "new_protocol": "jsonrpc-2.0",
        "differences": [{"path": "/text", "old": '"sunny"', "new": '"rainy"'}],
        "only_in_old": ["/data"],
    }
    simple, rpc = (next(call for call in calls if is_new(call) is new) for new in (False, True))
    assert rpc.headers["Authorization"] == simple.headers["Authorization"] == "Bearer t-0-p"
    assert step_of(run, "first")["attempts"] == 1
    assert len(await system.items(f"/runs/{run['id']}/wire")) == 2


async def test_a_failing_shadow_call_affects_no_run(shared_system: RunningSystem) -> None:
    system = shared_system
    async with two_sided(system, breaker={"failures": 1}) as sides:
        sides.new = jsonrpc_error(-32603, "broken")
        await move(system, sides, "shadow", percent=100)
        assert (await system.run(sides.name))["status"] == "COMPLETED"
        sides.old = simple_error("No such city")
        assert (await system.run(sides.name))["status"] == "FAILED"
        counts: Json = {}
        while counts != {"new_failed": 2, "both_failed": 1}:
            counts = (await system.call("GET", f"/migration/agents/{sides.name}")).json["comparisons"]
        sides.old = simple_success({"text": "sunny"})
        assert (await system.run(sides.name))["status"] == "COMPLETED"


async def test_a_new_side_that_fails_is_left_by_itself(shared_system: RunningSystem) -> None:
    system = shared_system
    async with two_sided(system) as sides:
        await move(system, sides, "canary", percent=100, limits={"calls": 3, "window": 10})
        sides.new = jsonrpc_error(-32603, "broken")
        for _ in range(3):
            assert (await system.run(sides.name))["status"] == "FAILED"
        while await stage(system, sides) != "rolled_back":
            await asyncio.sleep(0.02)
        run = await system.run(sides.name)
    assert run["status"] == "COMPLETED"
    assert await protocols(system, run) == {"simple-a2a"}
    events = await system.items(f"/migration/events?agent={sides.name}")
    assert [(event["who"], event["why"]) for event in events] == [
        ("trunkline", "3 of the last 3 calls to the target failed, and the limit is 10%"),
        ("ann", "a test"),
    ]
    assert await system.metric("agent_rollbacks_total", agent_name=sides.name) == 1


async def test_after_a_restart_each_run_keeps_its_route(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving() as sides:
        async with running_system(data) as system:
            await prepare(system, sides)
            await move(system, sides, "canary", percent=100)
            sides.new = jsonrpc_task("", state="working")
            run_id = await system.start(sides.name)
            await sides.agent.called_for("tasks/get")
            await move(system, sides, "rollback")
        async with running_system(data) as system:
            sides.new = jsonrpc_task("sunny")
            ended = await system.wait_for(run_id)
            assert (ended["status"], set(sides.spoken())) == ("COMPLETED", {"new"})
            assert await protocols(system, await system.run(sides.name)) == {"simple-a2a"}
