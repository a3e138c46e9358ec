"""Trunkline calls Trunkline, three levels deep: a step calls a published workflow of another installation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.scenarios.kit_server import served
from tests.scenarios.publishing.a2a_caller import A2ACaller, parts_of, state_of, status_text, text

from trunkline.agentkit import Agent, Message, Question, Task
from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem, running_system
from trunkline.testing.system import objects_in

# Each installation has a store of its own.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

LEVELS = 3


class LastAgent:
    """Behind the last installation."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.was_cancelled = asyncio.Event()

    async def play(self, task: Task) -> AsyncGenerator[object, Message]:
        match task.text:
            case "ask":
                reply = yield Question("Which city?")
                yield f"{reply.text} it is."
            case "wait":
                self.has_begun.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    self.was_cancelled.set()
                    raise
            case _:
                yield "Hello, world."


@pytest.fixture
async def agent() -> LastAgent:
    return LastAgent()


@pytest.fixture
async def levels(agent: LastAgent, tmp_path: Path) -> AsyncGenerator[list[RunningSystem]]:
    """The first one is called, and the last one calls the agent."""
    kit = Agent("Last", description="Plays.")
    kit.handler(agent.play)
    systems: list[RunningSystem] = []
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(kit))
        for level in reversed(range(LEVELS)):
            system = await stack.enter_async_context(running_system(tmp_path / str(level)))
            await system.register("A", url)
            step: JsonObject = {"agent": "A", "message": "caller", "context": "caller"}
            await system.save({"name": "front", "publish": True, "steps": {"only": step}})
            url = f"{system.url}/a2a/workflows/front"
            systems.insert(0, system)
        yield systems


async def test_an_answer_comes_back_through_all_levels(levels: list[RunningSystem]) -> None:
    task = await A2ACaller(levels[0], "workflows/front").send(text("hi"))
    assert state_of(task) == "completed"
    assert parts_of(task) == [{"text": "Hello, world."}]
    for system in levels:
        runs = (await system.call("GET", "/runs")).json["items"]
        assert isinstance(runs, list)
        assert len(runs) == 1


async def test_a_question_and_its_answer_go_through_all_levels(levels: list[RunningSystem]) -> None:
    caller = A2ACaller(levels[0], "workflows/front")
    asking = await caller.send(text("ask"))
    assert (state_of(asking), status_text(asking)) == ("input-required", "Which city?")
    done = await caller.send(text("Rome", "m-2", taskId=asking["id"]))
    assert state_of(done) == "completed"
    assert parts_of(done) == [{"text": "Rome it is."}]


async def test_a_cancel_reaches_the_last_agent(levels: list[RunningSystem], agent: LastAgent) -> None:
    caller = A2ACaller(levels[0], "workflows/front")
    begun = await caller.send(text("wait"), returnImmediately=True)
    await agent.has_begun.wait()
    await caller.call("CancelTask", {"id": begun["id"]})
    await caller.task_in(begun["id"], "canceled")
    async with asyncio.timeout(30):
        await agent.was_cancelled.wait()
    for system in levels:
        (run,) = objects_in((await system.call("GET", "/runs")).json["items"])
        assert run["status"] == "CANCELLED"
