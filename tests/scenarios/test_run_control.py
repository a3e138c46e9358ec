"""What people do to runs: cancel, pause, resume, retry."""

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
    simple_error,
    simple_success,
)
from trunkline.testing.agents import Reply
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent"}}}
TWO: JsonObject = {
    "name": "two",
    "steps": {"first": {"agent": "First"}, "second": {"agent": "Second", "needs": ["first"]}},
}
WORKING = jsonrpc_task("", state="working")


class Gate:
    """An agent's door: whoever calls waits before it until it is opened."""

    def __init__(self) -> None:
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def __call__(self, call: Call) -> Json:
        await self._open.wait()
        return simple_success("through")(call)


async def cancel(system: RunningSystem, run_id: str) -> JsonObject:
    """Cancels; the run as it ends."""
    answer = await system.call("POST", f"/runs/{run_id}/cancel")
    assert answer.status == 202
    assert answer.json["cancel_requested_at"]
    return await system.wait_for(run_id)


async def test_cancelling_a_call_in_flight_closes_the_connection_at_once(system: RunningSystem) -> None:
    async with ScriptedAgent(Gate()) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(ONE)
        run_id = await system.start("one")
        await agent.called()
        run = await cancel(system, run_id)
        await agent.caller_left()
        again = await system.call("POST", f"/runs/{run_id}/cancel")
    assert run["status"] == "CANCELLED"
    assert run["cancel_requested_at"]
    assert run["finished_at"]
    assert step_of(run, "only")["status"] == "CANCELLED"
    assert again.status == 409
    assert "CANCELLED" in str(again.json["detail"])


async def test_a_cancelled_task_that_waits_for_a_free_slot_never_reaches_its_agent(
    system: RunningSystem,
) -> None:
    gate = Gate()
    async with ScriptedAgent(gate) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a", max_concurrency=1)
        await system.save(ONE)
        first = await system.start("one")
        await agent.called()
        second = await system.start("one")
        cancelled = await cancel(system, second)
        gate.open()
        completed = await system.wait_for(first)
    assert cancelled["status"] == "CANCELLED"
    assert completed["status"] == "COMPLETED"
    assert [call.id for call in agent.calls] == [f"{first}/only/0"]


async def test_cancelling_tells_an_agent_that_has_taken_the_task(system: RunningSystem) -> None:
    def answer(call: Call) -> Json:
        return jsonrpc_task("", state="canceled" if call.method == "tasks/cancel" else "working")(call)

    async with ScriptedAgent(answer) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE)
        run_id = await system.start("one")
        await agent.called_for("tasks/get")
        run = await cancel(system, run_id)
        told = await agent.called_for("tasks/cancel")
    assert run["status"] == "CANCELLED"
    assert told.body["params"] == {"id": "remote-1"}


async def test_an_agent_that_works_on_after_a_cancel_request_is_polled_until_it_ends(
    system: RunningSystem,
) -> None:
    asked_after: list[Json] = []

    def answer(call: Call) -> Json:
        if call.method == "tasks/cancel" or asked_after:
            asked_after.append(call.method)
        return jsonrpc_task("", state="canceled" if len(asked_after) > 2 else "working")(call)

    async with ScriptedAgent(answer) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE)
        run_id = await system.start("one")
        await agent.called_for("tasks/get")
        run = await cancel(system, run_id)
    assert run["status"] == "CANCELLED"
    assert asked_after == ["tasks/cancel", "tasks/get", "tasks/get"]


async def test_cancelling_tells_an_agent_that_waits_for_an_answer(system: RunningSystem) -> None:
    asking = jsonrpc_task("Which?", state="input-required")
    async with ScriptedAgent(asking, jsonrpc_task("", state="canceled")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE)
        run_id = await system.start("one")
        await system.wait_for(run_id, {"WAITING"})
        run = await cancel(system, run_id)
        told = await agent.called_for("tasks/cancel")
    assert run["status"] == "CANCELLED"
    assert step_of(run, "only")["status"] == "CANCELLED"
    assert told.body["params"] == {"id": "remote-1"}


async def test_cancelling_between_two_attempts_makes_no_other(system: RunningSystem) -> None:
    async with ScriptedAgent(Reply(503)) as agent:
        retry: JsonObject = {"max_attempts": 9, "first_delay": "30s"}
        await system.register("Agent", agent.url, protocol="simple-a2a", retry=retry)
        await system.save(ONE)
        run_id = await system.start("one")
        await system.wait_for_step(run_id, "only", {"WAITING"})
        run = await cancel(system, run_id)
    assert run["status"] == "CANCELLED"
    assert len(agent.calls) == 1
    assert await system.metric("trunkline_queue_depth", queue="timers") == 0


async def test_an_agent_that_does_not_confirm_holds_a_cancel_up_for_a_while_only(tmp_path: Path) -> None:
    clock = FakeClock()
    async with (
        running_system(tmp_path, clock=clock) as system,
        ScriptedAgent(WORKING, Gate()) as agent,
    ):
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE)
        run_id = await system.start("one")
        while step_of(await system.get(run_id), "only")["waiting_for"] is None:
            await agent.called()
        answer = await system.call("POST", f"/runs/{run_id}/cancel")
        await agent.called_for("tasks/cancel")
        clock.advance(timedelta(seconds=9))
        run = await system.wait_for(run_id)
    assert answer.json["status"] == "RUNNING"
    assert answer.json["cancel_requested_at"]
    assert run["status"] == "CANCELLED"


async def test_a_paused_run_lets_its_call_end_and_starts_no_other_until_it_is_resumed(
    system: RunningSystem,
) -> None:
    gate = Gate()
    async with ScriptedAgent(gate) as first, ScriptedAgent(simple_success("done")) as second:
        await system.register("First", first.url, protocol="simple-a2a")
        await system.register("Second", second.url, protocol="simple-a2a")
        await system.save(TWO)
        run_id = await system.start("two")
        await first.called()
        paused = await system.call("POST", f"/runs/{run_id}/pause")
        gate.open()
        await system.wait_for_step(run_id, "first", {"COMPLETED"})
        held = await system.get(run_id)
        assert not second.calls
        resumed = await system.call("POST", f"/runs/{run_id}/resume")
        run = await system.wait_for(run_id)
    assert paused.status == resumed.status == 202
    assert paused.json["status"] == held["status"] == "PAUSED"
    assert step_of(held, "second")["status"] == "PENDING"
    assert run["status"] == "COMPLETED"


async def test_a_retry_that_falls_due_during_a_pause_waits_for_its_end(system: RunningSystem) -> None:
    async with ScriptedAgent(Reply(503), simple_success("ok")) as agent:
        retry: JsonObject = {"max_attempts": 2, "backoff": "fixed", "first_delay": "300ms", "jitter": False}
        await system.register("Agent", agent.url, protocol="simple-a2a", retry=retry)
        await system.save(ONE)
        run_id = await system.start("one")
        await system.wait_for_step(run_id, "only", {"WAITING"})
        await system.call("POST", f"/runs/{run_id}/pause")
        await system.wait_for_step(run_id, "only", {"PENDING"})
        assert len(agent.calls) == 1
        await system.call("POST", f"/runs/{run_id}/resume")
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert len(agent.calls) == 2


async def test_a_paused_run_can_be_cancelled_but_takes_no_reply(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_task("Which?", state="input-required")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE)
        run_id = await system.start("one")
        await system.wait_for(run_id, {"WAITING"})
        await system.call("POST", f"/runs/{run_id}/pause")
        reply = await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "this"})
        run = await cancel(system, run_id)
    assert reply.status == 409
    assert "resume" in str(reply.json["fix"])
    assert run["status"] == "CANCELLED"


async def test_a_run_that_waits_and_is_paused_waits_again_when_it_is_resumed(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_task("Which?", state="input-required")) as agent:
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save(ONE)
        run_id = await system.start("one")
        await system.wait_for(run_id, {"WAITING"})
        paused = await system.call("POST", f"/runs/{run_id}/pause")
        resumed = await system.call("POST", f"/runs/{run_id}/resume")
    assert paused.json["status"] == "PAUSED"
    assert resumed.json["status"] == "WAITING"


@pytest.mark.parametrize(
    ("action", "done"), [("cancel", "cancelled"), ("pause", "paused"), ("resume", "resumed")]
)
async def test_a_finished_run_accepts_no_commands(
    shared_system: RunningSystem, action: str, done: str
) -> None:
    system = shared_system
    async with ScriptedAgent(simple_success("ok")) as agent:
        await system.register(f"Agent {action}", agent.url, protocol="simple-a2a")
        await system.save({"name": action, "steps": {"only": {"agent": f"Agent {action}"}}})
        run = await system.run(action)
        answer = await system.call("POST", f"/runs/{run['id']}/{action}")
    assert answer.status == 409
    assert str(answer.json["detail"]) == f"Run {run['id']} is COMPLETED and cannot be {done}."
    assert answer.json["fix"] == f"See its state: trunkline runs show {run['id']}."


async def failed_run(system: RunningSystem, first: ScriptedAgent, second: ScriptedAgent) -> JsonObject:
    await system.register("First", first.url, protocol="simple-a2a")
    await system.register("Second", second.url, protocol="simple-a2a")
    await system.save(TWO)
    run = await system.run("two", {"n": 1})
    assert run["status"] == "FAILED"
    return run


async def test_a_retry_is_a_new_run_that_keeps_what_was_completed(system: RunningSystem) -> None:
    async with (
        ScriptedAgent(simple_success("one")) as first,
        ScriptedAgent(simple_error("no"), simple_success("two")) as second,
    ):
        old = await failed_run(system, first, second)
        await system.save({**TWO, "description": "a newer version"})
        answer = await system.call("POST", f"/runs/{old['id']}/retry")
        run = await system.wait_for(str(answer.json["id"]))
        unchanged = await system.get(str(old["id"]))
    assert answer.status == 202
    assert answer.headers["Location"] == f"/api/v1/runs/{run['id']}"
    assert run["id"] != old["id"]
    assert run["retry_of"] == old["id"]
    assert run["status"] == "COMPLETED"
    assert run["input"] == {"n": 1}
    assert run["workflow"] == {"name": "two", "version": 1}
    assert step_of(run, "first")["output"] == {"text": "one"}
    assert len(first.calls) == 1
    assert [call.id for call in second.calls] == [f"{old['id']}/second/0", f"{run['id']}/second/0"]
    assert unchanged == old


async def test_a_retry_that_is_sent_again_with_its_key_starts_one_run(system: RunningSystem) -> None:
    async with (
        ScriptedAgent(simple_success("one")) as first,
        ScriptedAgent(simple_error("no"), simple_success("two")) as second,
    ):
        old = await failed_run(system, first, second)
        path, key = f"/runs/{old['id']}/retry", {"Idempotency-Key": "again-7"}
        answers = [await system.call("POST", path, {}, key) for _ in range(2)]
        run = await system.wait_for(str(answers[0].json["id"]))
        late = await system.call("POST", path, {}, key)
        other = await system.call("POST", path, {"from_start": True}, key)
        audit = await system.items(f"/audit?subject={old['id']}")
    assert [answer.status for answer in (*answers, late, other)] == [202, 202, 202, 422]
    assert [answer.json["id"] for answer in (*answers, late)] == [run["id"]] * 3
    assert str(run["id"]) in str(other.json["detail"])
    assert len(second.calls) == 2
    assert [entry["action"] for entry in audit] == ["retry"]


async def test_a_retry_from_a_step_runs_it_and_what_follows_with_a_new_input(system: RunningSystem) -> None:
    async with (
        ScriptedAgent(simple_success("one")) as first,
        ScriptedAgent(simple_error("no"), simple_success("two")) as second,
    ):
        old = await failed_run(system, first, second)
        body: JsonObject = {"from_step": "first", "input": {"n": 2}}
        answer = await system.call("POST", f"/runs/{old['id']}/retry", body)
        run = await system.wait_for(str(answer.json["id"]))
        unknown = await system.call("POST", f"/runs/{old['id']}/retry", {"from_step": "third"})
    assert run["status"] == "COMPLETED"
    assert [call.body["input"] for call in first.calls] == [{"n": 1}, {"n": 2}]
    assert unknown.status == 422
    assert "first, second" in str(unknown.json["fix"])


async def test_a_retry_can_give_its_first_step_another_input(system: RunningSystem) -> None:
    async with (
        ScriptedAgent(simple_success("one")) as first,
        ScriptedAgent(simple_error("no"), simple_success("two")) as second,
    ):
        old = await failed_run(system, first, second)
        body: JsonObject = {"from_step": "second", "step_input": {"mine": [1]}}
        answer = await system.call("POST", f"/runs/{old['id']}/retry", body)
        run = await system.wait_for(str(answer.json["id"]))
        alone = await system.call("POST", f"/runs/{old['id']}/retry", {"step_input": 1})
    assert run["status"] == "COMPLETED"
    assert step_of(run, "second")["input"] == {"mine": [1]}
    assert second.calls[1].body["input"] == {"mine": [1]}
    assert len(first.calls) == 1
    assert alone.status == 422
    assert "from_step" in str(alone.json["fix"])


async def test_a_retry_from_the_start_keeps_nothing(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("one")) as first, ScriptedAgent(simple_success("two")) as second:
        await system.register("First", first.url, protocol="simple-a2a")
        await system.register("Second", second.url, protocol="simple-a2a")
        await system.save(TWO)
        old = await system.run("two", {"n": 1})
        body: JsonObject = {"from_start": True, "input": {"n": 2}}
        answer = await system.call("POST", f"/runs/{old['id']}/retry", body)
        run = await system.wait_for(str(answer.json["id"]))
    assert (run["status"], run["retry_of"], run["input"]) == ("COMPLETED", old["id"], {"n": 2})
    assert [call.body["input"] for call in first.calls] == [{"n": 1}, {"n": 2}]
    assert len(second.calls) == 2


async def test_a_run_that_is_not_over_cannot_be_retried(system: RunningSystem) -> None:
    async with ScriptedAgent(Gate()) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(ONE)
        run_id = await system.start("one")
        answer = await system.call("POST", f"/runs/{run_id}/retry")
        cancelled = await cancel(system, run_id)
        retried = await system.call("POST", f"/runs/{run_id}/retry")
        agent.script(simple_success("ok"))
    assert answer.status == 409
    assert "Only a finished run" in str(answer.json["detail"])
    assert cancelled["status"] == "CANCELLED"
    assert retried.status == 202


async def test_a_retry_that_fails_again_names_its_own_error(system: RunningSystem) -> None:
    async with (
        ScriptedAgent(simple_success("one")) as first,
        ScriptedAgent(simple_error("no"), simple_error("still no")) as second,
    ):
        old = await failed_run(system, first, second)
        answer = await system.call("POST", f"/runs/{old['id']}/retry")
        run = await system.wait_for(str(answer.json["id"]))
    assert error_of(run)["message"] == "still no"
    assert error_of(old)["message"] == "no"


async def test_a_retry_of_a_completed_run_calls_no_agent_unless_a_step_is_named(
    system: RunningSystem,
) -> None:
    async with ScriptedAgent(simple_success("one")) as first, ScriptedAgent(simple_success("two")) as second:
        await system.register("First", first.url, protocol="simple-a2a")
        await system.register("Second", second.url, protocol="simple-a2a")
        await system.save(TWO)
        old = await system.run("two")
        same = await system.call("POST", f"/runs/{old['id']}/retry")
        whole = await system.wait_for(str(same.json["id"]))
        assert (len(first.calls), len(second.calls)) == (1, 1)
        half = await system.call("POST", f"/runs/{old['id']}/retry", {"from_step": "second"})
        await system.wait_for(str(half.json["id"]))
    assert whole["status"] == "COMPLETED"
    assert whole["output"] == old["output"]
    assert (len(first.calls), len(second.calls)) == (1, 2)
