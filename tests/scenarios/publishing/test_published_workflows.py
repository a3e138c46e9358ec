"""Workflows that are published as A2A agents: messages, tasks, questions and cancelling, on every set of backends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

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

from trunkline.agentkit import Agent, AgentError, Message, Question, Task
from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

SCHEMA: JsonObject = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}


async def publish(system: RunningSystem, name: str, **fields: Json) -> A2ACaller:
    """A published workflow with one step of the agent A."""
    await system.save({"name": name, "publish": True, "steps": {"only": {"agent": "A"}}, **fields})
    return A2ACaller(system, f"workflows/{name}")


async def play(task: Task) -> AsyncGenerator[object, Message]:
    match task.text:
        case "fail":
            raise AgentError("No boats today.")
        case "ask":
            reply = yield Question("Which city?")
            yield f"{reply.text} it is."
        case "wait":
            await asyncio.Event().wait()
        case words:
            yield f"about {words}"


@pytest.fixture
async def kit(system: RunningSystem) -> AsyncGenerator[A2ACaller]:
    """A published workflow that passes its caller's messages on to an agent of the kit."""
    agent = Agent("Kit", description="Plays.")
    agent.handler(play)
    async with served(agent) as url:
        await system.register("A", url)
        step: JsonObject = {"agent": "A", "message": "caller", "context": "caller"}
        yield await publish(system, "front", steps={"only": step})


async def test_a_message_is_answered_with_its_finished_task(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success({"n": 3})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        caller = await publish(system, "front", output="${ steps.only.output.data }")
        task = await caller.send(text("tides", contextId="mine"))
    assert (state_of(task), task["contextId"]) == ("completed", "mine")
    assert parts_of(task) == [{"data": {"n": 3}}]
    assert agent.calls[0].body["input"] == {"text": "tides"}
    run = await system.get(str(task["id"]))
    assert (run["status"], run["started_by"]) == ("COMPLETED", "a2a")
    assert run["message"] == {
        "publication": "workflows/front",
        "key": None,
        "version": "1.0",
        "message_id": "m-1",
        "context_id": "mine",
        "parts": [{"text": "tides"}],
        "metadata": None,
        "extensions": [],
        "reference_task_ids": [],
    }
    assert await caller.task(task["id"]) == task
    assert await system.metric("a2a_server_open_streams") == 0
    assert (
        await system.metric(
            "a2a_server_requests_total", method="SendMessage", version="1.0", binding="JSONRPC", code="ok"
        )
        == 1
    )


async def test_a_task_can_be_read_before_it_is_done(system: RunningSystem, kit: A2ACaller) -> None:
    task = await kit.send(text("wait"), returnImmediately=True)
    assert state_of(task) in {"submitted", "working"}
    assert (await kit.task(task["id"]))["id"] == task["id"]
    canceled = await kit.call("CancelTask", {"id": task["id"]})
    assert state_of(canceled) == "canceled"
    assert await kit.refused("CancelTask", {"id": task["id"]}) == -32002


async def test_a_question_is_answered_with_the_id_of_its_task(kit: A2ACaller) -> None:
    asking = await kit.send(text("ask"))
    assert (state_of(asking), status_text(asking)) == ("input-required", "Which city?")
    done = await kit.send(text("Rome", "m-2", taskId=asking["id"]))
    assert (done["id"], state_of(done), parts_of(done)) == (
        asking["id"],
        "completed",
        [{"text": "Rome it is."}],
    )
    history = objects_in(done["history"])
    assert [part["text"] for message in history for part in objects_in(message["parts"])] == [
        "ask",
        "Which city?",
        "Rome",
    ]
    assert await kit.refused("SendMessage", {"message": text("more", "m-3", taskId=asking["id"])}) == -32004


async def test_a_message_in_another_context_than_its_task_is_refused(kit: A2ACaller) -> None:
    asking = await kit.send(text("ask"))
    elsewhere: Json = text("Rome", "m-2", taskId=asking["id"], contextId="another")
    assert await kit.refused("SendMessage", {"message": elsewhere}) == -32602


async def test_a_failure_has_the_words_of_the_agent(kit: A2ACaller) -> None:
    task = await kit.send(text("fail"))
    assert (state_of(task), status_text(task)) == ("failed", "No boats today.")


async def test_both_versions_are_spoken_at_one_address(system: RunningSystem, kit: A2ACaller) -> None:
    old = A2ACaller(system, "workflows/front", "0.3")
    task = await old.call("message/send", {"message": text_v03("tides")})
    assert (task["kind"], state_of(task)) == ("task", "completed")
    assert objects_in(task["artifacts"])[0]["parts"] == [{"kind": "text", "text": "about tides"}]
    assert (await old.call("tasks/get", {"id": task["id"]})) == task
    assert parts_of(await kit.task(task["id"])) == [{"text": "about tides"}]
    finished: JsonObject = {"message": text_v03("more", "m-2", taskId=task["id"])}
    assert await old.refused("message/send", finished) == -32602


async def test_tasks_are_listed_last_changed_first(kit: A2ACaller) -> None:
    first, second = await kit.send(text("one")), await kit.send(text("two", contextId="c"))
    asking = await kit.send(text("ask", contextId="c"))
    page = await kit.call("ListTasks", {"pageSize": 2})
    assert [task["id"] for task in objects_in(page["tasks"])] == [asking["id"], second["id"]]
    assert (page["pageSize"], page["totalSize"]) == (2, 3)
    assert "artifacts" not in objects_in(page["tasks"])[1]
    rest = await kit.call("ListTasks", {"pageSize": 2, "pageToken": page["nextPageToken"]})
    assert [task["id"] for task in objects_in(rest["tasks"])] == [first["id"]]
    assert rest["nextPageToken"] == ""
    of_context = await kit.call(
        "ListTasks", {"contextId": "c", "status": "TASK_STATE_COMPLETED", "includeArtifacts": True}
    )
    assert [task["id"] for task in objects_in(of_context["tasks"])] == [second["id"]]
    assert parts_of(objects_in(of_context["tasks"])[0]) == [{"text": "about two"}]


async def test_the_caller_s_message_reaches_the_agent_unchanged(system: RunningSystem) -> None:
    agent = Agent("Kit", description="Echoes.")

    @agent
    def answer(task: Task) -> dict[str, Json]:
        return {"id": task.message.id, "metadata": task.message.metadata, "context": task.context_id}

    async with served(agent) as url:
        await system.register("A", url)
        step: JsonObject = {"agent": "A", "message": "caller", "context": "caller"}
        caller = await publish(system, "front", steps={"only": step})
        task = await caller.send(text("hi", "my-id", metadata={"tone": "dry"}, contextId="c-1"))
    (part,) = parts_of(task)
    assert part["data"] == {"id": "my-id", "metadata": {"tone": "dry"}, "context": "c-1"}


async def test_an_input_that_does_not_fit_is_refused_with_the_reason(system: RunningSystem) -> None:
    caller = await publish(system, "front", input={**SCHEMA, "properties": {"city": {"type": "integer"}}})
    response = await caller.response("SendMessage", {"message": text("Rome")})
    error = response["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32602
    assert "fieldViolations" in str(error["data"])


async def test_what_is_not_published_does_not_exist(system: RunningSystem) -> None:
    await system.save({"name": "inner", "steps": {"only": {"agent": "A"}}})
    for name in ("inner", "unknown"):
        card = await system.call("GET", f"//a2a/workflows/{name}/.well-known/agent-card.json")
        assert card.status == 404
    caller = await publish(system, "front")
    started = await system.start("inner")
    assert await caller.refused("GetTask", {"id": started}) == -32001


async def test_a_message_that_is_sent_twice_starts_one_task_if_the_caller_asks_for_that(
    system: RunningSystem, kit: A2ACaller
) -> None:
    active = {"A2A-Extensions": "urn:other, urn:trunkline:a2a:idempotency:1"}

    async def sent(words: str, headers: dict[str, str]) -> JsonObject:
        params: JsonObject = {"message": text(words, "same-id")}
        return await kit.post({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}, headers)

    responses = await asyncio.gather(*(sent("tides", active) for _ in range(10)))
    assert len({str(response["result"]) for response in responses}) == 1
    other = (await sent("boats", active))["error"]
    assert isinstance(other, dict)
    assert other["code"] == -32602
    assert "result" in await sent("boats", {})
    assert len(await system.items("/runs")) == 2


async def test_tasks_of_one_context_are_one_conversation_with_the_agent(system: RunningSystem) -> None:
    contexts: list[str | None] = []
    agent = Agent("Kit", description="Remembers.")

    @agent
    def answer(task: Task) -> str:
        contexts.append(task.context_id)
        return "noted"

    async with served(agent) as url:
        await system.register("A", url)
        step: JsonObject = {"agent": "A", "message": "caller", "context": "caller"}
        caller = await publish(system, "front", steps={"only": step})
        first = await caller.send(text("one"))
        await caller.send(text("two", "m-2", contextId=first["contextId"]))
        await caller.send(text("three", "m-3"))
    assert contexts[0] == contexts[1] != contexts[2]


async def test_publish_says_what_a_message_becomes_and_which_artifacts_follow(system: RunningSystem) -> None:
    options: JsonObject = {
        "input": {"text": "${ run.message.metadata.city }: ${ run.message.text }"},
        "artifacts": {
            "facts": "${ steps.only.output.data }",
            "output": "${ 'asked ' + input.text }",
            "none": "${ steps.only.error }",
        },
    }
    async with ScriptedAgent(simple_success({"n": 3})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        caller = await publish(system, "front", publish=options, output="done")
        sent = text("tides", metadata={"city": "Rome"})
        task = await caller.send(sent)
        events = await caller.streamed("SendStreamingMessage", {"message": sent})
        old = await A2ACaller(system, "workflows/front", "0.3").call("tasks/get", {"id": task["id"]})
        refused = await caller.response("SendMessage", {"message": text("tides")})
    assert agent.calls[0].body["input"] == {"text": "Rome: tides"}
    assert [(each["artifactId"], each["parts"]) for each in objects_in(task["artifacts"])] == [
        ("output", [{"text": "done"}]),
        ("facts", [{"data": {"n": 3}}]),
        ("output-2", [{"text": "asked Rome: tides"}]),
    ]
    streamed = [event.result["artifactUpdate"] for event in events if event.kind == "artifactUpdate"]
    assert [each["artifact"] for each in objects_in(streamed)] == task["artifacts"]
    assert [artifact["artifactId"] for artifact in objects_in(old["artifacts"])] == [
        "output",
        "facts",
        "output-2",
    ]
    assert await caller.task(task["id"]) == task
    error = refused["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32602
    assert "publish.input" in str(error["data"])


async def test_a_workflow_can_answer_with_a_message_in_place_of_its_task(system: RunningSystem) -> None:
    message = "${ run.message.text == 'hi' ? steps.only.output.said : null }"
    await system.save(
        {
            "name": "front",
            "publish": {"message": message},
            "steps": {"only": {"set": {"said": "Hello, ${ run.message.text }."}}},
            "output": "all of it",
        }
    )
    caller = A2ACaller(system, "workflows/front")
    found = await caller.call("SendMessage", {"message": text("hi", contextId="mine")})
    said = found["message"]
    assert isinstance(said, dict)
    assert (said["role"], said["contextId"], said["parts"]) == (
        "ROLE_AGENT",
        "mine",
        [{"text": "Hello, hi."}],
    )
    # The task exists, and where a task is asked for, it is the answer.
    (task,) = objects_in((await caller.call("ListTasks", {"includeArtifacts": True}))["tasks"])
    assert (state_of(task), parts_of(task)) == ("completed", [{"text": "all of it"}])
    assert parts_of(await caller.send(text("ho", "m-2"))) == [{"text": "all of it"}]


async def test_an_artifact_without_a_value_fails_the_task(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success({"n": 3})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        options: JsonObject = {"artifacts": {"facts": "${ steps.only.output.data.none }"}}
        caller = await publish(system, "front", publish=options)
        task = await caller.send(text("tides"))
        # Nobody reads the artifacts of a run that no caller has started.
        assert (await system.run("front", {"text": "tides"}))["status"] == "COMPLETED"
    assert state_of(task) == "failed"
    run = await system.get(str(task["id"]))
    error = run["error"]
    assert isinstance(error, dict)
    assert error["code"] == "output_failed"
