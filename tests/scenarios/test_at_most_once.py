"""Steps that are never called again: a lost answer waits for a person, who says what became of it."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Call, RunningSystem, ScriptedAgent, simple_error, simple_success
from trunkline.testing.agents import Hangup, Reply, Script
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

ONCE: JsonObject = {
    "name": "once",
    "steps": {
        "pay": {
            "agent": "Bank",
            "delivery": "at_most_once",
            "timeout": "300ms",
            "retry": {"max_attempts": 5, "first_delay": "10ms", "on": ["any"]},
        },
        "thank": {"agent": "Thanks", "input": "${ steps.pay.output }"},
    },
}


async def never(call: Call) -> Json:
    await asyncio.Event().wait()
    return None


async def lose_the_answer(
    system: RunningSystem, bank: ScriptedAgent, thanks: ScriptedAgent
) -> tuple[str, JsonObject]:
    """A run whose payment got no answer, and its step."""
    await system.register("Bank", bank.url, protocol="simple-a2a")
    await system.register("Thanks", thanks.url, protocol="simple-a2a")
    await system.save(ONCE)
    run_id = await system.start("once")
    run = await system.wait_for(run_id, {"WAITING"})
    return run_id, step_of(run, "pay")


@pytest.mark.parametrize("lost", [pytest.param(Hangup(), id="closed"), pytest.param(never, id="timeout")])
async def test_a_lost_answer_waits_for_a_person_and_is_not_asked_for_again(
    system: RunningSystem, lost: Script
) -> None:
    async with ScriptedAgent(lost) as bank, ScriptedAgent(simple_success("thanks")) as thanks:
        _, step = await lose_the_answer(system, bank, thanks)
        assert len(bank.calls) == 1
    assert step["status"] == "OUTCOME_UNKNOWN"
    assert error_of(step)["code"] == "outcome_unknown"
    assert "runs resolve" in str(error_of(step)["fix"])
    assert isinstance(step["waiting_for"], dict)
    assert step["waiting_for"]["kind"] == "outcome"


async def test_a_person_who_knows_that_it_succeeded_gives_the_output(system: RunningSystem) -> None:
    async with ScriptedAgent(Hangup()) as bank, ScriptedAgent(simple_success("thanks")) as thanks:
        run_id, _ = await lose_the_answer(system, bank, thanks)
        body: Json = {"outcome": "succeeded", "output": {"paid": 5}}
        answer = await system.call("POST", f"/runs/{run_id}/steps/pay/resolve", body)
        assert answer.status == 202
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert step_of(run, "pay")["output"] == {"paid": 5}
    assert thanks.calls[0].body["input"] == {"paid": 5}
    assert len(bank.calls) == 1


async def test_a_person_who_knows_that_it_failed_fails_the_run(system: RunningSystem) -> None:
    async with ScriptedAgent(Hangup()) as bank, ScriptedAgent(simple_success("thanks")) as thanks:
        run_id, _ = await lose_the_answer(system, bank, thanks)
        await system.call("POST", f"/runs/{run_id}/steps/pay/resolve", {"outcome": "failed"})
        run = await system.wait_for(run_id)
    assert run["status"] == "FAILED"
    assert error_of(run)["step"] == "pay"
    assert not thanks.calls
    assert len(bank.calls) == 1


async def test_call_again_sends_the_same_task_once_more(system: RunningSystem) -> None:
    async with (
        ScriptedAgent(Hangup(), simple_success("paid")) as bank,
        ScriptedAgent(simple_success("thanks")) as thanks,
    ):
        run_id, _ = await lose_the_answer(system, bank, thanks)
        await system.call("POST", f"/runs/{run_id}/steps/pay/resolve", {"outcome": "call_again"})
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert [call.id for call in bank.calls] == [f"{run_id}/pay/0"] * 2
    assert step_of(run, "pay")["attempts"] == 2


async def test_a_call_again_that_is_lost_too_waits_again(system: RunningSystem) -> None:
    async with (
        ScriptedAgent(Hangup(), Hangup(), simple_success("paid")) as bank,
        ScriptedAgent(simple_success("thanks")) as thanks,
    ):
        run_id, _ = await lose_the_answer(system, bank, thanks)
        again: Json = {"outcome": "call_again"}
        await system.call("POST", f"/runs/{run_id}/steps/pay/resolve", again)
        await bank.called(2)
        await system.wait_for_step(run_id, "pay", {"OUTCOME_UNKNOWN"})
        await system.wait_for(run_id, {"WAITING"})
        answer = await system.call("POST", f"/runs/{run_id}/steps/pay/resolve", again)
        assert answer.status == 202
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert step_of(run, "pay")["attempts"] == 3


async def test_a_known_outcome_cannot_be_resolved(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("paid")) as agent:
        await system.register("Bank", agent.url, protocol="simple-a2a")
        await system.register("Thanks", agent.url, protocol="simple-a2a")
        await system.save(ONCE)
        run = await system.run("once")
        answer = await system.call("POST", f"/runs/{run['id']}/steps/pay/resolve", {"outcome": "failed"})
    assert answer.status == 409
    assert "COMPLETED" in str(answer.json["detail"])


@pytest.mark.parametrize(
    "failure", [pytest.param(Reply(503, b"no"), id="HTTP 503"), pytest.param(simple_error("no"), id="error")]
)
async def test_an_answered_failure_fails_the_step_without_a_second_call(
    system: RunningSystem, failure: Script
) -> None:
    async with ScriptedAgent(failure) as agent:
        await system.register("Bank", agent.url, protocol="simple-a2a")
        await system.save(ONCE)
        run = await system.run("once")
    assert run["status"] == "FAILED"
    assert len(agent.calls) == 1


async def test_a_refused_connection_is_tried_again_because_nothing_was_sent(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("gone")) as before:
        url, port = before.url, before.port
    await system.register("Bank", url, protocol="simple-a2a")
    retry: JsonObject = {"max_attempts": 100, "backoff": "fixed", "first_delay": "100ms"}
    step: JsonObject = {"agent": "Bank", "delivery": "at_most_once", "retry": retry}
    await system.save({"name": "once", "steps": {"pay": step}})
    run_id = await system.start("once")
    await system.wait_for_step(run_id, "pay", {"WAITING"})
    async with ScriptedAgent(simple_success("paid"), port=port) as agent:
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert len(agent.calls) == 1
