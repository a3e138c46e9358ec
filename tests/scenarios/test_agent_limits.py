"""Agents that may be called only so fast, and agents that are left alone for a while because they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from trunkline.jsontypes import Json, JsonObject
from trunkline.telemetry import log_events
from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_error, running_system, simple_success
from trunkline.testing.agents import Reply
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

BUSY = Reply(503, b"busy", {"Content-Type": "text/plain"})
OK = simple_success("ok")
# Longer than any test takes.
LONG = 3_600_000
ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent", "retry": {"max_attempts": 1}}}}


async def prepare(system: RunningSystem, agent: ScriptedAgent, **fields: Json) -> None:
    await system.register("Agent", agent.url, **{"protocol": "simple-a2a", **fields})
    await system.save(ONE)


def breaker(open_ms: int = LONG, **fields: Json) -> JsonObject:
    return {"failures": 2, "open_ms": open_ms, **fields}


async def limits(system: RunningSystem, queued: int) -> JsonObject:
    """How the agent's limits stand once so many tasks wait."""
    while True:
        found = (await system.call("GET", "/agents/Agent")).json["limits"]
        assert isinstance(found, dict)
        if found["queued"] == queued:
            return found
        await asyncio.sleep(0.01)  # nothing rings for it


async def fail_twice(system: RunningSystem, agent: ScriptedAgent, **fields: Json) -> None:
    await prepare(system, agent, **fields)
    for _ in range(2):
        assert (await system.run("one"))["status"] == "FAILED"


async def test_an_open_breaker_keeps_a_task_queued_until_the_agent_is_reset(system: RunningSystem) -> None:
    async with ScriptedAgent(BUSY) as agent:
        await fail_twice(system, agent, breaker=breaker())
        agent.script(OK)
        run = await system.start("one")
        state = await limits(system, queued=1)
        assert len(agent.calls) == 2
        assert await system.metric("agent_breaker_state", agent_name="Agent") == 2
        assert await system.metric("agent_queued_tasks", agent_name="Agent") == 1
        assert await system.metric("agent_breaker_opened_total", agent_name="Agent") == 1
        assert await system.metric("trunkline_rows_without_wake_reason") == 0
        with capture_logs() as logs:
            reset = await system.call("POST", "/agents/Agent/reset")
        ended = await system.wait_for(run)
    found = state["breaker"]
    assert isinstance(found, dict)
    assert (found["state"], found["failures"]) == ("open", 2)
    assert "2 consecutive failures" in str(found["reason"])
    assert "503" in str(found["reason"])
    assert (reset.status, ended["status"]) == (200, "COMPLETED")
    assert step_of(ended, "only")["attempts"] == 1
    assert await system.metric("agent_breaker_state", agent_name="Agent") == 0
    assert [line["agent"] for line in logs if line["event"] == log_events.AGENT_RESET] == ["Agent"]


async def test_a_breaker_tries_by_itself_and_closes_when_the_agent_answers(system: RunningSystem) -> None:
    with capture_logs() as logs:
        async with ScriptedAgent(BUSY, BUSY, BUSY, OK) as agent:
            await fail_twice(system, agent, breaker=breaker(open_ms=200))
            # The first probe fails, and its run with it; the next one succeeds.
            runs = [await system.start("one") for _ in range(4)]
            ended = [await system.wait_for(run) for run in runs]
    assert sorted(str(run["status"]) for run in ended) == ["COMPLETED"] * 3 + ["FAILED"]
    assert [step_of(run, "only")["attempts"] for run in ended] == [1] * 4
    assert len(agent.calls) == 6
    events = [line["event"] for line in logs if str(line["event"]).startswith("breaker_")]
    assert events == [
        log_events.BREAKER_OPENED, log_events.BREAKER_PROBED, log_events.BREAKER_OPENED,
        log_events.BREAKER_PROBED, log_events.BREAKER_CLOSED,
    ]  # fmt: skip


async def test_an_open_breaker_outlives_a_restart(
    backend_settings: Mapping[str, str], tmp_path: Path
) -> None:
    async with ScriptedAgent(BUSY) as agent:
        async with running_system(tmp_path / "data") as system:
            await fail_twice(system, agent, breaker=breaker())
            run = await system.start("one")
            await limits(system, queued=1)
        agent.script(OK)
        async with running_system(tmp_path / "data") as system:
            state = await limits(system, queued=1)
            assert isinstance(state["breaker"], dict)
            assert state["breaker"]["state"] == "open"
            assert len(agent.calls) == 2
            await system.call("POST", "/agents/Agent/reset")
            assert (await system.wait_for(run))["status"] == "COMPLETED"


async def test_errors_of_json_rpc_open_a_breaker_only_where_its_policy_says_so(system: RunningSystem) -> None:
    async with ScriptedAgent(jsonrpc_error(-32602, "Invalid params")) as agent:
        await fail_twice(system, agent, protocol="jsonrpc-2.0", breaker=breaker())
        third = await system.run("one")
        assert error_of(third)["code"] == "agent_jsonrpc_error"
        assert len(agent.calls) == 3
        strict = breaker(jsonrpc_errors=True)
        assert (await system.call("PATCH", "/agents/Agent", {"breaker": strict})).status == 200
        # A bridge that has the agent as it was hears of the change when it claims.
        for _ in range(2):
            await system.run("one")
        await system.start("one")
        state = await limits(system, queued=1)
        assert len(agent.calls) == 5
    assert isinstance(state["breaker"], dict)
    assert state["breaker"]["state"] == "open"


async def test_a_request_that_is_refused_opens_no_breaker(system: RunningSystem) -> None:
    async with ScriptedAgent(Reply(422, b"no", {"Content-Type": "text/plain"})) as agent:
        await fail_twice(system, agent, breaker=breaker())
        assert (await system.run("one"))["status"] == "FAILED"
    assert len(agent.calls) == 3
    assert await system.metric("agent_breaker_state", agent_name="Agent") == 0


async def test_a_rate_lets_its_burst_through_and_keeps_the_rest(system: RunningSystem) -> None:
    async with ScriptedAgent(OK) as agent:
        await prepare(system, agent, rate={"per_second": 0.001, "burst": 2})
        runs = [await system.start("one") for _ in range(3)]
        await agent.called(2)
        state = await limits(system, queued=1)
        assert state["rate"] == {"per_second": 0.001, "burst": 2, "tokens": 0}
        assert state["breaker"] is None
        assert len(agent.calls) == 2
        await system.call("POST", "/agents/Agent/reset")
        ended = [await system.wait_for(run) for run in runs]
    assert [run["status"] for run in ended] == ["COMPLETED"] * 3


async def test_a_queue_drains_by_itself_as_tokens_come_back(system: RunningSystem) -> None:
    async with ScriptedAgent(OK) as agent:
        await prepare(system, agent, rate={"per_second": 50, "burst": 1})
        runs = [await system.start("one") for _ in range(8)]
        ended = [await system.wait_for(run) for run in runs]
    assert [run["status"] for run in ended] == ["COMPLETED"] * 8
    assert len(agent.calls) == 8


async def test_an_unknown_agent_cannot_be_reset(system: RunningSystem) -> None:
    answer = await system.call("POST", "/agents/Nobody/reset")
    assert (answer.status, answer.headers["Content-Type"]) == (404, "application/problem+json")


async def test_what_was_read_can_be_sent_back_and_lists_show_no_load(system: RunningSystem) -> None:
    async with ScriptedAgent(OK) as agent:
        await prepare(system, agent, breaker=True)
        read = (await system.call("GET", "/agents/Agent")).json
        assert (await system.call("PUT", "/agents/Agent", read)).json == read
        (listed,) = await system.items("/agents")
    assert "limits" not in listed
    assert read["limits"] == {
        "in_flight": 0,
        "queued": 0,
        "breaker": {"state": "closed", "failures": 0, "opened_at": None, "retry_at": None, "reason": None},
        "rate": None,
    }
