"""What is really on the topics: records as the AsyncAPI document has them, and what becomes of those that are not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.asyncapi_messages import at, matching_messages
from tests.scenarios.distributed.topic_records import TopicReader

from trunkline.jsontypes import JsonObject, decode, encode
from trunkline.messages.codec import MAX_VALUE_BYTES
from trunkline.testing import RunningSystem, ScriptedAgent, running_system, simple_success

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

WORKFLOW = """
name: greet
steps:
  first: {agent: Greeter, input: "${ input }"}
  second: {agent: Greeter, needs: [first], input: short}
output: ${ steps.second.output }
"""
FINAL = "dev.trunkline.run.RunCompleted"


@pytest.fixture
async def distributed(commands: str, tmp_path: Path) -> AsyncGenerator[RunningSystem]:
    """All roles in one process, and commands too."""
    async with running_system(tmp_path / "data") as system:
        yield system


async def letters(system: RunningSystem, number: int) -> list[JsonObject]:
    """The dead letters, as soon as there are so many."""
    while len(found := await system.items("/dead-letters")) < number:
        await asyncio.sleep(0.05)
    return found


async def test_every_record_is_as_the_document_has_it(distributed: RunningSystem, kafka: TopicReader) -> None:
    long = "x" * MAX_VALUE_BYTES
    async with ScriptedAgent(simple_success({"text": long}), simple_success({"text": "hello"})) as agent:
        await distributed.register("Greeter", agent.url, protocol="simple-a2a")
        await distributed.save(WORKFLOW)
        command = encode({"workflow": "greet", "input": long, "correlation_id": "order-1"})
        await kafka.write(kafka.topics.commands, command, b"order-1")
        await kafka.write(kafka.topics.commands, command, b"order-1")
        events = await kafka.read(
            kafka.topics.events, lambda seen: any(FINAL in event.value.decode() for event in seen)
        )
    (run,) = await distributed.items("/runs")
    tasks = await kafka.read(kafka.topics.tasks, lambda seen: len(seen) >= 2)
    results = await kafka.read(kafka.topics.results, lambda seen: len(seen) >= 2)
    commands = await kafka.read(kafka.topics.commands, lambda seen: len(seen) >= 2)

    document = (await distributed.call("GET", "//asyncapi.json")).json
    kinds: set[str] = set()
    for channel, seen in {"tasks": tasks, "results": results, "events": events, "commands": commands}.items():
        address = at(document, "channels", channel)["address"]
        for record in seen:
            assert record.topic == address
            fitting = matching_messages(document, channel, record.headers, record.value)
            assert fitting, record
            kinds.update(fitting)
            assert record.key == (b"order-1" if channel == "commands" else str(run["id"]).encode())
    assert kinds == {"AgentTask", "TaskReference", "AgentResult", "ResultReference", "RunEvent", "StartRun"}


async def test_the_events_of_a_run_are_its_history(distributed: RunningSystem, kafka: TopicReader) -> None:
    async with ScriptedAgent(simple_success({"text": "hello"})) as agent:
        await distributed.register("Greeter", agent.url, protocol="simple-a2a")
        await distributed.save(WORKFLOW)
        run = await distributed.run("greet")
    history = await distributed.items(f"/runs/{run['id']}/events")
    seen = await kafka.read(kafka.topics.events, lambda seen: len(seen) >= len(history))
    told = [event for record in seen if isinstance(event := decode(record.value), dict)]
    told.sort(key=lambda event: int(str(event["sequence"])))
    assert [
        {"seq": event["seq"], "type": event["type"], "at": event["at"], "data": event["data"]}
        for event in history
    ] == [
        {
            "seq": int(str(event["sequence"])),
            "type": str(event["type"]).removeprefix("dev.trunkline.run."),
            "at": event["time"],
            "data": event["data"],
        }
        for event in told
    ]
    assert {(event["subject"], event["workflow"]) for event in told} == {(str(run["id"]), "greet")}  # pyright: ignore[reportUnhashable] - texts


async def test_a_poisoned_record_becomes_a_dead_letter_again_after_a_replay(
    distributed: RunningSystem, kafka: TopicReader
) -> None:
    for topic in (kafka.topics.tasks, kafka.topics.results, kafka.topics.commands):
        await kafka.write(topic, b"\xff\x00poison", b"\xfe", {"origin": b"\xfd"})
    first = await letters(distributed, 3)
    assert {letter["topic"] for letter in first} == {  # pyright: ignore[reportUnhashable] - texts
        kafka.topics.tasks,
        kafka.topics.results,
        kafka.topics.commands,
    }
    (results,) = [letter for letter in first if letter["topic"] == kafka.topics.results]
    answer = await distributed.call("POST", f"/dead-letters/{results['id']}/replay")
    assert answer.status == 202
    again = await kafka.read(kafka.topics.results, lambda seen: len(seen) >= 2)
    assert [record[1:4] for record in again] == [(b"\xfe", b"\xff\x00poison", {"origin": b"\xfd"})] * 2
    back = await letters(distributed, 3)
    known = [letter["id"] for letter in first]
    (other,) = [letter for letter in back if letter["id"] not in known]
    assert (other["topic"], other["reason"]) == (results["topic"], results["reason"])
