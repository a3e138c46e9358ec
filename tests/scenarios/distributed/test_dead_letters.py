"""Records that nobody can read, on a real Kafka: put aside with the reason, and in nobody's way."""

from __future__ import annotations

import asyncio
import json

import pytest
from structlog.testing import capture_logs
from tests.scenarios.distributed.in_process_roles import serving_roles
from tests.scenarios.distributed.topic_records import TopicReader
from tests.scenarios.event_receiver import event_receiver

from trunkline.cli.app import run_command_line
from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, simple_success

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent"}}}


async def letters(system: RunningSystem, number: int) -> list[JsonObject]:
    """The dead letters, as soon as there are so many."""
    while len(found := await system.items("/dead-letters")) < number:
        await asyncio.sleep(0.05)
    return found


async def test_a_message_of_another_version_becomes_a_dead_letter_with_what_to_do(
    kafka: TopicReader, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = kafka.topics
    async with (
        ScriptedAgent(simple_success("ok")) as agent,
        serving_roles("api") as api,
        serving_roles("executor") as executor,
        serving_roles("bridge") as bridge,
    ):
        await api.register("Agent", agent.url, protocol="simple-a2a")
        await api.save(ONE)
        assert (await api.run("one"))["status"] == "COMPLETED"
        sent = await kafka.written(topics.tasks, topics.results)
        for record in sent:
            await kafka.write(
                record.topic, record.value, record.key, {**record.headers, "trunkline-version": b"2"}
            )
        found = await letters(api, 2)
        assert {letter["topic"] for letter in found} == {topics.tasks, topics.results}  # pyright: ignore[reportUnhashable] - texts
        for letter in found:
            assert "has version 2" in str(letter["reason"])
            assert "Upgrade all processes to the same version" in str(letter["reason"])
        assert await executor.metric("trunkline_dead_letters_total", reason="version") == 1
        assert await bridge.metric("trunkline_dead_letters_total", reason="version") == 1
        assert (await api.run("one"))["status"] == "COMPLETED"

        async def trunkline(*arguments: str) -> str:
            # The servers' log would go to the same stdout.
            capsys.readouterr()
            with capture_logs():
                code = await asyncio.to_thread(
                    run_command_line, ["dead-letters", *arguments, "--url", api.url]
                )
            assert code == 0
            return capsys.readouterr().out

        (task,) = [record for record in sent if record.topic == topics.tasks]
        (letter,) = [letter for letter in found if letter["topic"] == topics.tasks]
        shown = json.loads(await trunkline("show", str(letter["id"]), "--json"))
        assert (shown["key"].encode(), shown["value"].encode()) == (task.key, task.value)
        assert {"name": "trunkline-version", "value": "2", "encoding": "utf-8"} in shown["headers"]
        for letter in found:
            await trunkline("delete", str(letter["id"]))
        assert await api.items("/dead-letters") == []
    assert len(agent.calls) == 2


async def test_a_dead_letter_is_reported_to_subscriptions(kafka: TopicReader) -> None:
    async with (
        event_receiver() as receiver,
        serving_roles("api") as api,
        serving_roles("executor"),
        serving_roles("bridge"),
    ):
        body: JsonObject = {"name": "s", "url": receiver.url, "types": ["dead_letter"]}
        assert (await api.call("POST", "/subscriptions", body)).status == 201
        # Other processes know the subscription within a second: every record from then on is reported.
        while not receiver.events:
            await kafka.write(kafka.topics.tasks, b"no task", b"k")
            await asyncio.sleep(0.2)
        event = receiver.events[0]
        assert (event["type"], event["subject"]) == ("dead_letter", kafka.topics.tasks)
        assert event["data"]["reason"] == (await letters(api, 1))[-1]["reason"]


async def test_poison_among_good_records_holds_up_nothing(kafka: TopicReader) -> None:
    poison = (b"", b"\xff\x00", b"{}", b"[" * 10_000, b'{"task_id": 1}')
    async with (
        ScriptedAgent(simple_success("ok")) as agent,
        serving_roles("api", "executor") as system,
        serving_roles("bridge"),
    ):
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(ONE)
        runs: list[str] = []
        for number, value in enumerate(poison):
            runs += [await system.start("one") for _ in range(4)]
            # In every partition, before and after the good ones.
            for topic in (kafka.topics.tasks, kafka.topics.results):
                key = f"{number}".encode()
                await kafka.write(topic, value, key)
                headers = {"trunkline-type": b"agent-task", "trunkline-version": b"1"}
                await kafka.write(topic, value, key, headers)
        for run in runs:
            assert (await system.wait_for(run))["status"] == "COMPLETED"
        found = await letters(system, 4 * len(poison))
        assert len(found) == 4 * len(poison)
        assert all(letter["reason"] for letter in found)
    assert len(agent.calls) == len(runs)
