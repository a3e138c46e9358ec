"""Steps inside steps with real calls: what they read, how they end, and what is shown of them."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Call, RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.system import error_of, objects_in, step_of

pytestmark = pytest.mark.anyio


def worker(call: Call) -> Json:
    given = call.body["input"]
    if given == "fail":
        return {"task_id": call.id, "status": "error", "output": None, "error": "It cannot be done."}
    return simple_success({"done": given})(call)


def with_block(**block: Json) -> JsonObject:
    """A step, a block that reads it, and a step behind the block."""
    inner: JsonObject = {
        "outline": {"agent": "Worker", "input": "${ steps.topic.output.data.done }-outline"},
        "text": {"agent": "Worker", "input": "${ steps.outline.output.data.done }-text"},
    }
    return {
        "name": "article",
        "steps": {
            "topic": {"agent": "Worker", "input": "${ input.topic }"},
            "draft": {"steps": inner, **block},
            "publish": {"agent": "Worker", "input": "${ string(steps.draft.output) }"},
        },
    }


async def blocks_of(system: RunningSystem, run: Json) -> list[JsonObject]:
    return await system.items(f"/runs?parent={run}&payloads=true")


async def test_a_block_reads_the_steps_outside_and_returns_what_it_says(system: RunningSystem) -> None:
    async with ScriptedAgent(worker) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(with_block(output="${ steps.text.output.data.done }"))
        run = await system.run("article", {"topic": "owls"})
        (block,) = await blocks_of(system, run["id"])
    assert run["status"] == "COMPLETED"
    assert step_of(run, "draft")["output"] == "owls-outline-text"
    assert (block["block"], block["status"], block["output"]) == ("draft", "COMPLETED", "owls-outline-text")
    assert step_of(run, "draft")["child"] == {"run_id": block["id"], "status": "COMPLETED"}
    assert [run["id"] for run in await system.items("/runs")] == [run["id"]]


async def test_without_an_output_a_block_returns_its_last_step(system: RunningSystem) -> None:
    async with ScriptedAgent(worker) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        definition = with_block()
        steps = definition["steps"]
        assert isinstance(steps, dict)
        await system.save({**definition, "steps": {name: steps[name] for name in ("topic", "draft")}})
        run = await system.run("article", {"topic": "owls"})
    assert isinstance(run["output"], dict)
    assert run["output"]["data"] == {"done": "owls-outline-text"}


async def test_a_loop_runs_the_block_for_each_item(system: RunningSystem) -> None:
    definition: JsonObject = {
        "name": "all",
        "steps": {
            "each": {
                "for_each": "${ input.topics }",
                "steps": {
                    "first": {"agent": "Worker", "input": "${ item }-${ index }"},
                    "pairs": {"agent": "Worker", "for_each": ["a", "b"], "input": "${ item }${ index }"},
                },
                "output": "${ [item, steps.first.output.data.done, steps.pairs.output[1].data.done] }",
            }
        },
    }
    async with ScriptedAgent(worker) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(definition)
        run = await system.run("all", {"topics": ["x", "y"]})
    assert run["output"] == [["x", "x-0", "b1"], ["y", "y-1", "b1"]]


async def test_blocks_nest_and_the_nearest_step_of_a_name_is_read(system: RunningSystem) -> None:
    definition: JsonObject = {
        "name": "nested",
        "steps": {
            "a": {"set": {"level": 0}},
            "b": {
                "steps": {
                    "a": {"set": {"level": 1}},
                    "c": {
                        "steps": {"d": {"set": {"a": "${ steps.a.output.level }", "x": "${ input.x }"}}},
                        "output": "${ steps.d.output }",
                    },
                },
                "output": "${ steps.c.output }",
                "needs": ["a"],
            },
        },
    }
    await system.save(definition)
    run = await system.run("nested", {"x": 7})
    assert run["output"] == {"a": 1, "x": 7}


async def test_the_failure_of_a_block_names_the_step_and_can_be_handled(system: RunningSystem) -> None:
    definition: JsonObject = {
        "name": "failing",
        "steps": {
            "block": {
                "steps": {"work": {"agent": "Worker", "input": "fail", "retry": {"max_attempts": 1}}},
                "retry": {"max_attempts": 2, "first_delay": "1ms"},
                "on_error": "continue",
            },
            "after": {"set": {"why": "${ steps.block.error.code }"}},
        },
    }
    async with ScriptedAgent(worker) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(definition)
        run = await system.run("failing")
        assert len(agent.calls) == 2
    step = step_of(run, "block")
    assert (run["status"], step["status"], step["attempts"]) == ("COMPLETED", "FAILED", 2)
    assert run["output"] == {"why": "block_failed"}
    assert error_of(step)["message"] == "The block block failed at step work: It cannot be done."


async def test_a_question_in_a_block_is_in_the_inbox_with_its_form(system: RunningSystem) -> None:
    form: Json = {"type": "object", "required": ["rating"]}
    await system.save(
        {
            "name": "asking",
            "steps": {"block": {"steps": {"ask": {"ask": {"title": "Rate it", "form": form}}}}},
        }
    )
    run = await system.start("asking")
    await system.wait_for_step(run, "block", {"RUNNING"})
    (block,) = await blocks_of(system, run)
    await system.wait_for(str(block["id"]), {"WAITING"})
    (item,) = await system.items("/inbox")
    assert (item["run_id"], item["form"]) == (block["id"], form)
    answer = await system.call("POST", f"/runs/{block['id']}/steps/ask/reply", {"data": {"rating": 5}})
    assert answer.status == 202
    ended = await system.wait_for(run)
    assert isinstance(ended["output"], dict)
    assert ended["output"]["data"] == {"rating": 5}


async def test_cancelling_the_run_cancels_its_blocks(system: RunningSystem) -> None:
    await system.save({"name": "long", "steps": {"block": {"steps": {"wait": {"sleep": "1h"}}}}})
    run = await system.start("long")
    await system.wait_for_step(run, "block", {"RUNNING"})
    (block,) = await blocks_of(system, run)
    await system.wait_for_step(str(block["id"]), "wait", {"WAITING"})
    await system.call("POST", f"/runs/{run}/pause")
    await system.wait_for(str(block["id"]), {"PAUSED"})
    await system.call("POST", f"/runs/{run}/resume")
    await system.wait_for(str(block["id"]), {"RUNNING"})
    await system.call("POST", f"/runs/{run}/cancel")
    assert (await system.wait_for(run))["status"] == "CANCELLED"
    assert (await system.get(str(block["id"])))["status"] == "CANCELLED"


async def test_a_block_is_not_retried_alone(system: RunningSystem) -> None:
    await system.save({"name": "short", "steps": {"block": {"steps": {"one": {"set": {"a": 1}}}}}})
    run = await system.run("short")
    (block,) = await blocks_of(system, run["id"])
    answer = await system.call("POST", f"/runs/{block['id']}/retry", {})
    assert answer.status == 409
    assert str(run["id"]) in str(answer.json["fix"])


@pytest.mark.parametrize("keys", [{}, {"repeat": {"until": "true"}}])
async def test_a_block_takes_no_input_of_a_caller(system: RunningSystem, keys: JsonObject) -> None:
    block: JsonObject = {"steps": {"one": {"set": {"a": "${ steps.before.output }"}}}, **keys}
    await system.save({"name": "short", "steps": {"before": {"set": {"b": 1}}, "block": block}})
    run = await system.run("short")
    body: JsonObject = {"from_step": "block", "step_input": {"steps": {}}}
    answer = await system.call("POST", f"/runs/{run['id']}/retry", body)
    assert answer.status == 422
    assert "is a block" in str(answer.json["detail"])
    assert "Leave out step_input" in str(answer.json["fix"])


async def test_the_graph_has_the_steps_inside_a_block(system: RunningSystem) -> None:
    await system.save(with_block())
    graph = (await system.call("GET", "/workflows/article/graph")).json
    inside = {str(step["name"]): step for step in objects_in(graph["steps"])}["draft"]["block"]
    assert isinstance(inside, dict)
    assert [step["name"] for step in objects_in(inside["steps"])] == ["outline", "text"]
    assert inside["edges"] == [{"from": "outline", "to": "text", "why": "reads"}]
    saved = (await system.call("GET", "/workflows/article")).json
    assert (saved["steps"], saved["agents"]) == (5, ["Worker"])
