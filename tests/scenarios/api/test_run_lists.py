"""Lists of runs: filters and pages, and the stream that says when a list has changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import datetime, timedelta
from urllib.parse import urlencode

import pytest
from starlette.types import Message
from tests.resources import read_resource
from tests.scenarios.change_notifications import CONNECTED, RUNS_CHANGED, change_notifications

from trunkline.api.event_streams import RunsChangedStream
from trunkline.api.resources.runs import RunPage, RunSummary
from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, simple_error, simple_success

pytestmark = pytest.mark.anyio

ONE: JsonObject = {"name": "weather", "steps": {"ask": {"agent": "A"}}}
TWO: JsonObject = {
    "name": "weather",
    "steps": {"ask": {"agent": "A"}, "tell": {"agent": "B"}, "again": {"agent": "A"}},
}
OTHER: JsonObject = {"name": "Wealth", "steps": {"ask": {"agent": "C"}}}
ABOVE: JsonObject = {"name": "above", "steps": {"inner": {"workflow": "weather", "version": 1}}}


@pytest.fixture
async def agent(system: RunningSystem) -> AsyncGenerator[ScriptedAgent]:
    async with ScriptedAgent(simple_success({"text": "done"})) as agent:
        for name in ("A", "B", "C"):
            await system.register(name, agent.url, protocol="simple-a2a")
        for definition in (ONE, TWO, OTHER, ABOVE):
            await system.save(definition)
        yield agent


async def listed(system: RunningSystem, **query: str | list[str] | int) -> list[RunSummary]:
    answer = await system.call("GET", f"/runs?{urlencode(query, doseq=True)}")
    assert answer.status == 200, answer.body
    return read_resource(RunPage, answer.body)["items"]


async def ids(system: RunningSystem, **query: str | list[str] | int) -> list[str]:
    return [run["id"] for run in await listed(system, **query)]


async def made(system: RunningSystem, workflow: str) -> str:
    return str((await system.run(workflow))["id"])


async def test_runs_are_found_by_state_agent_text_and_time(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    old = str((await system.call("POST", "/workflows/weather/execute?version=1&wait=60", {})).json["id"])
    new = await made(system, "weather")
    other = await made(system, "Wealth")
    agent.script(simple_error("no"))
    failed = await made(system, "Wealth")
    assert await ids(system, status=["FAILED", "COMPLETED"]) == [failed, other, new, old]
    assert await ids(system, status="FAILED") == await ids(system, status=["FAILED", "PAUSED"]) == [failed]
    assert await ids(system, agent="A") == [new, old]
    assert await ids(system, agent="B") == [new]
    assert await ids(system, agent="C", status="COMPLETED") == [other]
    assert await ids(system, agent="A", workflow="Wealth") == await ids(system, agent="nobody") == []
    assert await ids(system, q="WEA") == [failed, other, new, old]
    assert await ids(system, q="weat") == [new, old]
    assert await ids(system, q="wea", status="FAILED") == await ids(system, q="wealth", limit=1) == [failed]
    assert await ids(system, q=new) == await ids(system, q=new[:30].upper()) == [new]
    assert await ids(system, q=new[:9], workflow="Wealth", agent="C") == [failed, other]
    assert await ids(system, q="EATHER") == [new, old]
    assert await ids(system, q=new[1:]) == []
    every = await listed(system)
    assert [run["agents"] for run in every] == [["C"], ["C"], ["A", "B"], ["A"]]
    begun = {run["id"]: run["created_at"] for run in every}
    assert await ids(system, since=begun[new], until=begun[failed]) == [other, new]
    assert await ids(system, since=begun[new], status="FAILED") == [failed]
    after = (datetime.fromisoformat(begun[failed]) + timedelta(seconds=1)).isoformat()
    assert await ids(system, since=after) == []
    assert await ids(system, until=after, q="weather", agent="B") == [new]


async def test_pages_of_a_search_join_to_the_whole(system: RunningSystem, agent: ScriptedAgent) -> None:
    for workflow in ("weather", "Wealth", "weather"):
        await made(system, workflow)
    asked = {"q": "wea", "status": ["COMPLETED", "FAILED"], "limit": 1}
    seen: list[str] = []
    path: str | None = f"/runs?{urlencode(asked, doseq=True)}"
    while path is not None:
        page = read_resource(RunPage, (await system.call("GET", path)).body)
        seen += [run["id"] for run in page["items"]]
        path = (
            page["next_cursor"] and f"/runs?{urlencode({**asked, 'cursor': page['next_cursor']}, doseq=True)}"
        )
    assert seen == await ids(system)
    assert len(seen) == 3


async def test_a_correlation_id_finds_the_runs_that_have_it(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    await made(system, "weather")
    headers = {"X-Correlation-ID": "order-7/b"}
    run = (await system.call("POST", "/workflows/above/execute?wait=60", {}, headers=headers)).json
    found = await listed(system, q="order-7/b")
    assert [item["workflow"]["name"] for item in found if item["id"] == run["id"]] == ["above"]
    assert {item["workflow"]["name"] for item in found} == {"above", "weather"}
    assert await ids(system, q="order-7") == []


async def test_children_are_listed_unless_they_are_not_wanted(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    above = await made(system, "above")
    every = await listed(system)
    (child,) = [run for run in every if run.get("parent") is not None]
    assert {run["id"] for run in every} == {above, child["id"]}
    assert child.get("parent") == {"run_id": above, "step": "inner"}
    assert await ids(system, children="false") == await ids(system, children="false", q="a") == [above]
    assert await ids(system, parent=above) == await ids(system, parent=above, agent="A") == [child["id"]]
    assert (
        await ids(system, children="false", workflow="weather") == await ids(system, parent=child["id"]) == []
    )
    assert await ids(system, parent="nobody") == []


async def test_a_list_has_inputs_and_outputs_on_request(system: RunningSystem, agent: ScriptedAgent) -> None:
    await made(system, "weather")
    (run,) = await system.items("/runs?payloads=true")
    (light,) = await system.items("/runs")
    assert {*run} - {*light} == {"input", "output"}
    assert {name: run[name] for name in light} == light


@pytest.mark.parametrize(
    "query", ["status=DONE", "since=yesterday", "until=2026-01-01T00:00:00", "q=", "children=perhaps"]
)
async def test_what_cannot_be_asked_is_refused_with_the_place(
    shared_system: RunningSystem, query: str
) -> None:
    answer = await shared_system.call("GET", f"/runs?{query}")
    assert answer.status == 422
    assert query.partition("=")[0] in str(answer.json["errors"])


async def test_a_notification_wakes_watchers_of_a_run_that_begins_and_ends(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    notifications = change_notifications(system)
    assert await anext(notifications) == CONNECTED
    run = await system.start("weather")
    assert await anext(notifications) == RUNS_CHANGED
    await system.wait_for(run)
    # The end may have come while the first ring was on its way; then it is what the next one is for.
    assert await anext(notifications) == RUNS_CHANGED
    await system.start("weather")
    assert await anext(notifications) == RUNS_CHANGED
    await notifications.aclose()


async def test_the_change_stream_ends_when_the_process_is_asked_to_stop(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    notifications = change_notifications(system)
    assert await anext(notifications) == CONNECTED
    system.embedded.stopping.set()
    assert [line async for line in notifications if line != RUNS_CHANGED] == []


async def test_a_change_stream_without_changes_sends_keep_alive_comments(system: RunningSystem) -> None:
    pinged = asyncio.Event()

    async def send(message: Message) -> None:
        if message.get("body") == b": ping\n\n":
            pinged.set()

    async def receive() -> Message:
        await pinged.wait()
        return {"type": "http.disconnect"}

    await RunsChangedStream(system.embedded.api, ping_after=0.01)({}, receive, send)
    assert pinged.is_set()
