"""Workflows in workflows with real calls: ends, refusals, loops, and what becomes of children."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Call, RunningSystem, ScriptedAgent, jsonrpc_task, simple_success
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

CHILD: JsonObject = {
    "name": "child",
    "input": {"type": "object", "required": ["text"]},
    "steps": {"work": {"agent": "Worker", "input": "${ input.text }", "retry": {"max_attempts": 1}}},
    "output": "${ steps.work.output.data }",
}


def parent(**step: Json) -> JsonObject:
    step = {"workflow": "child", "input": {"text": "${ input.text }"}, **step}
    return {"name": "parent", "steps": {"inner": step}}


def worker(call: Call) -> Json:
    text = call.body["input"]
    if text == "fail":
        return {"task_id": call.id, "status": "error", "output": None, "error": "It cannot be done."}
    return simple_success({"done": text})(call)


async def child_of(system: RunningSystem, run: JsonObject, step: str = "inner") -> JsonObject:
    events = await system.items(f"/runs/{run['id']}/events")
    begun = [event["data"] for event in events if event["type"] == "StepChildStarted"]
    ids = [data["run_id"] for data in begun if isinstance(data, dict) and data["step"] == step]
    return await system.get(str(ids[-1]))


async def test_the_end_of_a_child_completes_the_step_that_began_it(system: RunningSystem) -> None:
    async with ScriptedAgent(worker) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(CHILD)
        await system.save(parent())
        run = await system.run("parent", {"text": "hello"})
        child = await child_of(system, run)
    assert (run["status"], run["output"]) == ("COMPLETED", {"done": "hello"})
    assert (child["status"], child["output"]) == ("COMPLETED", {"done": "hello"})
    assert child["correlation_id"] == run["correlation_id"]


async def test_the_failure_of_a_child_fails_the_step_and_says_why(system: RunningSystem) -> None:
    async with ScriptedAgent(worker) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(CHILD)
        await system.save(parent())
        run = await system.run("parent", {"text": "fail"})
        child = await child_of(system, run)
    error = error_of(run)
    assert (run["status"], error["code"], error["step"]) == ("FAILED", "child_failed", "inner")
    assert error["message"] == f"Run {child['id']} of workflow child failed: It cannot be done."
    assert error["detail"] == {
        "run_id": child["id"], "code": "agent_reported_error", "message": "It cannot be done.", "step": "work",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("step", "code", "message"),
    [
        ({"workflow": "nobody"}, "workflow_unknown", "There is no workflow 'nobody'."),
        ({"version": 7}, "workflow_unknown", "There is no workflow 'child' with version 7."),
        (
            {"input": {}},
            "child_input_invalid",
            """The step's input does not match the schema of workflow child: input: "text" is a required property.""",
        ),
    ],
    ids=["no workflow", "no version", "unfit input"],
)
async def test_a_child_that_cannot_begin_fails_the_step(
    system: RunningSystem, step: JsonObject, code: str, message: str
) -> None:
    await system.save(CHILD)
    await system.save(parent(**step))
    run = await system.run("parent", {"text": "hello"})
    error = error_of(run)
    assert (run["status"], error["code"], error["message"]) == ("FAILED", code, message)
    assert len(await system.items("/runs")) == 1


async def test_a_loop_begins_a_child_for_each_item(system: RunningSystem) -> None:
    async with ScriptedAgent(worker) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(CHILD)
        loop: Json = {"items": "${ input.texts }", "on_error": "collect"}
        await system.save(parent(for_each=loop, input={"text": "${ item }"}))
        run = await system.run("parent", {"texts": ["one", "fail", "three"]})
    assert isinstance(run["output"], list)
    assert [item["status"] for item in run["output"] if isinstance(item, dict)] == [
        "COMPLETED", "FAILED", "COMPLETED",
    ]  # fmt: skip
    assert len(await system.items("/runs?workflow=child")) == 3


async def test_a_child_is_of_the_version_that_is_named_or_the_latest(system: RunningSystem) -> None:
    async with ScriptedAgent(worker) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(CHILD)
        await system.save({**CHILD, "output": "second"})
        both: JsonObject = {
            "name": "both",
            "steps": {"old": {"workflow": "child", "version": 1}, "new": {"workflow": "child"}},
        }
        await system.save(both)
        run = await system.run("both", {"text": "hello"})
    assert run["output"] == {"old": {"done": "hello"}, "new": "second"}


async def test_a_run_names_the_runs_that_it_has_begun_and_they_name_it(system: RunningSystem) -> None:
    async with ScriptedAgent(worker) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(CHILD)
        await system.save(parent(for_each=["one", "two"], input={"text": "${ item }"}))
        looped = await system.run("parent", {})
        await system.save(parent())
        run = await system.run("parent", {"text": "hello"})
        child = await child_of(system, run)
    step = step_of(run, "inner")
    assert (step["agent"], step["workflow"]) == ("", "child")
    assert step["child"] == {"run_id": child["id"], "status": "COMPLETED"}
    assert child["parent"] == {"run_id": run["id"], "step": "inner"}
    assert "parent" not in run
    assert "child" not in step_of(looped, "inner")
    for item in await system.items(f"/runs/{looped['id']}/steps?of=inner"):
        assert isinstance(item["child"], dict)
        assert (await system.get(str(item["child"]["run_id"])))["parent"] == {
            "run_id": looped["id"], "step": item["name"],
        }  # fmt: skip


class SlowAgent:
    """Works on until it is told to stop."""

    def __init__(self) -> None:
        self.stopped = 0

    def __call__(self, call: Call) -> Json:
        if call.body.get("method") == "tasks/cancel":
            self.stopped += 1
            return jsonrpc_task("stopped", state="canceled")(call)
        return jsonrpc_task("wait", state="working")(call)


NESTED: JsonObject = {"name": "middle", "steps": {"below": {"workflow": "child"}}}
TOP: JsonObject = {"name": "top", "steps": {"above": {"workflow": "middle"}}}


async def all_begun(system: RunningSystem) -> list[str]:
    """A run, its child and the child of that one, once the agent works for the last."""
    top = await system.start("top", {"text": "hello"})
    middle = await begun(system, top, "above")
    child = await begun(system, middle, "below")
    while step_of(await system.get(child), "work")["waiting_for"] is None:
        await asyncio.sleep(0)
    return [top, middle, child]


async def begun(system: RunningSystem, run: str, step: str) -> str:
    await system.wait_for_step(run, step, {"RUNNING"})
    child = step_of(await system.get(run), step)["child"]
    assert isinstance(child, dict)
    return str(child["run_id"])


@pytest.fixture
async def nested(system: RunningSystem) -> AsyncGenerator[SlowAgent]:
    patient = SlowAgent()
    async with ScriptedAgent(patient) as agent:
        await system.register("Worker", agent.url, protocol="jsonrpc-2.0")
        for definition in (CHILD, NESTED, TOP):
            await system.save(definition)
        yield patient


async def test_a_cancelled_run_cancels_all_below_it(system: RunningSystem, nested: SlowAgent) -> None:
    runs = await all_begun(system)
    await system.call("POST", f"/runs/{runs[0]}/cancel")
    assert [(await system.wait_for(run))["status"] for run in runs] == ["CANCELLED"] * 3
    assert nested.stopped == 1


async def test_a_run_is_paused_and_resumed_with_all_below_it(
    system: RunningSystem, nested: SlowAgent
) -> None:
    del nested
    runs = await all_begun(system)
    for action, status in (("pause", "PAUSED"), ("resume", "RUNNING")):
        await system.call("POST", f"/runs/{runs[0]}/{action}")
        for run in runs:
            await system.wait_for(run, {status})
    await system.call("POST", f"/runs/{runs[0]}/cancel")
    await system.wait_for(runs[0])


async def test_a_child_that_a_person_has_cancelled_fails_the_step(
    system: RunningSystem, nested: SlowAgent
) -> None:
    del nested
    top, _, child = await all_begun(system)
    await system.call("POST", f"/runs/{child}/cancel")
    ended = await system.wait_for(top)
    assert (ended["status"], error_of(ended)["code"]) == ("FAILED", "child_failed")
    assert f"Run {child} of workflow child was cancelled." in str(error_of(ended)["message"])


async def test_a_run_whose_child_waits_for_a_person_waits_too_and_the_inbox_has_the_question(
    system: RunningSystem,
) -> None:
    def ask(call: Call) -> Json:
        if len(agent.calls) > 1:
            return jsonrpc_task("blue")(call)
        return jsonrpc_task("Which?", state="input-required")(call)

    async with ScriptedAgent(ask) as agent:
        await system.register("Worker", agent.url, protocol="jsonrpc-2.0")
        await system.save({**CHILD, "output": "${ steps.work.output.text }"})
        await system.save(parent())
        run = await system.start("parent", {"text": "hello"})
        child = await begun(system, run, "inner")
        shown = await system.wait_for(run, {"WAITING"})
        assert step_of(shown, "inner")["status"] == "WAITING"
        assert step_of(shown, "inner")["child"] == {"run_id": child, "status": "WAITING"}
        (item,) = await system.items("/inbox")
        assert (item["run_id"], item["step"]) == (child, "work")
        await system.call("POST", f"/runs/{child}/steps/work/reply", {"text": "the blue one"})
        assert (await system.wait_for(run))["output"] == "blue"


async def test_a_retried_run_begins_a_new_child_and_keeps_what_was_completed(system: RunningSystem) -> None:
    two: JsonObject = {
        "name": "parent",
        "steps": {
            "first": {"workflow": "child", "input": {"text": "one"}},
            "second": {"workflow": "child", "input": {"text": "fail"}, "needs": ["first"]},
        },
    }
    async with ScriptedAgent(worker) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(CHILD)
        await system.save(two)
        run = await system.run("parent")
        answer = await system.call("POST", f"/runs/{run['id']}/retry", {})
        retried = await system.wait_for(str(answer.json["id"]))
    assert (run["status"], retried["status"]) == ("FAILED", "FAILED")
    assert "child" not in step_of(retried, "first")
    assert step_of(retried, "second")["child"] != step_of(run, "second")["child"]
    assert len(await system.items("/runs?workflow=child")) == 3
