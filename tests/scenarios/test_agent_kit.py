"""Agents written with the kit, called by Trunkline in every dialect: the same function gives the same answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from tests.scenarios.kit_server import served

from trunkline.agentkit import Agent, AgentError, Artifact, Message, Question, Rejected, Status, Task
from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem
from trunkline.testing.system import error_of, objects_in, step_of

# It is about what is spoken with agents, which is the same on every set of backends.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

WITH_QUESTIONS = ["jsonrpc-2.0", "a2a-0.2", "a2a-0.3", "a2a-1.0", "auto"]
DIALECTS = ["simple-a2a", *WITH_QUESTIONS]
WITH_STREAMS = ["a2a-0.2", "a2a-0.3", "a2a-1.0", "auto"]

every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


async def register(system: RunningSystem, url: str, dialect: str) -> None:
    # The name is free: an earlier test of the same system may have taken it.
    await system.call("DELETE", "/agents/Kit")
    await system.register("Kit", url, protocol=dialect)
    await system.save({"name": "one", "steps": {"only": {"agent": "Kit", "retry": {"max_attempts": 1}}}})


async def done(system: RunningSystem, agent: Agent, dialect: str, given: Json = None) -> JsonObject:
    async with served(agent) as url:
        await register(system, url, dialect)
        return await system.run("one", {"query": "tides", "n": 2} if given is None else given)


def output_of(run: JsonObject) -> JsonObject:
    assert run["status"] == "COMPLETED", run
    output = step_of(run, "only")["output"]
    assert isinstance(output, dict)
    return output


async def news_of(system: RunningSystem, run_id: str) -> list[JsonObject]:
    events = await system.items(f"/runs/{run_id}/events")
    found = [event["data"] for event in events if event["type"] == "StepProgress"]
    return [said for data in found if isinstance(data, dict) for said in objects_in(data["news"])]


@every_dialect
async def test_a_text_is_the_same_in_every_dialect(shared_system: RunningSystem, dialect: str) -> None:
    agent = Agent("Kit")

    @agent
    def answer(task: Task) -> str:
        return f"about {task.text}"

    run = await done(shared_system, agent, dialect)
    assert output_of(run)["text"] == "about tides"
    wire = await shared_system.items(f"/runs/{run['id']}/wire")
    sent = [str(exchange["request"]) for exchange in wire if "well-known" not in str(exchange["request"])]
    assert len(sent) == 1
    if dialect == "auto":
        assert "SendStreamingMessage" in sent[0]


@every_dialect
async def test_the_whole_input_reaches_the_function_and_its_data_come_back(
    shared_system: RunningSystem, dialect: str
) -> None:
    agent = Agent("Kit")

    @agent
    async def answer(task: Task) -> dict[str, Json]:
        return {"text": task.text, "seen": task.data}

    data = output_of(await done(shared_system, agent, dialect))["data"]
    assert data == {"text": "tides", "seen": {"query": "tides", "n": 2}}


@every_dialect
async def test_several_artifacts_all_come(shared_system: RunningSystem, dialect: str) -> None:
    agent = Agent("Kit")

    @agent
    def answer(task: Task) -> list[Artifact]:
        return [Artifact("summary", "short"), Artifact("numbers", data={"n": 2})]

    output = output_of(await done(shared_system, agent, dialect))
    assert output["text"] == "short"
    assert '"n": 2' in str(output).replace("'", '"')


@every_dialect
@pytest.mark.parametrize("error", [AgentError, Rejected], ids=["failed", "rejected"])
async def test_a_failure_has_the_agents_own_message(
    shared_system: RunningSystem, dialect: str, error: type[Exception]
) -> None:
    agent = Agent("Kit")

    @agent
    def answer(task: Task) -> None:
        raise error("No boats today.")

    run = await done(shared_system, agent, dialect)
    assert run["status"] == "FAILED"
    assert "No boats today." in str(error_of(run)["message"])


async def asks(task: Task) -> AsyncGenerator[object, Message]:
    reply = yield Question("Which city?")
    yield f"{task.text} in {reply.text}"


@pytest.mark.parametrize("dialect", WITH_QUESTIONS)
async def test_a_question_waits_for_a_person(shared_system: RunningSystem, dialect: str) -> None:
    system, agent = shared_system, Agent("Kit")
    agent.handler(asks)
    async with served(agent) as url:
        await register(system, url, dialect)
        run_id = await system.start("one", {"query": "tides"})
        waiting = await system.wait_for(run_id, {"WAITING"})
        await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "Rome"})
        run = await system.wait_for(run_id)
    assert step_of(waiting, "only")["waiting_for"] == {"kind": "input", "text": "Which city?", "until": None}
    assert output_of(run)["text"] == "tides in Rome"


async def test_a_question_in_simple_a2a_fails_and_says_why(shared_system: RunningSystem) -> None:
    agent = Agent("Kit")
    agent.handler(asks)
    run = await done(shared_system, agent, "simple-a2a")
    assert run["status"] == "FAILED"
    assert "Which city?" in str(error_of(run)["message"])


@pytest.mark.parametrize("dialect", WITH_STREAMS)
async def test_what_a_function_yields_is_in_the_history_before_it_is_done(
    shared_system: RunningSystem, dialect: str
) -> None:
    system, agent, may_end = shared_system, Agent("Kit"), asyncio.Event()

    @agent
    async def answer(task: Task) -> AsyncGenerator[object]:
        yield Status("Looking it up")
        yield "It is "
        yield "high tide."
        await may_end.wait()

    async with served(agent) as url:
        await register(system, url, dialect)
        run_id = await system.start("one", {"query": "tides"})
        while "high tide." not in str(news := await news_of(system, run_id)):
            await asyncio.sleep(0.02)
        before = await system.get(run_id)
        may_end.set()
        run = await system.wait_for(run_id)
    assert before["status"] == "RUNNING"
    assert news[0] == {"kind": "status", "text": "Looking it up"}
    assert "".join(str(said["text"]) for said in news[1:]) == "It is high tide."
    assert output_of(run)["text"] == "It is high tide."


@pytest.mark.parametrize("dialect", WITH_STREAMS)
async def test_a_run_that_is_canceled_cancels_the_function(
    shared_system: RunningSystem, dialect: str
) -> None:
    system, agent = shared_system, Agent("Kit")
    begun, canceled = asyncio.Event(), asyncio.Event()

    @agent
    async def answer(task: Task) -> AsyncGenerator[object]:
        yield Status("Looking it up")
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            canceled.set()
            raise

    async with served(agent) as url:
        await register(system, url, dialect)
        run_id = await system.start("one", {"query": "tides"})
        while not await news_of(system, run_id):
            await asyncio.sleep(0.02)
        await begun.wait()
        await system.call("POST", f"/runs/{run_id}/cancel", {})
        run = await system.wait_for(run_id)
        await canceled.wait()
    assert run["status"] == "CANCELLED"


@pytest.mark.parametrize("dialect", ["jsonrpc-2.0", "auto"])
async def test_an_error_in_the_function_is_not_shown_to_the_caller(
    shared_system: RunningSystem, dialect: str
) -> None:
    agent = Agent("Kit")

    @agent
    def answer(task: Task) -> str:
        raise KeyError("canary")

    run = await done(shared_system, agent, dialect)
    assert "The agent failed. See its log for the reason." in str(error_of(run)["message"])
    assert "canary" not in str(run)
