"""What subscriptions report of agents, once each: unhealthy ones, opened breakers, changed grades."""

from __future__ import annotations

import pytest
from tests.scenarios.event_receiver import event_receiver

from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.agents import Reply

pytestmark = pytest.mark.anyio

BROKEN = Reply(500, b"no", {"Content-Type": "text/plain"})
ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "A", "retry": {"max_attempts": 1}}}}


async def fail(system: RunningSystem, times: int) -> None:
    for _ in range(times):
        assert (await system.run("one"))["status"] == "FAILED"


async def test_an_agent_without_a_success_is_reported_once(system: RunningSystem) -> None:
    async with event_receiver() as receiver, ScriptedAgent(BROKEN) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        await system.save(ONE)
        body: JsonObject = {"name": "s", "url": receiver.url, "types": ["agent.unhealthy", "run.completed"]}
        assert (await system.call("POST", "/subscriptions", body)).status == 201
        await fail(system, 5)
        [event] = await receiver.accepts(1)
        assert (event["type"], event["subject"], event["data"]["agent"]) == ("agent.unhealthy", "A", "A")
        assert event["data"]["reason"] == "All 3 calls of the last 2 minutes failed."
        # The fourth and the fifth failure did not make it unhealthy: it was already.
        agent.script(simple_success("ok"))
        assert (await system.run("one"))["status"] == "COMPLETED"
        types = [each["type"] for each in await receiver.accepts(2)]
        assert types == ["agent.unhealthy", "run.completed"]


async def test_an_opened_breaker_is_reported(system: RunningSystem) -> None:
    async with event_receiver() as receiver, ScriptedAgent(BROKEN) as agent:
        await system.register(
            "A", agent.url, protocol="simple-a2a", breaker={"failures": 2, "open_ms": 3_600_000}
        )
        await system.save(ONE)
        body: JsonObject = {"name": "s", "url": receiver.url, "types": ["breaker.open"]}
        assert (await system.call("POST", "/subscriptions", body)).status == 201
        await fail(system, 2)
        [event] = await receiver.accepts(1)
        assert (event["type"], event["subject"]) == ("breaker.open", "A")
        assert "2 consecutive failures" in event["data"]["reason"]


async def test_a_changed_grade_is_reported(system: RunningSystem) -> None:
    async with event_receiver() as receiver, ScriptedAgent(simple_success({"text": "ok"})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        body: JsonObject = {"name": "s", "url": receiver.url, "types": ["check.grade_changed"]}
        assert (await system.call("POST", "/subscriptions", body)).status == 201
        first = (await system.call("POST", "/agents/A/check", {"active": True})).json
        agent.script(BROKEN)
        second = (await system.call("POST", "/agents/A/check", {"active": True})).json
        assert first["grade"] != second["grade"]
        [event] = await receiver.accepts(1)
        assert (event["type"], event["subject"]) == ("check.grade_changed", "A")
        assert event["data"]["grade"] == second["grade"]
