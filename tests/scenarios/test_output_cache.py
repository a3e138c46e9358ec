"""Steps that reuse the output of an equal step, in the whole system."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, STDOUT
from http import HTTPStatus

import pytest
from tests.forked_program import trunkline_command

from trunkline.jsontypes import Json
from trunkline.testing import RunningSystem, ScriptedAgent, simple_error, simple_success
from trunkline.testing.agents import Call, Script
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

CACHED: Json = {
    "name": "cached",
    "steps": {
        "only": {
            "agent": "Agent",
            "input": "${ input }",
            "cache": {"key": "${ input.q }", "ttl": "1h", "scope": "agent"},
            "retry": {"max_attempts": 1},
        }
    },
}


def held(until: asyncio.Event, output: Json) -> Script:
    async def answer(call: Call) -> Json:
        await until.wait()
        return simple_success(output)(call)

    return answer


async def trunkline(system: RunningSystem, *arguments: str) -> str:
    """What the command prints."""
    process = await asyncio.create_subprocess_exec(
        *trunkline_command(), *arguments, "--url", system.url, stdout=PIPE, stderr=STDOUT
    )
    printed, _ = await process.communicate()
    return printed.decode()


async def test_the_second_run_takes_the_output_of_the_first(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("once")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(CACHED)
        first, second = await system.run("cached", {"q": "a"}), await system.run("cached", {"q": "a"})
        other = await system.run("cached", {"q": "b"})

    assert [run["status"] for run in (first, second, other)] == ["COMPLETED"] * 3
    assert len(agent.calls) == 2
    assert second["output"] == first["output"]
    step = step_of(second, "only")
    assert (step["attempts"], "from_cache" in step_of(first, "only")) == (0, False)
    assert step["from_cache"] == {
        "run_id": first["id"],
        "step": "only",
        "completed_at": step_of(first, "only")["finished_at"],
    }
    types = [event["type"] for event in await system.items(f"/runs/{second['id']}/events")]
    assert types == ["RunStarted", "StepOutputSought", "StepFromCache", "RunCompleted"]
    assert f"from cache: run {first['id']}" in await trunkline(system, "runs", "show", str(second["id"]))


async def test_equal_runs_at_the_same_time_make_one_call(system: RunningSystem) -> None:
    answers = asyncio.Event()
    async with ScriptedAgent(held(answers, "shared")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(CACHED)
        runs = [await system.start("cached", {"q": "a"}) for _ in range(4)]
        await agent.called()
        for run in runs:
            await system.wait_for_step(run, "only", {"RUNNING", "WAITING"})
        answers.set()
        ended = [await system.wait_for(run) for run in runs]

    assert [run["output"] for run in ended] == [ended[0]["output"]] * 4
    assert len(agent.calls) == 1
    assert sum("from_cache" in step_of(run, "only") for run in ended) == 3


async def test_another_run_makes_the_call_if_the_first_one_fails(system: RunningSystem) -> None:
    fails = asyncio.Event()

    async def fail(call: Call) -> Json:
        await fails.wait()
        return simple_error("no")(call)

    async with ScriptedAgent(fail, simple_success("yes")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(CACHED)
        first = await system.start("cached", {"q": "a"})
        await agent.called()
        others = [await system.start("cached", {"q": "a"}) for _ in range(2)]
        for run in others:
            await system.wait_for_step(run, "only", {"WAITING"})
        fails.set()
        ended = [await system.wait_for(run) for run in (first, *others)]

    assert [run["status"] for run in ended] == ["FAILED", "COMPLETED", "COMPLETED"]
    assert len(agent.calls) == 2


async def test_a_waiting_run_goes_on_when_the_first_one_is_cancelled(system: RunningSystem) -> None:
    never = asyncio.Event()
    async with ScriptedAgent(held(never, "late"), simple_success("yes")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(CACHED)
        first = await system.start("cached", {"q": "a"})
        await agent.called()
        second = await system.start("cached", {"q": "a"})
        await system.wait_for_step(second, "only", {"WAITING"})
        await system.call("POST", f"/runs/{first}/cancel")
        assert (await system.wait_for(second))["status"] == "COMPLETED"
        assert (await system.wait_for(first))["status"] == "CANCELLED"


async def test_the_cache_is_cleared_by_agent_and_workflow(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("x")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(CACHED)
        await system.run("cached", {"q": "a"})
        size = await system.call("GET", "/cache")
        other = await system.call("DELETE", "/cache?agent=Other")
        shown = await trunkline(system, "cache", "show")
        cleared = await trunkline(system, "cache", "clear", "--workflow", "cached")
        await system.run("cached", {"q": "a"})

    assert (size.status, size.json["outputs"]) == (HTTPStatus.OK, 1)
    assert other.json == {"cleared": 0}
    assert (shown.startswith("1 output, "), cleared) == (True, "Deleted 1 output\n")
    assert len(agent.calls) == 2
