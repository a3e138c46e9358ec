"""Bulk operations: one action on all runs that match a filter, as a job with progress."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem
from trunkline.testing.system import objects_in

pytestmark = pytest.mark.anyio

SLEEPING: JsonObject = {"name": "sleeping", "steps": {"sleep": {"sleep": "2h"}, "b": {"set": {"x": 1}}}}
QUICK: JsonObject = {"name": "quick", "steps": {"a": {"set": {"x": 1}}}}
FAILING: JsonObject = {"name": "failing", "steps": {"a": {"set": {"x": "${ input.missing }"}}}}
PARENT: JsonObject = {"name": "parent", "steps": {"a": {"workflow": "quick"}}}
ENDED = {"COMPLETED", "CANCELLED", "FAILED"}


@pytest.fixture
async def ready(shared_system: RunningSystem) -> RunningSystem:
    for workflow in (SLEEPING, QUICK, FAILING, PARENT):
        await shared_system.save(workflow)
    return shared_system


async def start(system: RunningSystem, workflow: str, batch: str, count: int = 1) -> list[str]:
    path = f"/workflows/{workflow}/execute?label=batch:{batch}"
    answers = await asyncio.gather(*(system.call("POST", path, {}) for _ in range(count)))
    assert {answer.status for answer in answers} == {202}
    return [str(answer.json["id"]) for answer in answers]


async def started(system: RunningSystem, workflow: str, batch: str, status: str, count: int = 1) -> list[str]:
    """Runs that have come to a status."""
    runs = await start(system, workflow, batch, count)
    for run in runs:
        await system.wait_for(run, {status})
    return runs


async def ask(system: RunningSystem, action: str, where: JsonObject, **more: Json) -> JsonObject:
    answer = await system.call("POST", "/runs/bulk", {"action": action, "filter": where, **more})
    assert answer.status == 202, answer.body
    return answer.json


async def do(system: RunningSystem, action: str, where: JsonObject, **more: Json) -> JsonObject:
    """Starts a bulk operation; the job as it ends."""
    job = await ask(system, action, where, **more)
    return await ended(system, str(job["id"]))


async def ended(system: RunningSystem, job_id: str) -> JsonObject:
    while True:
        job = (await system.call("GET", f"/jobs/{job_id}")).json
        if job["status"] in ENDED:
            return job
        await asyncio.sleep(0.01)


async def found(system: RunningSystem, query: str) -> set[str]:
    return {str(run["id"]) for run in await system.items(f"/runs?{query}")}


async def test_a_filtered_cancel_ends_the_runs_that_match_and_no_other(ready: RunningSystem) -> None:
    runs = await started(ready, "sleeping", "c1", "RUNNING", 5)
    (other,) = await started(ready, "sleeping", "c2", "RUNNING")
    await started(ready, "quick", "c1", "COMPLETED")
    job = await do(ready, "cancel", {"label": "batch:c1", "workflow": "sleeping"})
    assert [job[name] for name in ("status", "total", "processed", "succeeded", "failed")] == [
        "COMPLETED", 5, 5, 5, 0,
    ]  # fmt: skip
    assert job["filter"] == {"label": ["batch:c1"], "workflow": "sleeping"}
    for run in runs:
        assert (await ready.wait_for(run))["status"] == "CANCELLED"
    assert await found(ready, "label=batch:c2&status=RUNNING") == {other}


async def test_a_dry_run_counts_and_changes_nothing(ready: RunningSystem) -> None:
    runs = await started(ready, "sleeping", "d1", "RUNNING", 3)
    job = await do(ready, "cancel", {"label": ["batch:d1"]}, dry_run=True)
    assert [job[name] for name in ("status", "dry_run", "total", "processed")] == ["COMPLETED", True, 3, 0]
    assert await found(ready, "label=batch:d1&status=RUNNING") == set(runs)


async def test_runs_are_paused_and_resumed(ready: RunningSystem) -> None:
    runs = await started(ready, "sleeping", "p1", "RUNNING", 3)
    assert (await do(ready, "pause", {"label": {"batch": "p1"}}))["succeeded"] == 3
    for run in runs:
        await ready.wait_for(run, {"PAUSED"})
    assert (await do(ready, "pause", {"label": "batch:p1"}))["total"] == 0
    assert (await do(ready, "resume", {"label": "batch:p1", "status": "PAUSED"}))["succeeded"] == 3
    for run in runs:
        await ready.wait_for(run, {"RUNNING"})


async def test_failed_runs_are_retried_once_each(ready: RunningSystem) -> None:
    runs = await started(ready, "failing", "r1", "FAILED", 3)
    await started(ready, "quick", "r1", "COMPLETED")
    job = await do(ready, "retry", {"label": "batch:r1"})
    assert (job["total"], job["succeeded"]) == (3, 3)
    retries = await found(ready, "label=batch:r1&workflow=failing") - set(runs)
    ends = [await ready.wait_for(run) for run in retries]
    assert sorted(str(run["retry_of"]) for run in ends) == sorted(runs)
    assert all(run["status"] == "FAILED" for run in ends)


async def test_labels_are_set_and_removed_also_of_finished_runs(ready: RunningSystem) -> None:
    runs = await started(ready, "quick", "l1", "COMPLETED", 3)
    job = await do(ready, "label", {"label": "batch:l1"}, labels={"batch": None, "team": "l1"})
    assert (job["succeeded"], job["labels"]) == (3, {"batch": None, "team": "l1"})
    assert await found(ready, "label=team:l1") == set(runs)
    assert await found(ready, "label=batch:l1") == set()


async def test_a_label_that_is_one_too_many_is_a_failure_of_that_run(ready: RunningSystem) -> None:
    (full, other) = await started(ready, "quick", "l2", "COMPLETED", 2)
    many: JsonObject = {f"k{number}": "x" for number in range(19)}
    assert (await ready.call("PATCH", f"/runs/{full}", {"labels": {**many}})).status == 200
    job = await do(ready, "label", {"label": "batch:l2"}, labels={"new": "x"})
    assert (job["succeeded"], job["failed"]) == (1, 1)
    (failure,) = objects_in(job["failures"])
    assert failure["run_id"] == full
    assert "20" in str(failure["message"])
    assert await found(ready, "label=new:x") == {other}


async def test_deleted_runs_are_gone_with_their_children(ready: RunningSystem) -> None:
    runs = await started(ready, "parent", "x1", "COMPLETED", 2)
    children = {str(run["id"]) for each in runs for run in await ready.items(f"/runs?parent={each}")}
    assert len(children) == 2
    (going,) = await started(ready, "sleeping", "x1", "RUNNING")
    job = await do(ready, "delete", {"label": "batch:x1"})
    assert (job["total"], job["succeeded"], job["failed"]) == (2, 2, 0)
    for run in (*runs, *children):
        assert (await ready.call("GET", f"/runs/{run}")).status == 404
    assert await found(ready, "label=batch:x1") == {going}


async def test_more_runs_than_a_page_are_each_acted_on_once(ready: RunningSystem) -> None:
    runs = await start(ready, "sleeping", "many", 230)
    job = await do(ready, "cancel", {"label": "batch:many"})
    assert (job["total"], job["succeeded"]) == (230, 230)
    for run in runs:
        assert (await ready.wait_for(run))["status"] == "CANCELLED"
    entries = await ready.items(f"/audit?kind=job&subject={job['id']}")
    assert [(entry["action"], entry["detail"]) for entry in entries] == [("start", {"operation": "cancel"})]
    (entry,) = await ready.items(f"/audit?kind=run&subject={runs[0]}")
    assert (entry["action"], entry["detail"]) == ("cancel", {"job": job["id"]})


async def test_jobs_are_listed_from_the_newest(ready: RunningSystem) -> None:
    first = await do(ready, "cancel", {"label": "batch:none"})
    second = await do(ready, "pause", {"workflow": "no such workflow"})
    assert (second["status"], second["total"]) == ("COMPLETED", 0)
    assert [job["id"] for job in (await ready.items("/jobs"))[:2]] == [second["id"], first["id"]]


async def test_a_job_that_has_ended_cannot_be_cancelled(ready: RunningSystem) -> None:
    job = await do(ready, "cancel", {"label": "batch:none"})
    answer = await ready.call("POST", f"/jobs/{job['id']}/cancel")
    assert answer.status == 409
    assert "COMPLETED" in str(answer.json["detail"])
    assert (await ready.call("POST", "/jobs/none/cancel")).status == 404
    assert (await ready.call("GET", "/jobs/none")).status == 404


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"action": "cancel", "filter": {}}, "filter"),
        ({"action": "cancel", "filter": {"label": "batch"}}, "filter.label.0"),
        ({"action": "cancel", "filter": {"status": "COMPLETED"}}, "filter.status"),
        ({"action": "delete", "filter": {"status": ["COMPLETED", "RUNNING"]}}, "filter.status"),
        ({"action": "cancel", "filter": {"created_before": "yesterday"}}, "filter.created_before"),
        ({"action": "label", "filter": {"workflow": "quick"}}, "labels"),
        ({"action": "label", "filter": {"workflow": "quick"}, "labels": {"a b": "x"}}, "labels.a b"),
        ({"action": "pause", "filter": {"workflow": "quick"}, "labels": {"a": "x"}}, "labels"),
        ({"action": "explode", "filter": {"workflow": "quick"}}, "action"),
        ({"action": "cancel", "filter": {"workflows": "quick"}}, "filter"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused_with_its_place(
    ready: RunningSystem, body: JsonObject, path: str
) -> None:
    before = await ready.items("/jobs")
    answer = await ready.call("POST", "/runs/bulk", body)
    assert answer.status == 422, answer.body
    assert objects_in(answer.json["errors"])[0]["path"] == path
    assert answer.json["fix"]
    assert await ready.items("/jobs") == before
