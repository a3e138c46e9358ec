"""Agents that move, over REST: from the plan to the end of the old side."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.resources import read_resource
from tests.scenarios.api.test_keys import bearer, create_key, guarded_system
from tests.scenarios.kit_server import served

from trunkline.agentkit import Agent, Task
from trunkline.api.resources.agents.migration import (
    AgentEventPage,
    ComparisonPage,
    MigrationChange,
    MigrationOutcome,
    MigrationPage,
    MigrationStatus,
)
from trunkline.api.schemas import AgentMetadata
from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Answer, FakeClock, RunningSystem, ScriptedAgent, running_system, simple_success
from trunkline.testing.system import objects_in, step_of

pytestmark = pytest.mark.anyio

AGENTS = "/migration/agents"
ONE: JsonObject = {
    "name": "one",
    "steps": {"only": {"agent": "Kit"}},
    "output": {"all": "${ steps.only.output }", "text": "${ steps.only.output.text }"},
}


def kit() -> Agent:
    agent = Agent("Kit")

    @agent
    def answer(task: Task) -> str:
        return f"about {task.text}"

    return agent


async def act(system: RunningSystem, action: str, body: Json, agent: str = "Kit") -> Answer:
    return await system.call("POST", f"{AGENTS}/{agent}/{action}", body)


async def done(system: RunningSystem, action: str, body: Json, agent: str = "Kit") -> MigrationChange:
    answer = await act(system, action, body, agent)
    assert answer.status == 200, answer.json
    return read_resource(MigrationChange, answer.body)


async def spoken(system: RunningSystem) -> tuple[Json, Json]:
    run = await system.run("one", {"query": "tides"})
    assert run["status"] == "COMPLETED", run
    output = run["output"]
    assert isinstance(output, dict)
    return step_of(run, "only")["protocol"], output["text"]


def reasons(answer: Answer) -> list[Json]:
    return [error["message"] for error in objects_in(answer.json["errors"])]


async def test_an_agent_moves_and_comes_back_while_workflows_run(system: RunningSystem) -> None:
    async with served(kit()) as url:
        await system.register("Kit", url, protocol="simple-a2a", repeatable=True)
        await system.save(ONE)
        plan = read_resource(MigrationPage, (await system.call("GET", "/migration")).body)
        (entry,) = plan["items"]
        assert [blocker["code"] for blocker in entry["blockers"]] == ["no_target"]
        assert [(read["place"], read["workflow"]) for read in entry["expressions"]] == [("output.all", "one")]
        assert (entry["workflows"], entry["event"], entry["comparisons"]) == (["one"], None, {})
        await done(system, "shadow", {"percent": 100, "limits": {"comparisons": 1}, "who": "ann"})
        refused = await act(system, "cutover", {})
        assert refused.status == 409
        assert reasons(refused) == [
            "Too few comparisons: 0 so far, and the minimum is 1.",
            "Not attested yet: the new version is deployed and documented, and the team is informed.",
        ]
        assert await spoken(system) == ("simple-a2a", "about tides")
        await system.wait_for_metric("shadow_comparisons_total", 1, agent_name="Kit", verdict="agree")
        pages = await system.call("GET", f"{AGENTS}/Kit/comparisons?verdict=agree")
        (comparison,) = read_resource(ComparisonPage, pages.body)["items"]
        assert comparison["step"] == "only"
        await done(system, "ready", {"note": "deployed on Monday", "who": "ann"})
        change = await done(system, "cutover", {"why": "the night is quiet", "who": "ann"})
        assert (change["migration"]["stage"], change["migration"]["forced"]) == ("cut_over", False)
        assert await spoken(system) == ("jsonrpc-2.0", "about tides")
        await done(system, "rollback", {"why": "just to see", "who": "bob"})
        assert await spoken(system) == ("simple-a2a", "about tides")
        assert await system.metric("agent_migration_stage", agent_name="Kit", stage="rolled_back") == 1
        status = read_resource(MigrationStatus, (await system.call("GET", f"{AGENTS}/Kit")).body)
        assert "new" in status["calls"]
        assert (status["comparisons"], status["calls"]["new"]["calls"]) == ({"agree": 1}, 1)
        plan = read_resource(MigrationPage, (await system.call("GET", "/migration")).body)
        (entry,) = plan["items"]
        assert (entry["comparisons"], entry["calls"], entry["event"]) == (
            status["comparisons"],
            status["calls"],
            status["event"],
        )
        events = await system.call("GET", "/migration/events?agent=Kit")
        assert [
            (event["who"], event["why"]) for event in read_resource(AgentEventPage, events.body)["items"]
        ] == [
            ("bob", "just to see"),
            ("ann", "the night is quiet"),
            ("ann", "deployed on Monday"),
            ("ann", "no reason given"),
        ]


@pytest.mark.embedded_only
async def test_when_the_old_side_is_given_up_the_agent_is_its_new_side(tmp_path: Path) -> None:
    clock = FakeClock()
    async with (
        running_system(tmp_path, clock=clock) as system,
        ScriptedAgent(simple_success("old")) as old,
        served(kit()) as new,
    ):
        await system.register("Kit", old.url, protocol="simple-a2a")
        await system.save(ONE)
        await done(system, "ready", {"note": "deployed", "target": {"url": new}})
        answer = await system.call("POST", "/migration/cutover", {})
        outcome = read_resource(MigrationOutcome, answer.body)
        assert [change["agent"] for change in outcome["changed"]] == ["Kit"]
        moving = AgentMetadata.model_validate_json((await system.call("GET", "/agents/Kit")).body)
        assert moving.migration is not None
        assert (moving.url, moving.migration["stage"]) == (old.url, "cut_over")
        changed = await system.call("PATCH", "/agents/Kit", {"url": new})
        assert changed.status == 409
        assert "trunkline agents migrate finish Kit" in str(changed.json["fix"])
        assert (await system.call("DELETE", "/agents/Kit")).status == 409
        assert (await act(system, "finish", None)).status == 409
        clock.advance(timedelta(seconds=6))
        finished = await done(system, "finish", None)
        assert finished["migration"]["stage"] == "finished"
        assert finished["event"] is not None
        agent = AgentMetadata.model_validate_json((await system.call("GET", "/agents/Kit")).body)
        assert (agent.url, agent.protocol) == (new, "jsonrpc-2.0")
        assert await spoken(system) == ("jsonrpc-2.0", "about tides")
        assert old.calls == []
        back = await system.call("POST", "/migration/rollback", {"why": "too late"})
        outcome = read_resource(MigrationOutcome, back.body)
        assert (outcome["changed"], outcome["refused"]) == ([], [])
        (left,) = outcome["left_alone"]
        assert (left["agent"], "no longer exists" in left["message"]) == ("Kit", True)
        assert (await system.call("DELETE", "/agents/Kit")).status == 204
        known = await system.call("GET", "/migration/events?agent=Kit")
        assert objects_in(known.json["items"])[0]["id"] == finished["event"]["id"]
        assert (await system.call("GET", "/migration/events?agent=Nobody")).status == 404


@pytest.mark.embedded_only
async def test_a_cutover_outlives_the_process_that_was_asked_for_it(tmp_path: Path) -> None:
    async with served(kit()) as url:
        async with running_system(tmp_path) as system:
            await system.register("Kit", url, protocol="simple-a2a")
            await system.save(ONE)
            await done(system, "ready", {"note": "deployed", "target": {}})
            await done(system, "cutover", {})
        async with running_system(tmp_path) as system:
            assert await spoken(system) == ("jsonrpc-2.0", "about tides")
            await done(system, "rollback", {"why": "to see"})
        async with running_system(tmp_path) as system:
            assert await spoken(system) == ("simple-a2a", "about tides")


async def test_agents_are_cut_over_together_or_not_at_all(system: RunningSystem) -> None:
    async with served(kit()) as good, ScriptedAgent(simple_success("old")) as bad:
        for name, url in (("Good", good), ("Bad", bad.url)):
            await system.register(name, url, protocol="simple-a2a")
            await done(system, "ready", {"note": "deployed", "target": {}}, name)
        refused = await system.call("POST", "/migration/cutover", {})
        assert refused.status == 409
        (error,) = objects_in(refused.json["errors"])
        assert error["path"] == "Bad"
        assert str(error["message"]).startswith("The check of the target failed: grade ")
        good_one = await system.call("GET", f"{AGENTS}/Good")
        status = read_resource(MigrationStatus, good_one.body)
        assert status["migration"] is not None
        assert (status["migration"]["stage"], status["blockers"][0]["code"]) == ("planned", "not_repeatable")
        assert status["last_check"] is not None
        assert status["last_check"]["passed"]
        forced = await system.call("POST", "/migration/cutover", {"force": True})
        assert forced.status == 422
        forced = await system.call("POST", "/migration/cutover", {"force": True, "why": "it must be"})
        outcome = read_resource(MigrationOutcome, forced.body)
        assert [(change["agent"], change["migration"]["forced"]) for change in outcome["changed"]] == [
            ("Bad", True),
            ("Good", False),
        ]


WRONG: dict[str, tuple[str, Json, int]] = {
    "a shadow of an agent that may not be called twice": ("shadow", {"percent": 10}, 409),
    "more than all": ("canary", {"percent": 101}, 422),
    "no share": ("canary", {}, 422),
    "an unknown word": ("canary", {"percent": 1, "percents": 2}, 422),
    "no protocol": ("canary", {"percent": 1, "target": {"protocol": "smtp"}}, 422),
    "an unknown limit": ("canary", {"percent": 1, "limits": {"unknown": 1}}, 422),
    "nothing attested": ("ready", {"note": " "}, 422),
    "nobody": ("ready", {"note": "x", "who": "a\nb"}, 422),
    "nowhere to go": ("cutover", {"force": True, "why": "x"}, 409),
    "no reason": ("rollback", {}, 422),
    "nothing to roll back": ("rollback", {"why": "x"}, 409),
    "nothing to finish": ("finish", {}, 409),
}


async def test_what_makes_no_sense_is_refused_with_a_reason_and_a_fix(shared_system: RunningSystem) -> None:
    await shared_system.register("Still", "http://127.0.0.1:9/", protocol="simple-a2a")
    for case, (action, body, status) in WRONG.items():
        answer = await act(shared_system, action, body, "Still")
        assert answer.status == status, (case, answer.json)
        assert answer.json["detail"]
        assert answer.json["fix"]
        assert (await act(shared_system, action, body or {}, "Nobody")).status in {404, 422}, case
    events = await shared_system.call("GET", "/migration/events?agent=Still")
    assert events.json["items"] == []


@pytest.mark.embedded_only
async def test_who_has_a_key_is_known_by_its_name(tmp_path: Path) -> None:
    key = await create_key(tmp_path, "admin", "night-shift")
    async with guarded_system(tmp_path) as system:
        agent: JsonObject = {"name": "A", "url": "http://127.0.0.1:9/", "protocol": "simple-a2a"}
        assert (await system.call("POST", "/agents", agent, bearer(key))).status == 201
        body: JsonObject = {"note": "deployed", "who": "somebody else"}
        answer = await system.call("POST", f"{AGENTS}/A/ready", body, bearer(key))
        change = read_resource(MigrationChange, answer.body)
    assert change["event"] is not None
    assert change["event"]["who"] == "night-shift"
    assert change["migration"]["ready"] is not None
    assert change["migration"]["ready"]["who"] == "night-shift"
