"""The process ends at every point of a firing, is started again, and each scheduled instant starts one run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest
from tests.crash.client import ServerGone, TrunklineClient
from tests.crash.crash_points import GATE_POINTS, KILLED, PENDING_FIRING_POINTS, TRIGGER_POINTS, point_in
from tests.crash.process_instances import ProcessInstance, ProcessStarter

from trunkline.jsontypes import JsonObject

pytestmark = pytest.mark.anyio

WORKFLOW = b"{name: ticking, steps: {work: {agent: missing}}}"
TRIGGER: JsonObject = {
    "name": "tick",
    "workflow": "ticking",
    "schedule": {"every": "1s", "overlap": "allow", "catch_up": "all"},
}


async def client_of(life: ProcessInstance, session: aiohttp.ClientSession) -> TrunklineClient:
    url = await life.ready
    assert url is not None
    return TrunklineClient(session, url)


async def firings(client: TrunklineClient, count: int) -> list[JsonObject]:
    """As soon as there are so many, oldest first."""
    async with asyncio.timeout(60):
        while len(found := await client.pages("/triggers/tick/firings")) < count:
            await asyncio.sleep(0.05)
    return found[::-1]


@pytest.mark.parametrize("point", [*TRIGGER_POINTS, "runs.insert", "commit.before", "commit.after"])
async def test_each_instant_starts_one_run_wherever_the_process_ends(
    point: str,
    tmp_path: Path,
    starter: ProcessStarter,
    session: aiohttp.ClientSession,
    mode_settings: Mapping[str, str],
) -> None:
    first = await starter.start(tmp_path / "data", settings=mode_settings)
    client = await client_of(first, session)
    await client.call("POST", "/workflows", WORKFLOW)
    await client.call("POST", "/triggers", TRIGGER)
    await firings(client, 1)
    await starter.end()
    # It catches up as it starts, so an occurrence comes by itself.
    second = await starter.start(tmp_path / "data", point_in(mode_settings, point), 2, mode_settings)
    async with asyncio.timeout(60):
        assert await second.ended == KILLED
    third = await starter.start(tmp_path / "data", settings=mode_settings)
    client = await client_of(third, session)
    found = await firings(client, 4)
    runs = await client.pages("/runs")
    await starter.end()
    times = [datetime.fromisoformat(str(firing["scheduled_at"])) for firing in found]
    assert times == [times[0] + timedelta(seconds=number) for number in range(len(times))]
    assert {str(firing["outcome"]) for firing in found} == {"started"}
    of_firings = [firing["run_id"] for firing in found]
    assert len(set(of_firings)) == len(of_firings)
    # Those that were started after the history was read are newer than all of it.
    newer = [str(run["id"]) for run in runs if run["id"] not in of_firings]
    assert len(runs) == len(of_firings) + len(newer)
    assert all(run_id > str(max(map(str, of_firings))) for run_id in newer)


@pytest.mark.parametrize("point", ["runs.insert", "triggers.put_firings", "commit.before", "commit.after"])
async def test_a_delivery_that_is_repeated_after_a_crash_starts_one_run(
    point: str,
    tmp_path: Path,
    starter: ProcessStarter,
    session: aiohttp.ClientSession,
    mode_settings: Mapping[str, str],
) -> None:
    client = await client_of(await starter.start(tmp_path / "data", settings=mode_settings), session)
    await client.call("POST", "/workflows", WORKFLOW)
    hook: JsonObject = {"name": "hook", "workflow": "ticking", "webhook": {"verify": {"scheme": "none"}}}
    webhook = (await client.call("POST", "/triggers", hook))["webhook"]
    assert isinstance(webhook, dict)
    await starter.end()
    life = await starter.start(tmp_path / "data", point_in(mode_settings, point), 1, mode_settings)
    client = await client_of(life, session)
    with pytest.raises(ServerGone):
        await client.raw("POST", str(webhook["url"]), {}, {"Idempotency-Key": "k"})
    assert await life.ended == KILLED
    client = await client_of(await starter.start(tmp_path / "data", settings=mode_settings), session)
    answers = {await client.raw("POST", str(webhook["url"]), {}, {"Idempotency-Key": "k"}) for _ in range(2)}
    found = await client.pages("/triggers/hook/firings")
    runs = await client.pages("/runs")
    await starter.end()
    assert len(runs) == len(found) == 1
    assert all(str(runs[0]["id"]).encode() in answer for answer in answers)


LISTENING: tuple[JsonObject, ...] = (
    {"name": "first", "workflow": "one", "event": {"type": "paid"}},
    {"name": "second", "workflow": "two", "run": {"workflow": "one"}},
)


@pytest.mark.parametrize(
    "point",
    ["received_events.put", *PENDING_FIRING_POINTS, "runs.insert", "triggers.put_firings", "commit.after"],
)
async def test_an_event_starts_one_run_and_its_end_one_more_wherever_the_process_ends(
    point: str,
    tmp_path: Path,
    starter: ProcessStarter,
    session: aiohttp.ClientSession,
    mode_settings: Mapping[str, str],
) -> None:
    client = await client_of(await starter.start(tmp_path / "data", settings=mode_settings), session)
    for name in ("one", "two"):
        await client.call(
            "POST", "/workflows", f"{{name: {name}, steps: {{work: {{set: {{n: 1}}}}}}}}".encode()
        )
    for trigger in LISTENING:
        await client.call("POST", "/triggers", trigger)
    await starter.end()
    life = await starter.start(tmp_path / "data", point_in(mode_settings, point), 1, mode_settings)
    client = await client_of(life, session)
    event: JsonObject = {"type": "paid", "id": "e"}
    with suppress(ServerGone):
        await client.call("POST", "/events", event)
    async with asyncio.timeout(60):
        assert await life.ended == KILLED
    client = await client_of(await starter.start(tmp_path / "data", settings=mode_settings), session)
    # Its sender does not know whether it has arrived.
    await client.call("POST", "/events", event)
    async with asyncio.timeout(60):
        while [run["workflow"] for run in await finished(client)] != ["two", "one"]:
            await asyncio.sleep(0.05)
    for name in ("first", "second"):
        assert [firing["outcome"] for firing in await client.pages(f"/triggers/{name}/firings")] == [
            "started"
        ]
    await starter.end()


LIMITS = "concurrency: {limit: 1}, throttle: 100/s"


@pytest.mark.parametrize("started_by", ["webhook", "request"])
@pytest.mark.parametrize("point", [*GATE_POINTS, "commit.after"])
async def test_runs_that_wait_for_one_another_all_end_wherever_the_process_ends(
    point: str,
    started_by: str,
    tmp_path: Path,
    starter: ProcessStarter,
    session: aiohttp.ClientSession,
    mode_settings: Mapping[str, str],
) -> None:
    client = await client_of(await starter.start(tmp_path / "data", settings=mode_settings), session)
    limits = f", {LIMITS}" if started_by == "request" else ""
    await client.call(
        "POST", "/workflows", f"{{name: one, steps: {{work: {{sleep: 10ms}}}}{limits}}}".encode()
    )
    url = "/api/v1/workflows/one/execute"
    if started_by == "webhook":
        trigger = f"{{name: t, workflow: one, webhook: {{verify: {{scheme: none}}}}, {LIMITS}}}"
        webhook = (await client.call("POST", "/triggers", trigger.encode()))["webhook"]
        assert isinstance(webhook, dict)
        url = str(webhook["url"])
    await starter.end()
    life = await starter.start(tmp_path / "data", point_in(mode_settings, point), 2, mode_settings)
    client = await client_of(life, session)
    for number in range(3):
        with suppress(ServerGone):
            await client.raw("POST", url, {}, {"Idempotency-Key": str(number)})
    async with asyncio.timeout(60):
        assert await life.ended == KILLED
    client = await client_of(await starter.start(tmp_path / "data", settings=mode_settings), session)
    for number in range(3):
        await client.raw("POST", url, {}, {"Idempotency-Key": str(number)})
    async with asyncio.timeout(60):
        while len(await finished(client)) < 3:
            await asyncio.sleep(0.05)
    runs = sorted(await client.pages("/runs"), key=lambda run: str(run["started_at"]))
    await starter.end()
    assert len(runs) == 3
    assert all(str(earlier["finished_at"]) <= str(later["started_at"]) for earlier, later in pairwise(runs))


async def finished(client: TrunklineClient) -> list[JsonObject]:
    """All runs, newest first, once they have ended; none while one goes on."""
    runs = await client.pages("/runs")
    if any(run["status"] != "COMPLETED" for run in runs):
        return []
    return [{"workflow": run["workflow"]["name"]} for run in runs if isinstance(run["workflow"], dict)]
