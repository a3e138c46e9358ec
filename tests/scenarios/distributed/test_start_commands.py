"""Runs that other systems start by a message, on a real Kafka: each once, and what cannot be started is put aside."""

from __future__ import annotations

import asyncio

import pytest
from tests.scenarios.distributed.in_process_roles import serving_roles
from tests.scenarios.distributed.topic_records import TopicReader

from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.testing import RunningSystem, ScriptedAgent, simple_success

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

WORKFLOW = """
name: greet
input: {type: object, required: [name]}
steps:
  only: {agent: Greeter}
"""


def order(name: str, workflow: str = "greet") -> bytes:
    return encode({"workflow": workflow, "input": {"name": name}, "correlation_id": f"order-{name}"})


async def letters(system: RunningSystem, number: int) -> list[JsonObject]:
    """The dead letters, as soon as there are so many."""
    while len(found := await system.items("/dead-letters")) < number:
        await asyncio.sleep(0.05)
    return found


async def runs(system: RunningSystem, number: int) -> list[JsonObject]:
    while len(found := await system.items("/runs")) < number:
        await asyncio.sleep(0.05)
    return found


async def test_a_message_starts_a_run_once_whichever_api_takes_it(kafka: TopicReader, commands: str) -> None:
    async with (
        ScriptedAgent(simple_success("hello")) as agent,
        serving_roles("api") as one,
        serving_roles("api") as other,
        serving_roles("executor", "bridge"),
    ):
        await one.register("Greeter", agent.url, protocol="simple-a2a")
        await one.save(WORKFLOW)
        for number in range(6):
            await kafka.write(commands, order(f"n{number}"), f"k{number}".encode())
        await kafka.write(commands, order("n0"), b"k0")
        await kafka.write(commands, order("last"), b"last")
        found = await runs(other, 7)
        for run in found:
            assert (await other.wait_for(str(run["id"])))["status"] == "COMPLETED"
        # The same order at the other door is the same run.
        again = await one.start("greet", {"name": "n3"}, {"Idempotency-Key": "k3"})
        assert again in [run["id"] for run in found]
        assert sorted(str(run["correlation_id"]) for run in await one.items("/runs")) == [
            "order-last",
            *(f"order-n{number}" for number in range(6)),
        ]
        assert await one.items("/dead-letters") == []
    assert len(agent.calls) == 7


async def test_a_start_command_that_fails_becomes_a_dead_letter_and_works_when_replayed(
    kafka: TopicReader, commands: str
) -> None:
    async with (
        ScriptedAgent(simple_success("hello")) as agent,
        serving_roles("api") as api,
        serving_roles("executor", "bridge"),
    ):
        await api.register("Greeter", agent.url, protocol="simple-a2a")
        bad: dict[bytes, bytes] = {
            b"early": order("Ada"),
            b"no json": b"\xff\x00",
            b"wrong": encode({"workflow": "greet", "input": {"nam": "Ada"}}),
        }
        for key, value in bad.items():
            await kafka.write(commands, value, key)
        found = {str(letter["key"]): letter for letter in await letters(api, 3)}
        assert found.keys() == {"early", "no json", "wrong"}
        assert "greet" in str(found["early"]["reason"])
        assert {str(letter["topic"]) for letter in found.values()} == {commands}
        await api.save(WORKFLOW)
        await kafka.write(commands, order("Bob"), b"good")
        (run,) = await runs(api, 1)
        assert run["correlation_id"] == "order-Bob"
        replayed = await api.call("POST", f"/dead-letters/{found['early']['id']}/replay")
        assert replayed.status == 202
        for run in await runs(api, 2):
            assert (await api.wait_for(str(run["id"])))["status"] == "COMPLETED"
        for key in ("no json", "wrong"):
            assert (await api.call("DELETE", f"/dead-letters/{found[key]['id']}")).status == 204
        assert await api.items("/dead-letters") == []
    names: list[Json] = [call.body["input"] for call in agent.calls]
    assert sorted(names, key=str) == [{"name": "Ada"}, {"name": "Bob"}]
