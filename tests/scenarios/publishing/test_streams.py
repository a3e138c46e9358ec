"""Streams of tasks: complete, in order, and resumed exactly where they were cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from starlette.types import Message as ASGIMessage
from tests.scenarios.kit_server import served
from tests.scenarios.publishing.a2a_caller import A2ACaller, StreamEvent, state_of, text, text_v03

from trunkline.agentkit import Agent, Message, Question, Task
from trunkline.ids import RunId
from trunkline.jsontypes import JsonObject
from trunkline.messages import CallerMessage
from trunkline.publishing.answers import AnswerReader
from trunkline.publishing.streams import OpenStreams, TaskStream
from trunkline.publishing.updates import Position, TaskUpdates
from trunkline.testing import RunningSystem
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio


@pytest.fixture
async def gate() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
async def caller(system: RunningSystem, gate: asyncio.Event) -> AsyncGenerator[A2ACaller]:
    async def play(task: Task) -> AsyncGenerator[object, Message]:
        match task.text:
            case "ask":
                reply = yield Question("Which city?")
                yield f"{reply.text} it is."
            case "wait":
                yield "Hello, "
                await gate.wait()
                yield "world."
            case _:
                yield "Hello, "
                yield "world."

    agent = Agent("Kit", description="Plays.")
    agent.handler(play)
    async with served(agent) as url:
        await system.register("A", url)
        step: JsonObject = {"agent": "A", "message": "caller", "context": "caller"}
        await system.save({"name": "front", "publish": True, "steps": {"only": step}})
        yield A2ACaller(system, "workflows/front")


def artifact_text(events: list[StreamEvent]) -> str:
    """The artifact as a client puts it together."""
    whole = ""
    for event in events:
        update = event.result.get("artifactUpdate")
        if isinstance(update, dict):
            artifact = update["artifact"]
            assert isinstance(artifact, dict)
            piece = "".join(str(part["text"]) for part in objects_in(artifact["parts"]))
            whole = whole + piece if update["append"] else piece
    return whole


def last_state(events: list[StreamEvent]) -> str:
    update = events[-1].result["statusUpdate"]
    assert isinstance(update, dict)
    return state_of(update)


async def test_a_stream_has_the_task_and_then_every_update(caller: A2ACaller) -> None:
    events = await caller.streamed("SendStreamingMessage", {"message": text("hi")})
    assert events[0].kind == "task"
    assert events[0].id is None
    assert artifact_text(events) == "Hello, world."
    assert last_state(events) == "completed"
    ids = [event.id for event in events[1:]]
    assert None not in ids
    assert len(set(ids)) == len(ids)


async def test_a_stream_is_resumed_exactly_after_any_update(caller: A2ACaller) -> None:
    events = await caller.streamed("SendStreamingMessage", {"message": text("hi")})
    task = events[0].result["task"]
    assert isinstance(task, dict)
    for cut in range(1, len(events) - 1):
        resumed = await caller.streamed("SubscribeToTask", {"id": task["id"]}, events[cut].id)
        assert resumed[0].kind == "task"
        assert resumed[1:] == events[cut + 1 :]
    assert await caller.refused("SubscribeToTask", {"id": task["id"]}) == -32004


async def test_a_stream_is_resumed_between_two_updates_of_one_event(system: RunningSystem) -> None:
    steps: JsonObject = {"only": {"set": {"text": "Hello"}}}
    await system.save(
        {"name": "at-once", "publish": True, "steps": steps, "output": "${ steps.only.output }"}
    )
    caller = A2ACaller(system, "workflows/at-once")
    events = await caller.streamed("SendStreamingMessage", {"message": text("hi")})
    task = events[0].result["task"]
    assert isinstance(task, dict)
    artifact, end = events[-2:]
    assert (artifact.kind, end.kind) == ("artifactUpdate", "statusUpdate")
    resumed = await caller.streamed("SubscribeToTask", {"id": task["id"]}, artifact.id)
    assert resumed[1:] == [end]


async def test_a_subscription_follows_a_task_through_its_question(caller: A2ACaller) -> None:
    asking = await caller.send(text("ask"))
    async with caller.stream("SubscribeToTask", {"id": asking["id"]}) as events:
        first = await anext(events)
        assert isinstance(first.result["task"], dict)
        assert state_of(first.result["task"]) == "input-required"
        sending = asyncio.create_task(caller.send(text("Rome", "m-2", taskId=asking["id"])))
        rest = [event async for event in events]
        await sending
    assert artifact_text(rest) == "Rome it is."
    assert last_state(rest) == "completed"


async def test_a_late_subscriber_gets_what_was_said_before(caller: A2ACaller, gate: asyncio.Event) -> None:
    task = await caller.send(text("wait"), returnImmediately=True)
    async with caller.stream("SubscribeToTask", {"id": task["id"]}, "0") as events:
        while (await anext(events)).kind != "artifactUpdate":
            pass
    async with caller.stream("SubscribeToTask", {"id": task["id"]}) as events:
        snapshot = (await anext(events)).result["task"]
        assert isinstance(snapshot, dict)
        assert "Hello, " in str(snapshot["artifacts"])
        gate.set()
        rest = [event async for event in events]
    assert last_state(rest) == "completed"


async def test_clients_of_0_3_are_told_which_event_is_the_last(
    system: RunningSystem, caller: A2ACaller
) -> None:
    old = A2ACaller(system, "workflows/front", "0.3")
    for words, state in (("hi", "completed"), ("ask", "input-required")):
        events = await old.streamed("message/stream", {"message": text_v03(words)})
        statuses = [event.result for event in events if event.kind == "status-update"]
        assert [status["final"] for status in statuses] == [False] * (len(statuses) - 1) + [True]
        assert state_of(statuses[-1]) == state


@pytest.mark.embedded_only
async def test_a_silent_stream_shows_that_it_lives(
    system: RunningSystem, caller: A2ACaller, gate: asyncio.Event
) -> None:
    pinged = asyncio.Event()
    task = await caller.send(text("wait"), returnImmediately=True)
    api, run_id = system.embedded.api, RunId(str(task["id"]))
    workflow = await api.workflows.get("front")
    updates = TaskUpdates(
        api.run_queries,
        # Only asked when the task has ended.
        AnswerReader.__new__(AnswerReader),
        run_id,
        CallerMessage(message_id="m", context_id="c", parts=[]),
        await api.workflows.compiled(workflow.workflow_id, workflow.version),
    )
    streams = OpenStreams()
    streams.take("")

    async def send(message: ASGIMessage) -> None:
        if message.get("body") == b": ping\n\n":
            pinged.set()

    async def receive() -> ASGIMessage:
        await pinged.wait()
        return {"type": "http.disconnect"}

    stream = TaskStream(
        api.run_queries,
        updates,
        {},
        run_id,
        Position(0),
        write=lambda event, _: event,
        stays=True,
        caller="",
        streams=streams,
        stopping=api.stopping,
        ping_after=0.01,
    )
    assert streams.number == 1
    await stream({}, receive, send)
    assert (pinged.is_set(), streams.number) == (True, 0)
    gate.set()
