"""What a task is: its message in expressions, its states, its history, its lists, and callers that go away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import aiohttp
import pytest
from tests.scenarios.kit_server import served
from tests.scenarios.publishing.a2a_caller import (
    A2ACaller,
    parts_of,
    state_of,
    status_text,
    text,
    text_v03,
)

from trunkline.agentkit import Agent, Message, Question, Task
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.testing import RunningSystem, ScriptedAgent
from trunkline.testing.agents import Call
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

PASS_ON: JsonObject = {"only": {"agent": "A", "message": "caller", "context": "caller"}}


class GatedAgent:
    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def play(self, task: Task) -> AsyncGenerator[object, Message]:
        if task.text == "ask":
            reply = yield Question("Which city?")
            yield f"{reply.text} it is."
            return
        self.has_begun.set()
        if task.text == "wait":
            await self.may_end.wait()
        yield f"about {task.text}"


@pytest.fixture
async def agent(system: RunningSystem) -> AsyncGenerator[GatedAgent]:
    gated = GatedAgent()
    kit = Agent("Kit", description="Plays.")
    kit.handler(gated.play)
    async with served(kit) as url:
        await system.register("A", url)
        await system.save({"name": "front", "publish": True, "steps": PASS_ON})
        yield gated


@pytest.fixture
def caller(system: RunningSystem, agent: GatedAgent) -> A2ACaller:
    del agent
    return A2ACaller(system, "workflows/front")


@pytest.mark.embedded_only
async def test_expressions_read_every_field_of_the_message(system: RunningSystem) -> None:
    steps: JsonObject = {"copy": {"set": {"message": "${ run.message }"}}}
    output = "${ steps.copy.output.message }"
    await system.save({"name": "front", "publish": True, "steps": steps, "output": output})
    parts: list[Json] = [{"text": "one"}, {"data": [1]}, {"text": "two"}, {"url": "https://a.example/f"}]
    sent: JsonObject = {
        **text("", "my-id", contextId="c", metadata={"tone": "dry"}, extensions=["urn:x"]),
        "parts": parts,
    }
    (part,) = parts_of(await A2ACaller(system, "workflows/front").send(sent))
    assert part["data"] == {
        "message_id": "my-id",
        "context_id": "c",
        "parts": parts,
        "metadata": {"tone": "dry"},
        "extensions": ["urn:x"],
        "text": "one\ntwo",
    }


async def test_an_agent_that_asks_for_a_login_gets_what_the_caller_answers(system: RunningSystem) -> None:
    def answer(call: Call) -> Json:
        asks = call.message.get("taskId") is None
        said: Json = {"messageId": "s", "role": "ROLE_AGENT", "parts": [{"text": "Log in first."}]}
        status: JsonObject = (
            {"state": "TASK_STATE_AUTH_REQUIRED", "message": said}
            if asks
            else {"state": "TASK_STATE_COMPLETED"}
        )
        task: Json = {"id": "r", "contextId": "c", "status": status}
        return {"jsonrpc": "2.0", "id": call.id, "result": {"task": task}}

    async with ScriptedAgent(answer) as agent:
        await system.register("A", agent.url, protocol="a2a-1.0", publish=True)
        caller = A2ACaller(system, "agents/A")
        asking = await caller.send(text("hi"))
        assert (state_of(asking), status_text(asking)) == ("auth-required", "Log in first.")
        listed = await caller.call("ListTasks", {"status": "TASK_STATE_AUTH_REQUIRED"})
        assert [task["id"] for task in objects_in(listed["tasks"])] == [asking["id"]]
        done = await caller.send(text("I have.", "m-2", taskId=asking["id"]))
    assert state_of(done) == "completed"
    assert agent.calls[-1].message["parts"] == [{"text": "I have."}]


async def test_a_caller_that_disconnects_changes_nothing(caller: A2ACaller, agent: GatedAgent) -> None:
    for method in ("SendMessage", "SendStreamingMessage"):
        agent.has_begun.clear()
        agent.may_end.clear()
        body: JsonObject = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": method,
            "params": {"message": text("wait", method)},
        }
        async with aiohttp.ClientSession() as session:
            headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
            sending = asyncio.ensure_future(session.post(caller.url, data=encode(body), headers=headers))
            await agent.has_begun.wait()
            sending.cancel()
        agent.may_end.set()
        (task, *_) = objects_in((await caller.call("ListTasks", {"pageSize": 1}))["tasks"])
        done = await caller.task_in(task["id"], "completed", "failed", "canceled")
        assert (state_of(done), parts_of(done)) == ("completed", [{"text": "about wait"}])


async def test_the_history_has_as_many_messages_as_the_caller_asks_for(
    system: RunningSystem, caller: A2ACaller
) -> None:
    asking = await caller.send(text("ask"))
    done = await caller.send(text("Rome", "m-2", taskId=asking["id"]), historyLength=1)
    old = A2ACaller(system, "workflows/front", "0.3")

    async def ids(of: A2ACaller, method: str, length: Json) -> list[Json]:
        params: JsonObject = {"id": asking["id"]}
        task = await of.call(method, params if length is None else {**params, "historyLength": length})
        return [message["messageId"] for message in objects_in(task.get("history", []))]

    everything = await ids(caller, "GetTask", None)
    assert (len(everything), everything[0], everything[-1]) == (3, "m-1", "m-2")
    assert [message["messageId"] for message in objects_in(done["history"])] == ["m-2"]
    assert await ids(caller, "GetTask", 0) == []
    assert await ids(caller, "GetTask", 2) == everything[1:]
    assert await ids(caller, "GetTask", 10) == everything
    # 0 means everything in 0.3.
    assert await ids(old, "tasks/get", 0) == everything
    assert await ids(old, "tasks/get", 1) == everything[-1:]
    listed = await caller.call("ListTasks", {"historyLength": 0})
    assert "history" not in objects_in(listed["tasks"])[0]


async def test_a_list_can_begin_with_the_tasks_that_changed_at_a_time(caller: A2ACaller) -> None:
    first = await caller.send(text("one"))
    second = await caller.send(text("two", "m-2"))
    status = second["status"]
    assert isinstance(status, dict)
    since = {"statusTimestampAfter": status["timestamp"]}
    found = await caller.call("ListTasks", since)
    assert [task["id"] for task in objects_in(found["tasks"])] == [second["id"]]
    assert found["totalSize"] == 1
    everything = await caller.call("ListTasks", {"statusTimestampAfter": "2001-01-01T00:00:00Z"})
    assert [task["id"] for task in objects_in(everything["tasks"])] == [second["id"], first["id"]]
    assert await caller.refused("ListTasks", {"statusTimestampAfter": "yesterday"}) == -32602


async def test_the_wire_shows_what_the_caller_has_sent(system: RunningSystem, caller: A2ACaller) -> None:
    config: JsonObject = {
        "url": "https://receiver.example/",
        "token": "token-in-clear",
        "authentication": {"scheme": "Bearer", "credentials": "credentials-in-clear"},
    }
    params: JsonObject = {
        "message": text("ask"),
        "configuration": {"taskPushNotificationConfig": config},
    }
    body: JsonObject = {"jsonrpc": "2.0", "id": "mine", "method": "SendMessage", "params": params}
    response = await caller.post(body, {"Authorization": "Bearer key-in-clear"})
    asking = response["result"]
    assert isinstance(asking, dict)
    assert isinstance(asking["task"], dict)
    run = asking["task"]["id"]
    await caller.task(run)
    await caller.streamed("SendStreamingMessage", {"message": text("Rome", "m-2", taskId=run)})
    answer = await system.call("GET", f"/runs/{run}/wire")
    incoming = [each for each in objects_in(answer.json["items"]) if each["kind"] == "caller"]
    assert [(each["step"], each["attempt"]) for each in incoming] == [("", 0), ("only", 1)]
    first, second = incoming
    assert isinstance(first["request"], dict)
    assert (first["request"]["method"], first["request"]["url"]) == ("POST", caller.url)
    sent = str(first["request"]["body"])
    assert '"text":"ask"' in sent
    assert "receiver.example" in sent
    assert "in-clear" not in str(incoming)
    assert isinstance(first["response"], dict)
    assert decode(str(first["response"]["body"]).encode()) == response
    assert isinstance(second["response"], dict)
    assert (second["response"]["status"], second["response"]["body"]) == (200, "")
    assert "follow from the events" in str(second["notes"])


@pytest.mark.embedded_only
async def test_the_wire_shows_one_request_to_cancel_and_callers_that_have_left(
    system: RunningSystem, caller: A2ACaller, agent: GatedAgent
) -> None:
    body: JsonObject = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": text("wait")},
    }
    headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    async with aiohttp.ClientSession() as session:
        sending = asyncio.ensure_future(session.post(caller.url, data=encode(body), headers=headers))
        await agent.has_begun.wait()
        sending.cancel()
    (task,) = objects_in((await caller.call("ListTasks", {}))["tasks"])
    canceled = await asyncio.gather(*(caller.response("CancelTask", {"id": task["id"]}) for _ in range(3)))
    assert any("result" in each for each in canceled)

    async def incoming() -> list[JsonObject]:
        items = (await system.call("GET", f"/runs/{task['id']}/wire")).json["items"]
        return [each for each in objects_in(items) if each["kind"] == "caller"]

    async with asyncio.timeout(60):
        while len(found := await incoming()) < 2:
            await asyncio.sleep(0.02)
    left = next(each for each in found if "SendMessage" in str(each["request"]))
    assert (left["response"], left["error"]) == (None, "The caller has disconnected before it was answered.")
    # Polling and repeated requests are not recorded.
    requests = [str(each["request"]) for each in found]
    assert 1 <= sum("CancelTask" in each for each in requests) <= 3
    assert not any("ListTasks" in each for each in requests)


@pytest.mark.embedded_only
async def test_a_publication_without_streams_says_so_and_refuses_them(
    system: RunningSystem, caller: A2ACaller
) -> None:
    await system.save({"name": "front", "publish": {"streaming": False}, "steps": PASS_ON})
    card = (await system.call("GET", "//a2a/workflows/front/.well-known/agent-card.json")).json
    assert isinstance(card["capabilities"], dict)
    assert card["capabilities"]["streaming"] is False
    assert await caller.refused("SendStreamingMessage", {"message": text("hi")}) == -32004
    assert (await caller.call("ListTasks", {}))["totalSize"] == 0
    old = A2ACaller(system, "workflows/front", "0.3")
    assert await old.refused("message/stream", {"message": text_v03("hi")}) == -32004
