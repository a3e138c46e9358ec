"""Joins and step deadlines with real calls: early finish, losers that are told, branches that fail."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from trunkline.jsontypes import Json
from trunkline.testing import (
    Call,
    FakeClock,
    RunningSystem,
    ScriptedAgent,
    running_system,
    simple_error,
    simple_success,
)
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio


async def never(call: Call) -> Json:
    await asyncio.Event().wait()
    return None


async def save_race(system: RunningSystem, join: Json, *branches: str) -> None:
    await system.save(
        {
            "name": "race",
            "steps": {
                **{f"s{number}": {"agent": agent} for number, agent in enumerate(branches)},
                "last": {
                    "agent": "Good",
                    "needs": [f"s{number}" for number in range(len(branches))],
                    "join": join,
                },
            },
        }
    )


@pytest.mark.parametrize("join", ["any", "majority", {"at_least": 2}], ids=["any", "majority", "at_least"])
async def test_a_join_goes_on_with_enough_and_breaks_off_the_rest(system: RunningSystem, join: Json) -> None:
    async with ScriptedAgent(simple_success("ok")) as good, ScriptedAgent(never) as slow:
        await system.register("Good", good.url, protocol="simple-a2a")
        await system.register("Slow", slow.url, protocol="simple-a2a")
        await save_race(system, join, "Good", "Slow", "Good")
        run = await system.run("race")
    assert (run["status"], step_of(run, "s1")["status"]) == ("COMPLETED", "CANCELLED")


async def test_failed_branches_leave_the_run_to_the_join(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("ok")) as good, ScriptedAgent(simple_error("no")) as bad:
        await system.register("Good", good.url, protocol="simple-a2a")
        await system.register("Bad", bad.url, protocol="simple-a2a")
        await save_race(system, {"policy": "any", "cancel_rest": False}, "Bad", "Good", "Bad")
        run = await system.run("race")
        assert (run["status"], step_of(run, "s0")["status"]) == ("COMPLETED", "FAILED")
        await save_race(system, "majority", "Bad", "Good", "Bad")
        run = await system.run("race")
    assert (run["status"], error_of(run)["code"]) == ("FAILED", "join_failed")


async def test_a_step_that_passes_its_deadline_fails_and_its_call_is_broken_off(tmp_path: Path) -> None:
    clock = FakeClock()
    async with ScriptedAgent(never) as agent, running_system(tmp_path / "data", clock=clock) as system:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "late", "steps": {"only": {"agent": "Agent", "deadline": "5s"}}})
        run_id = await system.start("late")
        await agent.called()
        clock.advance(timedelta(seconds=6))
        run = await system.wait_for(run_id)
        await agent.caller_left()
    assert (run["status"], error_of(run)["code"]) == ("FAILED", "deadline_exceeded")
    assert "within its deadline of 5s" in str(error_of(step_of(run, "only"))["message"])
