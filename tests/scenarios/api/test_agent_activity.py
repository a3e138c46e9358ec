"""What agents had to do lately over REST: minute by minute, call by call, and in the list of agents."""

from __future__ import annotations

from datetime import datetime

import pytest
from tests.resources import read_resource

from trunkline.api.resources.agents.activity import AgentActivity, AgentCallPage
from trunkline.api.resources.agents.registry import AgentPage
from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_task, simple_success
from trunkline.testing.agents import Reply

pytestmark = pytest.mark.anyio

BUSY = Reply(503, b"busy", {"Content-Type": "text/plain"})
OK = simple_success({"text": "hi"})


async def prepare(system: RunningSystem, name: str, agent: ScriptedAgent, **fields: Json) -> None:
    await system.register(name, agent.url, **{"protocol": "simple-a2a", **fields})
    only: JsonObject = {"agent": name, "retry": {"max_attempts": 1}}
    await system.save({"name": name, "steps": {"only": only}})


async def activity(system: RunningSystem, name: str) -> AgentActivity:
    answer = await system.call("GET", f"/agents/{name}/activity")
    assert answer.status == 200, answer.body
    return read_resource(AgentActivity, answer.body)


async def calls(system: RunningSystem, name: str, query: str = "") -> AgentCallPage:
    answer = await system.call("GET", f"/agents/{name}/calls{query}")
    assert answer.status == 200, answer.body
    return read_resource(AgentCallPage, answer.body)


async def test_calls_and_failures_are_counted_by_the_minute(shared_system: RunningSystem) -> None:
    system = shared_system
    async with ScriptedAgent(OK, BUSY, OK) as agent:
        await prepare(system, "Counted", agent)
        for _ in range(3):
            await system.run("Counted")
    shown = await activity(system, "Counted")
    assert sum(minute["calls"] for minute in shown["minutes"]) == 3
    assert sum(minute["failures"] for minute in shown["minutes"]) == 1
    assert all(0 < minute["mean_ms"] <= minute["longest_ms"] + 1 for minute in shown["minutes"])
    begin, end = datetime.fromisoformat(shown["from"]), datetime.fromisoformat(shown["to"])
    assert (end - begin).total_seconds() == 60 * 60
    assert all(begin <= datetime.fromisoformat(minute["at"]) < end for minute in shown["minutes"])


async def test_the_last_calls_lead_to_their_steps_newest_first(shared_system: RunningSystem) -> None:
    system = shared_system
    async with ScriptedAgent(OK, BUSY) as agent:
        await prepare(system, "Listed", agent)
        runs = [await system.run("Listed") for _ in range(2)]
    first = await calls(system, "Listed", "?limit=1")
    rest = await calls(system, "Listed", f"?limit=1&cursor={first['next_cursor']}")
    (failed,), (well,) = first["items"], rest["items"]
    assert [failed["run"], well["run"]] == [run["id"] for run in reversed(runs)]
    assert (failed["step"], failed["attempt"], failed["outcome"]) == ("only", 1, "error")
    assert (failed["error_code"], well["error_code"]) == ("agent_http_error", None)
    assert failed["duration_ms"] is not None
    assert failed["duration_ms"] > 0
    assert rest["next_cursor"] is None


async def test_a_call_that_an_agent_works_on_lasts_to_its_end(shared_system: RunningSystem) -> None:
    system = shared_system
    async with ScriptedAgent(jsonrpc_task("", state="working"), jsonrpc_task("done")) as agent:
        await prepare(system, "Working", agent, protocol="a2a-0.3")
        await system.run("Working")
    (call,) = (await calls(system, "Working"))["items"]
    assert call["outcome"] == "success"
    assert call["duration_ms"] is not None
    # It is asked for the first time after 200 milliseconds.
    assert call["duration_ms"] >= 190
    assert sum(minute["calls"] for minute in (await activity(system, "Working"))["minutes"]) == 1


async def test_the_list_shows_how_each_agent_stands_in_one_request(shared_system: RunningSystem) -> None:
    system = shared_system
    async with ScriptedAgent(BUSY) as agent, ScriptedAgent(OK) as idle:
        await prepare(system, "Standing", agent, breaker={"failures": 1})
        await prepare(system, "Standing idle", idle)
        await system.run("Standing")
        await system.call("POST", "/agents/Standing%20idle/check")
    shown = read_resource(AgentPage, (await system.call("GET", "/agents?activity=5&limit=1000")).body)
    by_name = {item["name"]: item for item in shown["items"]}
    failing, quiet = by_name["Standing"], by_name["Standing idle"]
    limits, busy, idle_activity = failing.get("limits"), failing.get("activity"), quiet.get("activity")
    assert limits is not None
    assert limits["breaker"] is not None
    assert limits["breaker"]["state"] == "open"
    assert busy is not None
    assert [minute["failures"] for minute in busy["minutes"]] == [1]
    assert busy["last_call"] is not None
    assert busy["last_call"]["error_code"] == "agent_http_error"
    assert failing.get("last_check") is None
    assert idle_activity is not None
    assert (idle_activity["minutes"], idle_activity["last_call"]) == ([], None)
    assert quiet.get("last_check") is not None


async def test_a_list_without_activity_has_none(shared_system: RunningSystem) -> None:
    async with ScriptedAgent(OK) as agent:
        await prepare(shared_system, "Plain", agent)
    answer = await shared_system.call("GET", "/agents?limit=1000")
    assert b'"activity"' not in answer.body


@pytest.mark.parametrize(
    "path",
    [
        "/agents?activity=0",
        "/agents?activity=61",
        "/agents/Plain/activity?minutes=1441",
        "/agents/Plain/calls?cursor=yesterday",
    ],
)
async def test_what_cannot_be_asked_for_is_refused(shared_system: RunningSystem, path: str) -> None:
    answer = await shared_system.call("GET", path)
    assert answer.status == 422
    assert answer.json["errors"]


@pytest.mark.parametrize("path", ["activity", "calls", "card"])
async def test_an_agent_that_is_not_there_has_none_of_it(shared_system: RunningSystem, path: str) -> None:
    assert (await shared_system.call("GET", f"/agents/nobody/{path}")).status == 404
