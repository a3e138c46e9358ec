"""Tasks that take their time: repeated, followed, left alone, canceled, forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.agentkit.asgi import begin, call, post, result_of, stream
from tests.unit.agentkit.versions import V03, V1, VERSIONS, Version, texts, words

from trunkline.agentkit import Agent, AgentError, Message, Question, Status, Task
from trunkline.agentkit.errors import TaskNotFound, TooManyTasks
from trunkline.agentkit.messages import Message as ReadMessage
from trunkline.agentkit.parts import Text
from trunkline.agentkit.task_store import InMemoryTaskStore
from trunkline.jsontypes import JsonObject

pytestmark = pytest.mark.anyio

both_versions = pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)


class HeldAgent:
    """An agent whose tasks wait until the test lets them go; it counts them."""

    def __init__(self) -> None:
        self.agent = Agent("Held")
        self.agent.handler(self._answer)
        self.may_end = asyncio.Event()
        self.begun = asyncio.Event()
        self.count = 0
        self.canceled = 0

    async def _answer(self, task: Task) -> str:
        self.count += 1
        self.begun.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.canceled += 1
            raise
        return f"{task.text} {self.count}"


@both_versions
async def test_the_same_message_gets_the_same_task_while_it_runs_and_afterwards(version: Version) -> None:
    held = HeldAgent()
    first = asyncio.create_task(result_of(held.agent, version.send, version.params()))
    await held.begun.wait()
    second = asyncio.create_task(result_of(held.agent, version.send, version.params()))
    other = next(each for each in VERSIONS if each is not version)
    now = await result_of(held.agent, other.send, other.at_once(other.params()))
    held.may_end.set()
    assert await first == await second
    assert other.task(now)["id"] == version.task(await first)["id"]
    assert await result_of(held.agent, version.send, version.params()) == await first
    assert held.count == 1


async def test_a_stream_in_a_batch_is_refused_and_begins_nothing() -> None:
    held = HeldAgent()
    body: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": V1.stream, "params": V1.params()}
    assert b"-32600" in (await post(held.agent, [body])).body
    for _ in range(10):
        await asyncio.sleep(0)
    assert held.count == 0


async def test_another_content_under_the_same_id_is_another_task() -> None:
    held = HeldAgent()
    held.may_end.set()
    one = await result_of(held.agent, "message/send", V03.params("tides"))
    two = await result_of(held.agent, "message/send", V03.params("winds"))
    assert (texts(one), texts(two)) == (["tides 1"], ["winds 2"])


async def test_simple_a2a_recognises_a_task_by_its_id() -> None:
    held = HeldAgent()
    body: JsonObject = {"task_id": "t-1", "input": "tides"}
    first, second = begin(held.agent, body), begin(held.agent, body)
    await held.begun.wait()
    held.may_end.set()
    assert (await first.answer()).json == (await second.answer()).json
    assert (await post(held.agent, body)).json["output"] == {"text": "tides 1"}
    await post(held.agent, {"task_id": "t-2", "input": "tides"})
    assert held.count == 2


async def test_a_caller_that_goes_away_does_not_end_the_task() -> None:
    held = HeldAgent()
    waits = begin(held.agent, {"task_id": "t", "input": "tides"})
    follows = stream(held.agent, "message/stream", V03.params())
    events = follows.events()
    task_id = (await anext(events))["id"]
    await held.begun.wait()
    await waits.go_away()
    await follows.go_away()
    held.may_end.set()
    done = await post(held.agent, {"task_id": "t", "input": "tides"})
    assert done.json["status"] == "success"
    task = await result_of(held.agent, "tasks/get", {"id": task_id})
    while V03.state(task) != "completed":
        await asyncio.sleep(0)
        task = await result_of(held.agent, "tasks/get", {"id": task_id})
    assert (held.count, held.canceled) == (2, 0)


@both_versions
async def test_a_cancel_cancels_the_handler(version: Version) -> None:
    held = HeldAgent()
    waiting = asyncio.create_task(result_of(held.agent, version.send, version.params()))
    await held.begun.wait()
    now = await result_of(held.agent, version.send, version.at_once(version.params()))
    task_id = version.task(now)["id"]
    canceled = await result_of(held.agent, version.cancel, {"id": task_id})
    assert version.state(canceled) == "canceled"
    assert version.state(version.task(await waiting)) == "canceled"
    # The loop hands a cancellation over in its next turns.
    for _ in range(10):
        await asyncio.sleep(0)
    assert held.canceled == 1
    again = await result_of(held.agent, version.cancel, {"id": task_id})
    assert version.state(again) == "canceled"


async def tells(task: Task) -> AsyncGenerator[object, Message]:
    yield Status("Looking it up")
    yield "It is "
    reply = yield Question("Where?")
    yield f"sunny in {reply.text}."
    yield {"degrees": 20}


@both_versions
async def test_what_a_handler_yields_is_streamed(version: Version) -> None:
    agent = Agent("Teller")
    agent.handler(tells)
    first = [
        version.update(event) async for event in stream(agent, version.stream, version.params()).events()
    ]
    kinds = [kind for kind, _ in first]
    assert kinds == ["task", "status-update", "status-update", "artifact-update", "status-update"]
    assert version.state(first[0][1]) == "submitted"
    assert words(first[2][1]) == "Looking it up"
    assert words(first[4][1]) == "Where?"
    assert version.state(first[4][1]) == "input-required"
    if version is V03:
        assert [event["final"] for kind, event in first if kind == "status-update"] == [False, False, True]

    params = version.params("Rome", "m-2", taskId=first[0][1]["id"])
    rest = [version.update(event) async for event in stream(agent, version.stream, params).events()]
    assert texts(rest[0][1]) == ["It is "]
    pieces = [event for kind, event in rest if kind == "artifact-update"]
    assert [piece["append"] for piece in pieces] == [True, False]
    task = await result_of(agent, version.get, {"id": first[0][1]["id"]})
    assert texts(task) == ["It is sunny in Rome."]
    assert "20" in str(task["artifacts"])


@both_versions
async def test_a_stream_that_was_cut_is_taken_up_where_the_task_stands(version: Version) -> None:
    may_go_on = asyncio.Event()
    agent = Agent("Teller")

    @agent
    async def answer(task: Task) -> AsyncGenerator[str]:
        yield "one "
        await may_go_on.wait()
        yield "two"

    cut = stream(agent, version.stream, version.params())
    events = cut.events()
    seen = [version.update(await anext(events)) for _ in range(3)]
    await cut.go_away()
    again = stream(agent, version.resubscribe, {"id": seen[0][1]["id"]}).events()
    _, task = version.update(await anext(again))
    may_go_on.set()
    rest = [version.update(event) async for event in again]
    assert texts(task) == ["one "]
    assert [kind for kind, _ in rest] == ["artifact-update", "status-update"]
    ended = await stream(agent, version.resubscribe, {"id": seen[0][1]["id"]}).answer()
    if version is V1:
        assert b"-32004" in ended.body
    else:
        assert b'"completed"' in ended.body


async def test_a_stream_of_a_task_that_fails_ends_with_why() -> None:
    agent = Agent("Failing")

    @agent
    async def answer(task: Task) -> AsyncGenerator[str]:
        yield "one "
        raise AgentError("No more.")

    last: JsonObject = {}
    async for event in stream(agent, "message/stream", V03.params()).events():
        last = event
    assert (V03.state(last), words(last), last["final"]) == ("failed", "No more.", True)


async def test_a_question_fails_in_simple_a2a_and_says_so() -> None:
    agent = Agent("Asking")
    agent.handler(tells)
    answer = await post(agent, {"task_id": "t", "input": "weather"})
    assert answer.json["status"] == "error"
    assert "Where?" in str(answer.json["error"])
    assert (await post(agent, {"task_id": "t", "input": "weather"})).json == answer.json


def message(number: int) -> ReadMessage:
    return ReadMessage(id=f"m-{number}", role="user", parts=(Text(text="x"),))


class SetClock:
    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


async def test_what_has_ended_is_forgotten_after_a_while() -> None:
    clock = SetClock()
    store = InMemoryTaskStore(keep=timedelta(minutes=5), now=clock)
    held = HeldAgent()
    ended = store.submit(message(1), lambda task: task.text)
    running = store.submit(message(2), lambda _: held.may_end.wait())
    asking = store.submit(message(3), lambda _: Question("Which?"))
    await ended.wait_until_idle()
    await asking.wait_until_idle()
    clock.now += timedelta(minutes=4)
    assert store.submit(message(1), lambda _: "another") is ended
    clock.now += timedelta(minutes=1)
    assert store.get(running.id) is running
    for gone in (ended, asking):
        with pytest.raises(TaskNotFound):
            store.get(gone.id)
    assert asking.state == "canceled"
    await store.close()
    assert running.state == "canceled"


async def test_what_has_ended_is_forgotten_earlier_when_it_takes_too_much_memory() -> None:
    clock = SetClock()
    store = InMemoryTaskStore(max_kept_bytes=2_500, now=clock)
    large = [store.submit(message(number), lambda _: "x" * 1_000) for number in range(3)]
    for execution in large:
        await execution.wait_until_idle()
    clock.now += timedelta(seconds=1)
    assert [store.get(execution.id) for execution in large[1:]] == large[1:]
    with pytest.raises(TaskNotFound):
        store.get(large[0].id)


async def test_when_every_place_is_taken_what_has_ended_makes_room_and_what_runs_does_not() -> None:
    store = InMemoryTaskStore(max_tasks=2)
    ended = store.submit(message(1), lambda task: task.text)
    await ended.wait_until_idle()
    forever = asyncio.Event()
    running = [store.submit(message(number), lambda _: forever.wait()) for number in (2, 3)]
    with pytest.raises(TaskNotFound):
        store.get(ended.id)
    with suppress(TooManyTasks):
        store.submit(message(4), lambda task: task.text)
    assert not any(execution.has_ended for execution in running)
    with pytest.raises(TooManyTasks):
        store.submit(message(5), lambda task: task.text)
    await store.close()


@pytest.mark.parametrize(
    "body",
    [
        {"task_id": "t", "input": 1},
        {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": V03.params()},
    ],
    ids=["simple", "jsonrpc"],
)
async def test_an_agent_with_too_much_in_hand_says_when_to_come_again(body: JsonObject) -> None:
    agent = Agent("Full", max_tasks=1)
    agent.handler(tells)
    await call(agent, "message/send", V03.params("first", "m-0"))
    answer = await post(agent, body)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "1 tasks in progress" in str(answer.json["error"])
