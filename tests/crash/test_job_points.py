"""The process ends at every point of a bulk operation, is started again, and acts on each run once."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from tests.crash.client import ServerGone, TrunklineClient
from tests.crash.crash_points import KILLED
from tests.crash.process_instances import ProcessStarter
from tests.crash.test_trigger_points import client_of

from trunkline.jsontypes import JsonObject

pytestmark = pytest.mark.anyio

WORKFLOW = b"{name: failing, steps: {bad: {set: {x: '${ input.missing.deep }'}}}}"
# More than a page of retries, and several pages of deletions.
RUNS = 120
WHERE: JsonObject = {"label": "batch:one", "status": "FAILED"}


async def start_runs(client: TrunklineClient) -> set[str]:
    await client.call("POST", "/workflows", WORKFLOW)
    path = "/workflows/failing/execute?wait=30&label=batch:one"
    runs = await asyncio.gather(*(client.call("POST", path, {}) for _ in range(RUNS)))
    return {str(run["id"]) for run in runs}


async def job_of(client: TrunklineClient, request: JsonObject) -> JsonObject:
    """The job, which is started unless an earlier life has done so, as it ends."""
    jobs = await client.pages("/jobs")
    job = jobs[0] if jobs else await client.call("POST", "/runs/bulk", request)
    async with asyncio.timeout(60):
        while job["status"] in {"QUEUED", "RUNNING"}:
            await asyncio.sleep(0.02)
            job = await client.call("GET", f"/jobs/{job['id']}")
    return job


async def crash_in(
    request: JsonObject,
    point: str,
    occurrence: int,
    data: Path,
    starter: ProcessStarter,
    session: aiohttp.ClientSession,
) -> tuple[set[str], JsonObject, TrunklineClient]:
    """The runs there were, the job at its end, and the client of the last life."""
    client = await client_of(await starter.start(data), session)
    runs = await start_runs(client)
    await starter.end()
    life = await starter.start(data, point, occurrence)
    client = await client_of(life, session)
    with suppress(ServerGone):
        await job_of(client, request)
    assert await life.ended == KILLED
    client = await client_of(await starter.start(data), session)
    return runs, await job_of(client, request), client


@pytest.mark.parametrize(
    ("point", "occurrence"),
    [
        ("jobs.put", 1),
        ("jobs.claim", 2),
        ("runs.insert", 2),
        ("jobs.write", 2),
        ("commit.before", 3),
        ("commit.after", 3),
    ],
)
async def test_each_run_is_retried_once_wherever_the_process_ends(
    point: str, occurrence: int, tmp_path: Path, starter: ProcessStarter, session: aiohttp.ClientSession
) -> None:
    request: JsonObject = {"action": "retry", "filter": WHERE}
    runs, job, client = await crash_in(request, point, occurrence, tmp_path / "data", starter, session)
    counts = [job[name] for name in ("status", "total", "succeeded", "failed")]
    new = {str(run["id"]) for run in await client.pages("/runs")} - runs
    retried = Counter([str((await client.run(run))["retry_of"]) for run in new])
    await starter.end()
    assert counts == ["COMPLETED", RUNS, RUNS, 0]
    assert retried == dict.fromkeys(runs, 1)


@pytest.mark.parametrize(
    ("point", "occurrence"), [("runs.delete_lowest", 2), ("jobs.write", 3), ("commit.after", 5)]
)
async def test_all_runs_are_deleted_and_counted_once_wherever_the_process_ends(
    point: str, occurrence: int, tmp_path: Path, starter: ProcessStarter, session: aiohttp.ClientSession
) -> None:
    request: JsonObject = {"action": "delete", "filter": WHERE}
    _, job, client = await crash_in(request, point, occurrence, tmp_path / "data", starter, session)
    left = await client.pages("/runs")
    await starter.end()
    assert [job[name] for name in ("status", "total", "succeeded", "failed")] == ["COMPLETED", RUNS, RUNS, 0]
    assert left == []
