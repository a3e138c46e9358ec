"""Many runs: a burst of them, the same one asked for many times, and old ones that go away."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import (
    FakeClock,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_task,
    running_system,
    simple_error,
    simple_success,
)

pytestmark = pytest.mark.anyio

ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent", "retry": {"max_attempts": 1}}}}


async def test_a_thousand_runs_at_fifty_at_a_time_call_each_agent_once_for_each_step(
    system: RunningSystem,
) -> None:
    async with ScriptedAgent(simple_success("a")) as first, ScriptedAgent(jsonrpc_task("b")) as second:
        await system.register("First", first.url, protocol="simple-a2a")
        await system.register("Second", second.url, protocol="jsonrpc-2.0")
        steps: JsonObject = {
            "one": {"agent": "First"},
            "two": {"agent": "Second", "input": {"text": "${ steps.one.output.text }"}},
            "three": {"agent": "First", "needs": ["two"]},
        }
        await system.save({"name": "three", "steps": steps})
        numbers = iter(range(1_000))
        ids: list[str] = []

        async def client() -> None:
            for number in numbers:
                run = await system.run("three", {"n": number})
                assert run["status"] == "COMPLETED"
                assert run["input"] == {"n": number}
                ids.append(str(run["id"]))

        # Thirty thousand lines would be most of the work.
        with capture_logs():
            await asyncio.gather(*(client() for _ in range(50)))
    called = Counter(str(call.id) for agent in (first, second) for call in agent.calls)
    assert len(set(ids)) == 1_000
    assert called == Counter(f"{run_id}/{step}/0" for run_id in ids for step in ("one", "two", "three"))
    assert await system.metric("trunkline_runs", status="COMPLETED") == 1_000
    assert await system.metric("trunkline_rows_without_wake_reason") == 0
    assert await system.metric("trunkline_queue_depth", queue="inbox") == 0


async def test_a_key_that_comes_many_times_at_once_starts_one_run(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(ONE)
        headers = {"Idempotency-Key": "order-4711"}
        path = "/workflows/one/execute?wait=60"
        answers = await asyncio.gather(*(system.call("POST", path, {"n": n % 2}, headers) for n in range(40)))
    accepted = [answer for answer in answers if answer.status == 200]
    assert len({str(answer.json["id"]) for answer in accepted}) == 1
    assert len({str(answer.json["input"]) for answer in accepted}) == 1
    assert len(accepted) == 20
    assert {answer.status for answer in answers} == {200, 422}
    assert len(agent.calls) == 1


async def test_a_run_of_many_steps_keeps_every_step_and_every_event(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        steps: dict[str, Json] = {"s0": {"agent": "Agent"}}
        for number in range(1, 300):
            steps[f"s{number}"] = {"agent": "Agent", "needs": [f"s{number - 1}"]}
        await system.save({"name": "long", "steps": steps})
        with capture_logs():
            run = await system.run("long")
        events = await system.items(f"/runs/{run['id']}/events")
    assert run["status"] == "COMPLETED"
    assert len(agent.calls) == 300
    assert [event["seq"] for event in events] == list(range(1, 2 + 2 * 300 + 1))
    assert run["last_seq"] == events[-1]["seq"]


async def test_old_finished_runs_are_deleted_and_all_others_kept(tmp_path: Path) -> None:
    clock = FakeClock()
    async with (
        ScriptedAgent(simple_success("ok"), simple_error("no"), simple_success("ok")) as agent,
        ScriptedAgent(jsonrpc_task("Which?", state="input-required")) as asks,
    ):
        async with running_system(tmp_path, clock=clock, retention="7d") as system:
            await system.register("Agent", agent.url, protocol="simple-a2a")
            await system.register("Asks", asks.url, protocol="jsonrpc-2.0")
            await system.save(ONE)
            await system.save({"name": "asks", "steps": {"only": {"agent": "Asks"}}})
            old = [await system.run("one", {"n": number}) for number in range(2)]
            waiting = await system.start("asks")
            await system.wait_for(waiting, {"WAITING"})
            clock.advance(timedelta(days=6))
            young = await system.run("one")
        clock.advance(timedelta(days=2))
        async with running_system(tmp_path, clock=clock, retention="7d") as system:
            while (await system.call("GET", f"/runs/{old[1]['id']}")).status != 404:
                await asyncio.sleep(0)
            listed = {str(run["id"]) for run in await system.items("/runs")}
            gone = [
                await system.call("GET", f"/runs/{old[0]['id']}{part}") for part in ("", "/wire", "/events")
            ]
            kept = await system.items(f"/runs/{young['id']}/wire")
    assert [run["status"] for run in old] == ["COMPLETED", "FAILED"]
    assert listed == {str(young["id"]), waiting}
    assert [answer.status for answer in gone] == [404] * 3
    assert len(kept) == 1


async def test_nothing_is_deleted_when_everything_is_to_be_kept(tmp_path: Path) -> None:
    clock = FakeClock()
    async with ScriptedAgent(simple_success("ok")) as agent:
        async with running_system(tmp_path, clock=clock, retention="0s") as system:
            await system.register("Agent", agent.url, protocol="simple-a2a")
            await system.save(ONE)
            old = await system.run("one")
        clock.advance(timedelta(days=10_000))
        async with running_system(tmp_path, clock=clock, retention="0s") as system:
            await system.run("one")
            assert await system.get(str(old["id"])) == old
