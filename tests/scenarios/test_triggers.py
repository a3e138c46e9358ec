"""Triggers through REST: saved, fired by their schedules and by hand, and the history of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, simple_success
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

WORKFLOW = """
name: report
input: {type: object, properties: {n: {type: integer}}}
steps: {work: {agent: A}}
"""
HOURLY: JsonObject = {"name": "hourly", "workflow": "report", "schedule": {"every": "1h"}}


@pytest.fixture
async def ready(system: RunningSystem) -> AsyncGenerator[RunningSystem]:
    async with ScriptedAgent(simple_success({})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        await system.save(WORKFLOW)
        yield system


async def firings(system: RunningSystem, name: str, count: int) -> list[JsonObject]:
    """As soon as there are so many, oldest first."""
    while len(found := await system.items(f"/triggers/{name}/firings")) < count:
        await asyncio.sleep(0.05)
    return found[::-1]


async def test_a_schedule_starts_runs_by_itself(ready: RunningSystem) -> None:
    body: JsonObject = {
        "name": "often",
        "workflow": "report",
        "input": {"n": 7, "at": "${ trigger.scheduled_at }"},
        "schedule": {"every": "1s", "overlap": "allow", "catch_up": "all"},
    }
    created = await ready.call("POST", "/triggers", body)
    assert created.status == 201
    assert created.headers["Location"] == "/api/v1/triggers/often"
    found = await firings(ready, "often", 3)
    assert (await ready.call("POST", "/triggers/often/pause")).json["enabled"] is False
    for firing in found[:3]:
        assert firing["outcome"] == "started"
        assert str(firing["at"]) >= str(firing["scheduled_at"])
        run = await ready.wait_for(str(firing["run_id"]))
        assert (run["status"], run["trigger"], run["started_by"]) == ("COMPLETED", "often", "trigger:often")
        assert run["input"] == {"n": 7, "at": firing["scheduled_at"]}
    times = [datetime.fromisoformat(str(firing["scheduled_at"])) for firing in found]
    assert [later - earlier for earlier, later in pairwise(times)] == [timedelta(seconds=1)] * (
        len(times) - 1
    )


async def test_firings_that_wait_for_the_run_before_start_when_it_ends(ready: RunningSystem) -> None:
    body: JsonObject = {"name": "q", "workflow": "report", "schedule": {"every": "1s", "overlap": "queue"}}
    assert (await ready.call("POST", "/triggers", body)).status == 201
    found = await firings(ready, "q", 4)
    assert (await ready.call("POST", "/triggers/q/pause")).status == 200
    assert {str(firing["outcome"]) for firing in found} <= {"started", "queued"}
    assert found[0]["outcome"] == "started"


async def test_a_trigger_is_fired_by_hand_once_for_a_key(ready: RunningSystem) -> None:
    assert (await ready.call("POST", "/triggers", HOURLY)).status == 201
    key = {"Idempotency-Key": "k"}
    first = await ready.call("POST", "/triggers/hourly/fire", {"input": {"n": 1}}, key)
    again = await ready.call("POST", "/triggers/hourly/fire", {"input": {"n": 1}}, key)
    assert (first.status, again.status) == (202, 202)
    assert first.json["id"] == again.json["id"]
    assert first.headers["Location"] == f"/api/v1/runs/{first.json['id']}"
    assert (await ready.call("POST", "/triggers/hourly/fire", {"input": {"n": 2}}, key)).status == 422
    assert (await ready.call("POST", "/triggers/hourly/fire", {"input": {"n": "x"}})).status == 422
    unnamed = await ready.call("POST", "/triggers/hourly/fire")
    assert unnamed.json["input"] == {}
    found = await firings(ready, "hourly", 2)
    assert [(firing["scheduled_at"], firing["run_id"]) for firing in found] == [
        (None, first.json["id"]),
        (None, unnamed.json["id"]),
    ]


async def test_a_past_period_is_filled_once(ready: RunningSystem) -> None:
    assert (await ready.call("POST", "/triggers", HOURLY)).status == 201
    end = datetime.now(UTC).replace(minute=30, second=0, microsecond=0) - timedelta(hours=2)
    period: JsonObject = {"from": (end - timedelta(hours=3)).isoformat(), "to": end.isoformat()}
    first = await ready.call("POST", "/triggers/hourly/backfill", period)
    again = await ready.call("POST", "/triggers/hourly/backfill", period)
    runs = objects_in(first.json["items"])
    assert [run["created"] for run in runs] == [True] * 3
    assert objects_in(again.json["items"]) == [{**run, "created": False} for run in runs]
    assert len(await ready.items("/triggers/hourly/firings")) == 3
    too_long: JsonObject = {"from": (end - timedelta(days=60)).isoformat(), "to": end.isoformat()}
    assert (await ready.call("POST", "/triggers/hourly/backfill", too_long)).status == 422


async def test_a_trigger_is_listed_changed_and_deleted(ready: RunningSystem) -> None:
    created = (await ready.call("POST", "/triggers", HOURLY)).json
    assert len(created["next_firings"]) == 10  # pyright: ignore[reportArgumentType] - a list
    assert (await ready.call("POST", "/triggers", HOURLY)).status == 409
    unchanged = await ready.call("PUT", "/triggers/hourly", HOURLY)
    assert (unchanged.status, unchanged.json["updated_at"]) == (200, created["updated_at"])
    yaml = b"name: hourly\nworkflow: report\nschedule: {cron: 0 9 * * MON, timezone: Europe/Berlin}\n"
    changed = await ready.call("PUT", "/triggers/hourly", yaml)
    assert changed.json["schedule"] == {
        "cron": "0 9 * * MON",
        "timezone": "Europe/Berlin",
        "overlap": "skip",
        "catch_up": "last",
        "catch_up_window": "1d",
    }
    assert (await ready.call("PUT", "/triggers/other", HOURLY)).status == 422
    assert (await ready.call("PUT", "/triggers/daily", {**HOURLY, "name": "daily"})).status == 201
    assert [trigger["name"] for trigger in await ready.items("/triggers?limit=1")] == ["daily", "hourly"]
    assert (await ready.call("DELETE", "/triggers/daily")).status == 204
    assert (await ready.call("GET", "/triggers/daily")).status == 404
    assert (await ready.call("POST", "/triggers/daily/fire")).status == 404


async def test_a_wrong_trigger_is_refused_with_line_and_column(ready: RunningSystem) -> None:
    yaml = b"name: a\nworkflow: nothing\nschedule: {every: 1h}\n"
    (finding,) = objects_in((await ready.call("POST", "/triggers", yaml)).json["errors"])
    assert (finding["path"], finding["line"], finding["column"]) == ("workflow", 2, 11)
    yaml = b"name: a\nworkflow: report\nschedule: {every: 1h}\ninput: {n: x}\n"
    (finding,) = objects_in((await ready.call("POST", "/triggers", yaml)).json["errors"])
    assert (finding["path"], finding["line"]) == ("input", 4)
    (finding,) = objects_in(
        (await ready.call("POST", "/schedule-preview", b"{cron: 0 25 * * *}")).json["errors"]
    )
    assert (finding["line"], finding["column"]) == (1, 10)


async def test_a_schedule_is_previewed_without_being_saved(ready: RunningSystem) -> None:
    shown = await ready.call("POST", "/schedule-preview", {"cron": "0 0 1 1 *", "timezone": "Asia/Tokyo"})
    times = shown.json["firings"]
    assert isinstance(times, list)
    assert len(times) == 10
    assert all(str(time).endswith("-12-31T15:00:00.000000Z") for time in times)
    assert await ready.items("/triggers") == []


async def test_an_event_starts_a_run_and_its_end_another(ready: RunningSystem) -> None:
    paid: JsonObject = {
        "name": "paid",
        "workflow": "report",
        "event": {"type": "payment.received", "filter": "event.data.amount > 5"},
        "input": {"n": "${ event.data.amount }"},
    }
    created = await ready.call("POST", "/triggers", paid)
    assert (created.status, created.json["event"]) == (
        201,
        {"type": ["payment.received"], "filter": "event.data.amount > 5"},
    )
    following: JsonObject = {
        "name": "following",
        "workflow": "after",
        "run": {"workflow": "report", "status": ["COMPLETED", "FAILED"]},
        "input": {"report": "${ run.id }", "status": "${ run.status }"},
    }
    assert (await ready.call("POST", "/triggers", following)).status == 422
    await ready.save("{name: after, steps: {work: {set: {status: '${ input.status }'}}}}")
    assert (await ready.call("POST", "/triggers", following)).json["run"] == {
        "workflow": "report",
        "status": ["COMPLETED", "FAILED"],
    }
    for number, amount in enumerate([5, 6, 6]):
        event: JsonObject = {
            "type": "payment.received",
            "id": str(min(number, 1)),
            "data": {"amount": amount},
        }
        assert (await ready.call("POST", "/events", event)).status == 202
    (started,) = [each for each in await firings(ready, "paid", 2) if each["outcome"] == "started"]
    first = await ready.wait_for(str(started["run_id"]))
    assert (first["input"], first["trigger"], first["started_by"]) == ({"n": 6}, "paid", "trigger:paid")
    (firing,) = await firings(ready, "following", 1)
    second = await ready.wait_for(str(firing["run_id"]))
    assert second["input"] == {"report": first["id"], "status": "COMPLETED"}
    assert second["correlation_id"] == first["correlation_id"]
    outcomes = [str(each["outcome"]) for each in await ready.items("/triggers/paid/firings")]
    assert sorted(outcomes) == ["filtered", "started"]


@pytest.mark.parametrize(
    ("source", "path", "line", "column"),
    [
        ("event: {}", "event", 3, 8),
        ("event: {type: 5}", "event.type", 3, 15),
        ("event: {type: a, filter: 'event.data.('}", "event.filter", 3, 38),
        ("event: {type: a, filter: 'request.body'}", "event.filter", 3, 27),
        ("event: {type: a, idempotency_key: '${ run.id }'}", "event.idempotency_key", 3, 39),
        ("event: {typ: a}", "event.typ", 3, 9),
        ("run: {workflow: nothing}", "run.workflow", 3, 17),
        ("run: {workflow: report, status: STARTED}", "run.status", 3, 33),
        ("run: {status: FAILED}", "run", 3, 6),
    ],
)
@pytest.mark.embedded_only
async def test_a_wrong_source_is_refused_with_line_and_column(
    ready: RunningSystem, source: str, path: str, line: int, column: int
) -> None:
    answer = await ready.call("POST", "/triggers", f"name: a\nworkflow: report\n{source}\n".encode())
    places = [(found["path"], found["line"], found["column"]) for found in objects_in(answer.json["errors"])]
    assert (path, line, column) in places, answer.body


async def test_runs_of_a_trigger_go_on_one_at_a_time(ready: RunningSystem) -> None:
    await ready.save("{name: waits, steps: {wait: {wait_for: {signal: go}}}}")
    body: JsonObject = {
        "name": "one-by-one",
        "workflow": "waits",
        "event": {"type": "order"},
        "input": {"customer": "${ event.key }"},
        "concurrency": {"key": "input.customer", "limit": 1},
        "throttle": "100/s",
        "priority": 2,
    }
    created = await ready.call("POST", "/triggers", body)
    assert (created.status, created.json["concurrency"], created.json["throttle"], created.json["priority"]) == (
        201, {"key": "input.customer", "limit": 1, "on_limit": "queue"}, "100/s", 2,
    )  # fmt: skip
    for number, key in enumerate(["a", "a", "b"]):
        event: JsonObject = {"type": "order", "id": str(number), "key": key}
        assert (await ready.call("POST", "/events", event)).status == 202
        await firings(ready, "one-by-one", number + 1)
    runs = [str(firing["run_id"]) for firing in await firings(ready, "one-by-one", 3)]
    for going in (runs[0], runs[2]):
        await ready.wait_for_step(going, "wait", {"WAITING"})
    while (
        not isinstance(queued := (waiting := await ready.get(runs[1])).get("queued"), dict)
        or not queued["reason"]
    ):
        await asyncio.sleep(0.05)
    assert queued["reason"] == "concurrency"
    assert waiting["status"] == "PENDING"
    refused = await ready.call("POST", f"/runs/{runs[1]}/pause")
    assert (refused.status, "flow control" in str(refused.json["detail"])) == (409, True)
    assert f"trunkline runs cancel {runs[1]}" in str(refused.json["fix"])
    fired = (await ready.call("POST", "/triggers/one-by-one/fire", {"input": {"customer": "a"}})).json
    for run_id in (runs[0], runs[1], str(fired["id"]), runs[2]):
        await ready.wait_for_step(run_id, "wait", {"WAITING"})
        assert (await ready.call("POST", f"/runs/{run_id}/signals/go")).status == 202
        assert (await ready.wait_for(run_id))["status"] == "COMPLETED"
    assert "queued" not in await ready.get(runs[1])


@pytest.mark.parametrize(
    ("flow", "path", "line", "column"),
    [
        ("concurrency: {}", "concurrency", 4, 14),
        ("concurrency: {limit: 0}", "concurrency.limit", 4, 22),
        ("concurrency: {limit: 1, on_limit: wait}", "concurrency.on_limit", 4, 35),
        ("concurrency: {limit: 1, key: 'input.('}", "concurrency.key", 4, 37),
        ("concurrency: {limit: 1, key: event.key}", "concurrency.key", 4, 30),
        ("throttle: 10/d", "throttle", 4, 11),
        ("debounce: soon", "debounce", 4, 11),
        ("debounce: 2d", "debounce", 4, 11),
        ("debounce: {key: input.n}", "debounce", 4, 11),
        ("debounce: 30s by input.(", "debounce", 4, 24),
        ("priority: high", "priority", 4, 11),
    ],
)
@pytest.mark.embedded_only
async def test_wrong_flow_control_is_refused_with_line_and_column(
    ready: RunningSystem, flow: str, path: str, line: int, column: int
) -> None:
    text = f"name: a\nworkflow: report\nschedule: {{every: 1h}}\n{flow}\n"
    answer = await ready.call("POST", "/triggers", text.encode())
    places = [(found["path"], found["line"], found["column"]) for found in objects_in(answer.json["errors"])]
    assert (path, line, column) in places, answer.body


@pytest.mark.embedded_only
async def test_a_trigger_is_checked_without_being_saved_and_shown_as_it_can_be_saved(
    ready: RunningSystem,
) -> None:
    yaml = b"name: daily\nworkflow: report\nschedule: {cron: 0 9 * * *}\nconcurrency: {limit: 1}\n"
    checked = await ready.call("POST", "/trigger-validation", yaml)
    assert checked.status == 200
    assert len(checked.json["firings"]) == 10  # pyright: ignore[reportArgumentType] - a list
    assert (await ready.call("POST", "/trigger-validation", b"name: a\nworkflow: no\n")).status == 422
    assert await ready.items("/triggers") == []
    saved = (await ready.call("POST", "/triggers", yaml)).json
    again = await ready.call("PUT", "/triggers/daily", str(saved["yaml"]).encode())
    assert (again.status, again.json["updated_at"]) == (200, saved["updated_at"])
    hook: JsonObject = {
        "name": "hook",
        "workflow": "report",
        "version": 1,
        "webhook": {"verify": {"scheme": "none"}},
    }
    saved = (await ready.call("POST", "/triggers", hook)).json
    again = await ready.call("PUT", "/triggers/hook", str(saved["yaml"]).encode())
    assert (again.status, again.json["updated_at"]) == (200, saved["updated_at"])


@pytest.mark.embedded_only
async def test_what_fires_in_the_next_hours_is_listed(ready: RunningSystem) -> None:
    for name, schedule in (
        ("often", {"every": "1s"}),
        ("hourly", {"every": "1h"}),
        ("far", {"at": "2999-01-01"}),
    ):
        body: JsonObject = {"name": name, "workflow": "report", "schedule": {**schedule}}
        assert (await ready.call("POST", "/triggers", body)).status == 201
    shown = (await ready.call("GET", "/upcoming-firings?hours=3")).json
    found = {str(each["trigger"]): each for each in objects_in(shown["items"])}
    assert (shown["is_complete"], set(found)) == (True, {"often", "hourly"})
    assert len(found["hourly"]["firings"]) == 3  # pyright: ignore[reportArgumentType] - a list
    assert (len(found["often"]["firings"]), found["often"]["has_more"]) == (100, True)  # pyright: ignore[reportArgumentType] - as above
    await firings(ready, "often", 1)
    listed = {str(each["name"]): each["last_firing"] for each in await ready.items("/triggers")}
    assert isinstance(listed["often"], dict)
    assert listed["hourly"] is None
