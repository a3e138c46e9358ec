"""Stopping gracefully in the middle and starting again on the same data: every run goes on where it was."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import (
    Call,
    FakeClock,
    RunningSystem,
    ScriptedAgent,
    jsonrpc_task,
    running_system,
    simple_success,
)
from trunkline.testing.agents import Reply
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent"}}}


async def never(call: Call) -> Json:
    await asyncio.Event().wait()
    return None


async def start_one(system: RunningSystem, agent: ScriptedAgent, **fields: Json) -> str:
    await system.register("Agent", agent.url, **{"protocol": "jsonrpc-2.0", **fields})
    await system.save(ONE)
    return await system.start("one", {"query": "weather"})


async def test_a_question_is_still_open_after_a_restart(tmp_path: Path) -> None:
    asking = jsonrpc_task("Which city?", state="input-required", remote_id="r-7", context_id="c-7")
    async with ScriptedAgent(asking, jsonrpc_task("Sunny")) as agent:
        async with running_system(tmp_path) as system:
            run_id = await start_one(system, agent, auth_type="bearer", auth_config={"token": "kept-secret"})
            before = await system.wait_for(run_id, {"WAITING"})
        async with running_system(tmp_path) as system:
            assert await system.get(run_id) == before
            await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "Rome"})
            run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert agent.calls[1].message["taskId"] == "r-7"
    assert agent.calls[1].message["contextId"] == "c-7"
    assert agent.calls[1].headers["Authorization"] == "Bearer kept-secret"


async def test_without_its_key_a_secret_is_not_sent_and_the_run_says_what_to_do(tmp_path: Path) -> None:
    async with ScriptedAgent(jsonrpc_task("ok")) as agent:
        async with running_system(tmp_path) as system:
            secret: JsonObject = {"auth_type": "bearer", "auth_config": {"token": "kept-secret"}}
            await system.wait_for(await start_one(system, agent, **secret, retry={"max_attempts": 1}))
        (tmp_path / "secret.key").unlink()
        async with running_system(tmp_path) as system:
            run = await system.run("one", {"query": "weather"})
    assert len(agent.calls) == 1
    error = error_of(run)
    assert error["code"] == "agent_secret_unreadable"
    assert error["message"] == "A stored secret cannot be decrypted with the current key."
    assert "auth_config" in str(error["fix"])


async def test_a_wait_between_two_attempts_goes_on_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    retry: JsonObject = {"max_attempts": 2, "first_delay": "60s", "max_delay": "60s"}
    async with ScriptedAgent(Reply(503), jsonrpc_task("ok")) as agent:
        async with running_system(tmp_path, clock=clock) as system:
            run_id = await start_one(system, agent, retry=retry)
            await system.wait_for_step(run_id, "only", {"WAITING"})
        clock.advance(timedelta(seconds=61))
        async with running_system(tmp_path, clock=clock) as system:
            run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert step_of(run, "only")["attempts"] == 2
    assert len(agent.calls) == 2


async def test_a_long_task_is_asked_for_after_a_restart_and_not_sent_again(tmp_path: Path) -> None:
    async with ScriptedAgent(jsonrpc_task("", state="working")) as agent:
        async with running_system(tmp_path) as system:
            run_id = await start_one(system, agent)
            await agent.called_for("tasks/get")
        agent.script(jsonrpc_task("at last"))
        async with running_system(tmp_path) as system:
            run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert [call.method for call in agent.calls].count("message/send") == 1
    assert step_of(run, "only")["attempts"] == 1


async def test_a_call_in_flight_may_end_during_the_stop_and_is_not_made_again(tmp_path: Path) -> None:
    stopping = asyncio.Event()

    async def answer_when_it_stops(call: Call) -> Json:
        await stopping.wait()
        return simple_success("just in time")(call)

    two: JsonObject = {"a": {"agent": "First"}, "b": {"agent": "Second", "input": "${ steps.a.output }"}}
    async with ScriptedAgent(answer_when_it_stops) as first, ScriptedAgent(simple_success("done")) as second:
        async with running_system(tmp_path, stop_timeout="60s") as system:
            await system.register("First", first.url, protocol="simple-a2a")
            await system.register("Second", second.url, protocol="simple-a2a")
            await system.save({"name": "two", "steps": two})
            run_id = await system.start("two")
            await first.called()
            asked = asyncio.create_task(system.embedded.stopping.wait())
            asked.add_done_callback(lambda _: stopping.set())
        assert not second.calls
        async with running_system(tmp_path) as system:
            run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert len(first.calls) == len(second.calls) == 1
    assert second.calls[0].body["input"] == {"text": "just in time"}


async def test_a_call_that_does_not_end_in_time_is_made_again_under_the_same_id(tmp_path: Path) -> None:
    async with ScriptedAgent(never) as agent:
        async with running_system(tmp_path, stop_timeout="50ms") as system:
            run_id = await start_one(system, agent)
            await agent.called()
        await agent.caller_left()
        agent.script(jsonrpc_task("second time"))
        async with running_system(tmp_path) as system:
            run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert agent.calls[0].body == agent.calls[1].body
    assert len(agent.calls) == 2
    # A call that was cut off is not an attempt.
    assert step_of(run, "only")["attempts"] == 1


async def test_a_call_that_must_not_be_repeated_is_in_doubt_after_the_stop(tmp_path: Path) -> None:
    async with ScriptedAgent(never) as agent:
        async with running_system(tmp_path, stop_timeout="50ms") as system:
            await system.register("Agent", agent.url, protocol="simple-a2a")
            once: JsonObject = {"agent": "Agent", "delivery": "at_most_once"}
            await system.save({"name": "one", "steps": {"only": once}})
            run_id = await system.start("one")
            await agent.called()
        async with running_system(tmp_path) as system:
            run = await system.wait_for(run_id, {"WAITING"})
            assert await system.metric("trunkline_rows_without_wake_reason") == 0
    assert step_of(run, "only")["status"] == "OUTCOME_UNKNOWN"
    assert error_of(step_of(run, "only"))["code"] == "outcome_unknown"
    assert len(agent.calls) == 1


async def test_tasks_that_wait_for_a_slot_are_called_once_each_after_a_restart(tmp_path: Path) -> None:
    async with ScriptedAgent(never) as agent:
        async with running_system(tmp_path, stop_timeout="50ms") as system:
            first = await start_one(system, agent, max_concurrency=1)
            runs = [first, *[await system.start("one") for _ in range(4)]]
            await agent.called()
        agent.script(jsonrpc_task("ok"))
        async with running_system(tmp_path) as system:
            statuses = [(await system.wait_for(run_id))["status"] for run_id in runs]
    assert statuses == ["COMPLETED"] * 5
    called = [str(call.id) for call in agent.calls]
    assert sorted(called[1:]) == sorted(f"{run_id}/only/0" for run_id in runs)


async def test_a_paused_run_stays_paused_over_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    async with ScriptedAgent(Reply(503), jsonrpc_task("ok")) as agent:
        async with running_system(tmp_path, clock=clock) as system:
            run_id = await start_one(system, agent, retry={"max_attempts": 2, "first_delay": "5s"})
            await system.wait_for_step(run_id, "only", {"WAITING"})
            await system.call("POST", f"/runs/{run_id}/pause")
            clock.advance(timedelta(seconds=6))
            await system.wait_for_step(run_id, "only", {"PENDING"})
        async with running_system(tmp_path, clock=clock) as system:
            assert (await system.get(run_id))["status"] == "PAUSED"
            assert len(agent.calls) == 1
            await system.call("POST", f"/runs/{run_id}/resume")
            run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"


async def test_a_deadline_passes_while_no_process_runs(tmp_path: Path) -> None:
    clock = FakeClock()
    async with ScriptedAgent(jsonrpc_task("Which?", state="input-required")) as agent:
        async with running_system(tmp_path, clock=clock) as system:
            await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
            await system.save({**ONE, "deadline": "1h"})
            run_id = await system.start("one")
            await system.wait_for(run_id, {"WAITING"})
        clock.advance(timedelta(hours=2))
        async with running_system(tmp_path, clock=clock) as system:
            run = await system.wait_for(run_id)
    assert error_of(run)["code"] == "deadline_exceeded"


async def test_a_cancel_that_was_not_confirmed_goes_on_after_a_restart(tmp_path: Path) -> None:
    def works_on(call: Call) -> Json:
        return jsonrpc_task("", state="working")(call)

    async def deaf(call: Call) -> Json:
        return works_on(call) if call.method != "tasks/cancel" else await never(call)

    async with ScriptedAgent(deaf) as agent:
        async with running_system(tmp_path, stop_timeout="50ms") as system:
            run_id = await start_one(system, agent)
            await agent.called_for("tasks/get")
            await system.call("POST", f"/runs/{run_id}/cancel")
            await agent.called_for("tasks/cancel")
        agent.script(jsonrpc_task("", state="canceled"))
        async with running_system(tmp_path) as system:
            run = await system.wait_for(run_id)
    assert run["status"] == "CANCELLED"


async def test_an_idempotency_key_is_remembered_over_a_restart(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "order-1"}
    async with ScriptedAgent(simple_success("ok")) as agent:
        async with running_system(tmp_path) as system:
            await system.register("Agent", agent.url, protocol="simple-a2a")
            await system.save(ONE)
            run_id = await system.start("one", {"n": 1}, key)
            before = await system.wait_for(run_id)
        async with running_system(tmp_path) as system:
            again = await system.call("POST", "/workflows/one/execute", {"n": 1}, key)
            other = await system.call("POST", "/workflows/one/execute", {"n": 2}, key)
    assert again.status == 200
    assert again.json == before
    assert other.status == 422
    assert len(agent.calls) == 1
