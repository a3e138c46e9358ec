"""Steps that are repeated round by round, and switches, with real calls."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Call, RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.system import error_of, objects_in, step_of

pytestmark = pytest.mark.anyio


def reviewer(call: Call) -> Json:
    """Gives a text one point more than the round."""
    return simple_success({"given": call.body["input"]})(call)


def repeated(**repeat: Json) -> JsonObject:
    inner: JsonObject = {
        "draft": {"agent": "Worker", "input": ["${ round }", "${ previous.steps.draft.output }"]},
        "review": {"set": {"score": "${ steps.draft.output.data.given[0] }"}},
    }
    return {
        "name": "rounds",
        "steps": {
            "write": {
                "repeat": {"until": "steps.review.output.score >= input.enough", **repeat},
                "steps": inner,
                "output": "${ steps.draft.output.data.given }",
            }
        },
    }


async def test_a_block_is_repeated_until_its_condition_is_true(system: RunningSystem) -> None:
    async with ScriptedAgent(reviewer) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(repeated())
        run = await system.run("rounds", {"enough": 3})
        assert len(agent.calls) == 3
    # The third round has read the second, which has read the first.
    second = {"data": {"given": [2, {"data": {"given": [1, None]}}]}}
    assert (run["status"], run["output"]) == ("COMPLETED", [3, second])
    step = step_of(run, "write")
    assert (step["round"], step["attempts"]) == (3, 1)
    rounds = await system.items(f"/runs?parent={run['id']}&payloads=true")
    inputs = [each["input"] for each in rounds]
    # In no particular order: all of them have the time of the run in their ids.
    assert {str(given["round"]) for given in objects_in(inputs)} == {"1", "2", "3"}
    assert [each["status"] for each in rounds] == ["COMPLETED"] * 3


async def test_too_many_rounds_fail_the_step(system: RunningSystem) -> None:
    async with ScriptedAgent(reviewer) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(repeated(max_rounds=2))
        run = await system.run("rounds", {"enough": 3})
        assert len(agent.calls) == 2
    assert (run["status"], error_of(run)["code"]) == ("FAILED", "max_rounds")


async def test_the_last_round_can_be_good_enough(system: RunningSystem) -> None:
    async with ScriptedAgent(reviewer) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(repeated(max_rounds=2, on_max="continue", delay="1ms"))
        run = await system.run("rounds", {"enough": 3})
    assert (run["status"], run["output"]) == ("COMPLETED", [2, {"data": {"given": [1, None]}}])


async def test_a_single_step_is_repeated_for_each_item(system: RunningSystem) -> None:
    done: dict[str, int] = {}

    def poll(call: Call) -> Json:
        done[str(call.body["input"])] = count = done.get(str(call.body["input"]), 0) + 1
        return simple_success({"count": count})(call)

    definition: JsonObject = {
        "name": "polling",
        "steps": {
            "poll": {
                "agent": "Worker",
                "for_each": ["a", "b"],
                "repeat": {"until": "steps.poll.output.data.count == 2 + index"},
            }
        },
        "output": "${ steps.poll.output.map(each, each.data.count) }",
    }
    async with ScriptedAgent(poll) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(definition)
        run = await system.run("polling")
    assert (run["status"], run["output"]) == ("COMPLETED", [2, 3])


async def test_a_round_that_fails_is_retried_as_that_round(system: RunningSystem) -> None:
    failed: list[str] = []

    def flaky(call: Call) -> Json:
        if call.body["input"] == 2 and not failed:
            failed.append(str(call.id))
            return {"task_id": call.id, "status": "error", "output": None, "error": "Not now."}
        return simple_success({"round": call.body["input"]})(call)

    definition: JsonObject = {
        "name": "flaky",
        "steps": {
            "block": {
                "repeat": {"until": "steps.work.output.data.round == 3"},
                "retry": {"max_attempts": 2, "first_delay": "1ms"},
                "steps": {"work": {"agent": "Worker", "input": "${ round }", "retry": {"max_attempts": 1}}},
            }
        },
    }
    async with ScriptedAgent(flaky) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(definition)
        run = await system.run("flaky")
        assert [call.body["input"] for call in agent.calls] == [1, 2, 2, 3]
    assert run["status"] == "COMPLETED"
    assert len(await system.items(f"/runs?parent={run['id']}")) == 4


async def test_a_condition_that_has_no_value_fails_the_step(system: RunningSystem) -> None:
    await system.save(
        {"name": "w", "steps": {"a": {"set": {"x": "${ input }"}, "repeat": {"until": "steps.a.output.x.y"}}}}
    )
    run = await system.run("w")
    detail = error_of(run)["detail"]
    assert isinstance(detail, dict)
    assert (run["status"], detail["code"]) == ("FAILED", "expression_failed")


SWITCH: JsonObject = {
    "name": "triage",
    "steps": {
        "sort": {"set": {"kind": "${ input.kind }"}},
        "handle": {
            "switch": [
                {"when": "steps.sort.output.kind == 'bug'", "steps": {"fix": {"set": {"did": "fixed"}}}},
                {
                    "when": "input.kind in ['bug', 'question']",
                    "steps": {"look": {"set": {"x": 1}}, "say": {"set": {"did": "${ input.kind }"}}},
                    "output": "${ steps.say.output }",
                },
                {"else": True, "steps": {"fix": {"set": {"did": "nothing"}}}},
            ]
        },
        "after": {"set": {"did": "${ steps.handle.output.did }"}},
    },
}


@pytest.mark.parametrize(("kind", "did"), [("bug", "fixed"), ("question", "question"), ("idea", "nothing")])
async def test_exactly_one_branch_of_a_switch_runs(system: RunningSystem, kind: str, did: str) -> None:
    await system.save(SWITCH)
    run = await system.run("triage", {"kind": kind})
    assert run["output"] == {"did": did}
    (switch,) = await system.items(f"/runs?parent={run['id']}")
    branches = objects_in((await system.get(str(switch["id"])))["steps"])
    assert sorted(str(branch["status"]) for branch in branches) == ["COMPLETED", "SKIPPED", "SKIPPED"]


async def test_without_a_branch_that_applies_the_output_is_null(system: RunningSystem) -> None:
    branch: Json = {"when": "input.yes", "steps": {"a": {"set": {"x": 1}}}}
    await system.save({"name": "maybe", "steps": {"s": {"switch": [branch]}}})
    run = await system.run("maybe", {"yes": False})
    assert (run["status"], run["output"]) == ("COMPLETED", None)
