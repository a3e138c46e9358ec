"""Steps that choose their agent when they begin, in the whole system."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.agents import Call, Reply, Script
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

BROKEN = Reply(500, b"no", {"Content-Type": "text/plain"})


async def register(
    system: RunningSystem, stack: AsyncExitStack, name: str, *replies: Script, **fields: Json
) -> ScriptedAgent:
    agent = await stack.enter_async_context(ScriptedAgent(*replies or (simple_success(name),)))
    await system.register(name, agent.url, **{"protocol": "simple-a2a", **fields})
    return agent


async def run_step(system: RunningSystem, run_input: Json = None, **step: Json) -> JsonObject:
    await system.save({"name": "one", "steps": {"only": step}})
    return await system.run("one", run_input)


async def test_a_step_calls_the_agent_that_an_expression_names(system: RunningSystem) -> None:
    async with AsyncExitStack() as stack:
        for name in ("First", "Second"):
            await register(system, stack, name)
        run = await run_step(system, {"who": "Second"}, agent="${ input.who }", allow=["First", "Second"])
    step = step_of(run, "only")
    assert (run["status"], step["agent"]) == ("COMPLETED", "Second")


async def test_an_agent_that_is_not_allowed_is_not_called(system: RunningSystem) -> None:
    async with AsyncExitStack() as stack:
        agent = await register(system, stack, "Other")
        run = await run_step(system, {"who": "Other"}, agent="${ input.who }", allow=["First"])
    error = error_of(run)
    assert (run["status"], error["code"]) == ("FAILED", "agent_not_allowed")
    assert "'Other'" in str(error["message"])
    assert agent.calls == []


@pytest.mark.parametrize("allowed", [True, False])
async def test_an_expression_may_name_agents_with_a_tag(system: RunningSystem, *, allowed: bool) -> None:
    async with AsyncExitStack() as stack:
        agent = await register(system, stack, "Scholar", tags=["research"] if allowed else ["other"])
        run = await run_step(system, {"who": "Scholar"}, agent="${ input.who }", allow={"tag": "research"})
    if allowed:
        assert (run["status"], len(agent.calls)) == ("COMPLETED", 1)
    else:
        assert (error_of(run)["code"], agent.calls) == ("agent_not_allowed", [])


async def test_the_cheapest_agent_with_the_skill_is_called(system: RunningSystem) -> None:
    async with AsyncExitStack() as stack:
        await register(system, stack, "Dear", skills=["translate"], cost=2)
        await register(system, stack, "Cheap", skills=["translate"], cost=0.5)
        await register(system, stack, "Unrelated", skills=["sing"], cost=0)
        run = await run_step(system, skill="translate", select="cheapest")
    step = step_of(run, "only")
    assert (run["status"], step["agent"], step["attempts"]) == ("COMPLETED", "Cheap", 1)
    assert step["routing"] == {
        "agent": "Cheap",
        "reason": "cheapest: cost 0.5",
        "candidates": [
            {"agent": "Cheap", "status": "chosen", "reason": "cost 0.5"},
            {"agent": "Dear", "status": "available", "reason": "cost 2"},
        ],
        "others": 0,
        "tried": [],
        "hedges": [],
    }


async def test_an_agent_that_cannot_be_reached_is_passed_over_without_an_attempt(
    system: RunningSystem,
) -> None:
    async with AsyncExitStack() as stack:
        await system.register(
            "Cheap", "http://127.0.0.1:1", protocol="simple-a2a", skills=["translate"], cost=0.5
        )
        await register(system, stack, "Dear", skills=["translate"], cost=2)
        run = await run_step(system, skill="translate", select="cheapest")
    step = step_of(run, "only")
    assert (run["status"], step["agent"], step["attempts"]) == ("COMPLETED", "Dear", 1)


async def test_agents_take_turns(system: RunningSystem) -> None:
    async with AsyncExitStack() as stack:
        for name in ("First", "Second"):
            await register(system, stack, name, skills=["translate"])
        await system.save({"name": "one", "steps": {"only": {"skill": "translate", "select": "round_robin"}}})
        runs = [await system.run("one") for _ in range(4)]
    called = [step_of(run, "only")["agent"] for run in runs]
    assert called in (["First", "Second"] * 2, ["Second", "First"] * 2)


async def test_a_step_without_agents_fails_with_the_skill_that_is_missing(system: RunningSystem) -> None:
    error = error_of(await run_step(system, skill="translate", tags=["fast"]))
    assert error["code"] == "no_agent_found"
    assert error["message"] == "No registered agent offers the skill 'translate' and the tags fast."


async def test_an_agent_whose_breaker_is_open_is_passed_over(system: RunningSystem) -> None:
    breaker: JsonObject = {"failures": 1, "open_ms": 3_600_000}
    async with AsyncExitStack() as stack:
        broken = await register(
            system, stack, "Broken", BROKEN, skills=["translate"], cost=0, breaker=breaker
        )
        await register(system, stack, "Works", skills=["translate"], cost=1)
        await system.save(
            {"name": "direct", "steps": {"only": {"agent": "Broken", "retry": {"max_attempts": 1}}}}
        )
        assert (await system.run("direct"))["status"] == "FAILED"
        run = await run_step(system, skill="translate", select="cheapest")
    step = step_of(run, "only")
    assert (run["status"], step["agent"], len(broken.calls)) == ("COMPLETED", "Works", 1)
    assert "circuit breaker open until" in str(step["routing"])


async def test_a_step_waits_for_a_breaker_and_goes_on_by_itself(system: RunningSystem) -> None:
    breaker: JsonObject = {"failures": 1, "open_ms": 1_500}
    async with AsyncExitStack() as stack:
        agent = await register(system, stack, "Broken", BROKEN, skills=["translate"], breaker=breaker)
        await system.save(
            {"name": "direct", "steps": {"only": {"agent": "Broken", "retry": {"max_attempts": 1}}}}
        )
        assert (await system.run("direct"))["status"] == "FAILED"
        agent.script(simple_success("ok"))
        run = await run_step(system, skill="translate")
    assert (run["status"], len(agent.calls)) == ("COMPLETED", 2)


async def test_the_first_good_answer_wins_and_the_slow_call_is_stopped(system: RunningSystem) -> None:
    released = asyncio.Event()

    async def slow(_call: Call) -> Reply:
        await released.wait()
        return Reply(200, b"{}")

    both: JsonObject = {"skills": ["translate"], "repeatable": True}
    async with AsyncExitStack() as stack:
        agent = await register(system, stack, "Slow", slow, cost=0, **both)
        await register(system, stack, "Fast", cost=1, **both)
        run = await run_step(system, skill="translate", select="cheapest", hedge={"after": "50ms"})
        released.set()
        events = await system.items(f"/runs/{run['id']}/events")
    step = step_of(run, "only")
    assert (run["status"], step["agent"], step["attempts"], len(agent.calls)) == ("COMPLETED", "Fast", 1, 1)
    types = [str(event["type"]) for event in events]
    assert types[types.index("StepStarted") :] == [
        "StepStarted", "StepHedged", "StepHedgeWon", "StepCompleted", "RunCompleted",
    ]  # fmt: skip
