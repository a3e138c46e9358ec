"""Questions inside blocks and child workflows: the run around them waits, is answered, and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from tests.scenarios.event_receiver import event_receiver
from tests.scenarios.kit_server import served
from tests.scenarios.publishing.a2a_caller import A2ACaller, parts_of, state_of, status_text, text
from tests.scenarios.test_subscriptions import subscribe

from trunkline.agentkit import Agent, Message, Question, Task
from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem
from trunkline.testing.system import objects_in, step_of

pytestmark = pytest.mark.anyio


async def play(task: Task) -> AsyncGenerator[object, Message]:
    reply = yield Question("Which city?")
    yield f"{reply.text} it is."


@pytest.fixture
async def guide(system: RunningSystem) -> AsyncGenerator[None]:
    agent = Agent("Guide", description="Asks for a city.")
    agent.handler(play)
    async with served(agent) as url:
        await system.register("Guide", url)
        yield


def approval(title: str) -> JsonObject:
    return {"ask": {"title": title, "options": ["yes", "no"]}}


async def waiting_run(system: RunningSystem, definition: JsonObject) -> JsonObject:
    await system.save(definition)
    return await status_of(system, await system.start(str(definition["name"]), {}), "WAITING")


async def status_of(system: RunningSystem, run: str, status: str) -> JsonObject:
    while (found := await system.get(run))["status"] != status:
        await asyncio.sleep(0)
    return found


def questions_of(run: JsonObject, step: str) -> list[JsonObject]:
    waiting = step_of(run, step)["waiting_for"]
    assert isinstance(waiting, dict)
    return objects_in(waiting["questions"])


NESTED: JsonObject = {
    "name": "nested",
    "steps": {
        "outer": {
            "steps": {
                "inner": {"steps": {"ok": approval("Go?"), "then": {"set": {"n": 1}, "needs": ["ok"]}}},
            }
        },
        "after": {"set": {"answer": "${ steps.outer.output.n }"}},
    },
}


async def test_a_question_in_a_block_of_a_block_makes_the_run_wait_until_it_is_answered(
    system: RunningSystem,
) -> None:
    run = await waiting_run(system, NESTED)
    step = step_of(run, "outer")
    waiting = step["waiting_for"]
    assert isinstance(waiting, dict)
    assert (step["status"], waiting["kind"], waiting["title"], waiting["options"]) == (
        "WAITING", "person", "Go?", ["yes", "no"],
    )  # fmt: skip
    (question,) = questions_of(run, "outer")
    (item,) = await system.items("/inbox")
    assert (item["id"], item["run_id"], item["step"]) == (question["item"], question["run_id"], "ok")
    answered = await system.call("POST", f"/runs/{run['id']}/steps/outer/reply", {"answer": "yes"})
    assert answered.status == 202, answered.body
    done = await system.wait_for(str(run["id"]))
    assert (done["status"], done["output"]) == ("COMPLETED", {"answer": 1})
    events = [event["type"] for event in await system.items(f"/runs/{run['id']}/events")]
    assert [events.count(type_) for type_ in ("StepWaiting", "RunWaiting")] == [1, 1]


async def test_a_reply_to_a_block_with_two_questions_names_both(system: RunningSystem) -> None:
    block: JsonObject = {"steps": {"a": approval("A?"), "b": approval("B?")}}
    run = await waiting_run(system, {"name": "two", "steps": {"block": block}})
    while len(questions_of(await system.get(str(run["id"])), "block")) < 2:
        await asyncio.sleep(0)
    run = await system.get(str(run["id"]))
    path = f"/runs/{run['id']}/steps/block/reply"
    refused = await system.call("POST", path, {"answer": "yes"})
    assert refused.status == 409
    assert "2 questions are open inside step block" in str(refused.json["detail"])
    first, second = questions_of(run, "block")
    assert (await system.call("POST", path, {"answer": "yes", "item": second["item"]})).status == 202
    while len(questions_of(await system.get(str(run["id"])), "block")) == 2:
        await asyncio.sleep(0)
    assert (await system.call("POST", path, {"answer": "no"})).status == 202
    done = await system.wait_for(str(run["id"]))
    output = done["output"]
    assert isinstance(output, dict)
    answers = {name: value["answer"] for name, value in output.items() if isinstance(value, dict)}
    assert answers == {str(first["step"]): "no", str(second["step"]): "yes"}


async def test_cancelling_a_run_that_waits_for_a_block_cancels_the_block(system: RunningSystem) -> None:
    run = await waiting_run(system, {**NESTED, "name": "cancelled"})
    (question,) = questions_of(run, "outer")
    assert (await system.call("POST", f"/runs/{run['id']}/cancel")).status == 202
    assert (await system.wait_for(str(run["id"])))["status"] == "CANCELLED"
    inner = await system.wait_for(str(question["run_id"]))
    assert inner["status"] == "CANCELLED"
    assert await system.items("/inbox") == []


async def test_a_caller_is_asked_what_an_agent_in_a_block_asks(system: RunningSystem, guide: None) -> None:
    call: JsonObject = {"agent": "Guide", "message": "caller", "context": "caller"}
    block: JsonObject = {"steps": {"trip": {"steps": {"call": call}}}}
    await system.save({"name": "front", "publish": True, "steps": {"block": block}})
    caller = A2ACaller(system, "workflows/front")
    asking = await caller.send(text("plan"))
    assert (state_of(asking), status_text(asking)) == ("input-required", "Which city?")
    done = await caller.send(text("Rome", "m-2", taskId=asking["id"]))
    assert (done["id"], state_of(done), parts_of(done)) == (
        asking["id"],
        "completed",
        [{"text": "Rome it is."}],
    )
    history = objects_in(done["history"])
    said = [part["text"] for message in history for part in objects_in(message["parts"])]
    assert said == ["plan", "Which city?", "Rome"]


async def test_a_child_workflow_and_its_question_are_reported_once(system: RunningSystem) -> None:
    await system.save({"name": "below", "steps": {"ok": approval("Go?")}})
    async with event_receiver() as receiving:
        await subscribe(system, receiving, "run.waiting", "question.asked")
        above: JsonObject = {"name": "above", "steps": {"b": {"steps": {"c": {"workflow": "below"}}}}}
        run = await waiting_run(system, above)
        assert (
            await system.call("POST", f"/runs/{run['id']}/steps/b/reply", {"answer": "yes"})
        ).status == 202
        await system.wait_for(str(run["id"]))
        reported = sorted((each["type"], each["data"]["workflow"]) for each in await receiving.accepts(3))
    assert reported == [
        ("question.asked", "below"), ("run.waiting", "above"), ("run.waiting", "below"),
    ]  # fmt: skip
