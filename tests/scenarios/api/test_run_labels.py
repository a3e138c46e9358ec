"""Labels of runs through REST: set by the workflow and at the start, changed later, and searched."""

from __future__ import annotations

import pytest
from tests.scenarios.publishing.a2a_caller import A2ACaller, text

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem
from trunkline.testing.system import error_of, objects_in, step_of

pytestmark = pytest.mark.anyio

PLAIN: JsonObject = {
    "name": "order",
    "labels": {"customer": "${ input.customer }", "team": "billing"},
    "steps": {"a": {"set": {"x": 1}}},
}
EXECUTE = "/workflows/order/execute"


@pytest.fixture
async def ready(shared_system: RunningSystem) -> RunningSystem:
    await shared_system.save(PLAIN)
    return shared_system


async def start(system: RunningSystem, customer: Json, query: str = "") -> JsonObject:
    answer = await system.call("POST", f"{EXECUTE}?wait=30{query}", {"customer": customer})
    assert answer.status == 200, answer.body
    return answer.json


async def found(system: RunningSystem, query: str) -> list[str]:
    return [str(run["id"]) for run in await system.items(f"/runs?{query}")]


async def test_a_run_is_found_by_the_labels_of_its_workflow_and_of_its_start(ready: RunningSystem) -> None:
    one = await start(ready, "ann")
    two = await start(ready, "ann", "&label=team:sales&label=ref:a:1")
    assert one["labels"] == {"customer": "ann", "team": "billing"}
    assert two["labels"] == {"customer": "ann", "team": "sales", "ref": "a:1"}
    assert await found(ready, "label=customer:ann") == [two["id"], one["id"]]
    assert await found(ready, "label=customer:ann&label=team:sales") == [two["id"]]
    assert await found(ready, "label=ref:a:1&status=COMPLETED&workflow=order") == [two["id"]]
    assert await found(ready, "label=ref:a:1&status=FAILED") == []
    assert await found(ready, f"label=ref:a:1&q={one['id']}") == []
    listed = (await ready.call("GET", "/runs?label=customer:ann")).json
    assert [run["labels"] for run in objects_in(listed["items"])] == [two["labels"], one["labels"]]


async def test_labels_change_during_a_run_and_after_it(ready: RunningSystem) -> None:
    run = await start(ready, "bob")
    path = f"/runs/{run['id']}"
    changed = await ready.call("PATCH", path, {"labels": {"team": None, "state": "checked"}})
    assert (changed.status, changed.json["labels"]) == (200, {"customer": "bob", "state": "checked"})
    assert changed.json["last_seq"] == run["last_seq"]
    assert await found(ready, "label=state:checked") == [run["id"]]
    assert run["id"] not in await found(ready, "label=team:billing")
    entries = await ready.items("/audit?kind=run")
    assert [entry["detail"] for entry in entries if entry["subject"] == run["id"]] == [
        {"labels": {"team": None, "state": "checked"}}
    ]

    await ready.save({"name": "nap", "steps": {"sleep": {"sleep": "2h"}, "b": {"set": {"x": 1}}}})
    sleeping = await ready.start("nap")
    await ready.wait_for_step(sleeping, "sleep", {"WAITING"})
    assert (await ready.call("PATCH", f"/runs/{sleeping}", {"labels": {"note": "x"}})).status == 200
    await ready.call("POST", f"/runs/{sleeping}/cancel")
    assert (await ready.wait_for(sleeping))["labels"] == {"note": "x"}


async def test_a_label_that_cannot_be_one_is_refused_and_starts_nothing(ready: RunningSystem) -> None:
    before = await found(ready, "workflow=order")
    for query, path in (
        ("?label=customer", "query.label.0"),
        ("?label=a:x&label=b%20c:x", "query.label.1"),
        ("?label=a:x&label=a:y", "query.label.1"),
    ):
        answer = await ready.call("POST", EXECUTE + query, {"customer": "eve"})
        assert answer.status == 422
        assert [finding["path"] for finding in objects_in(answer.json["errors"])] == [path]
    many = "&".join(f"label=k{number}:x" for number in range(19))
    answer = await ready.call("POST", f"{EXECUTE}?{many}", {"customer": "eve"})
    assert (answer.status, answer.json["detail"]) == (422, "A run can have 20 labels, but these are 21.")
    answer = await ready.call("POST", EXECUTE, {"customer": ["eve"]})
    assert answer.status == 422
    assert [finding["path"] for finding in objects_in(answer.json["errors"])] == ["labels.customer"]
    assert await found(ready, "workflow=order") == before
    assert (await ready.call("GET", "/runs?label=customer")).status == 422


async def test_a_change_that_cannot_be_made_changes_nothing(ready: RunningSystem) -> None:
    run = await start(ready, "cid")
    path = f"/runs/{run['id']}"
    many: JsonObject = {f"k{number}": "x" for number in range(19)}
    refused: list[JsonObject] = [{"a b": "x"}, {"a": ""}, {"a": "x" * 256}, many]
    for labels in refused:
        assert (await ready.call("PATCH", path, {"labels": labels})).status == 422
    assert (await ready.call("PATCH", path, {"status": "FAILED"})).status == 422
    assert (await ready.get(str(run["id"])))["labels"] == run["labels"]
    missing = "/runs/018f0000-0000-7000-8000-000000000001"
    assert (await ready.call("PATCH", missing, {"labels": {"a": "x"}})).status == 404


async def test_a_retry_keeps_labels_and_computes_those_of_a_new_input(ready: RunningSystem) -> None:
    run = await start(ready, "dan", "&label=ref:1")
    await ready.call("PATCH", f"/runs/{run['id']}", {"labels": {"team": "sales"}})
    again = await ready.call("POST", f"/runs/{run['id']}/retry", {"from_start": True})
    assert again.json["labels"] == {"customer": "dan", "team": "sales", "ref": "1"}
    other = await ready.call("POST", f"/runs/{run['id']}/retry", {"input": {"customer": "dora"}})
    assert other.json["labels"] == {"customer": "dora", "team": "billing", "ref": "1"}


async def test_an_idempotency_key_belongs_to_the_labels_too(ready: RunningSystem) -> None:
    headers = {"Idempotency-Key": "labels-1"}
    one = await ready.call("POST", f"{EXECUTE}?label=ref:1", {"customer": "fay"}, headers)
    same = await ready.call("POST", f"{EXECUTE}?label=ref:1", {"customer": "fay"}, headers)
    other = await ready.call("POST", f"{EXECUTE}?label=ref:2", {"customer": "fay"}, headers)
    assert (one.json["id"], other.status) == (same.json["id"], 422)


async def test_a_child_run_has_the_labels_of_its_own_workflow(ready: RunningSystem) -> None:
    outer: JsonObject = {
        "name": "outer",
        "labels": {"kind": "outer"},
        "steps": {"inner": {"workflow": "order", "input": {"customer": "${ input.who }"}}},
    }
    await ready.save(outer)
    run = await ready.run("outer", {"who": "gil"})
    child = step_of(run, "inner")["child"]
    assert isinstance(child, dict)
    assert (await ready.get(str(child["run_id"])))["labels"] == {"customer": "gil", "team": "billing"}
    assert await found(ready, "label=kind:outer") == [run["id"]]
    failed = await ready.run("outer", {"who": ["gil"]})
    error = error_of(step_of(failed, "inner"))
    assert (failed["status"], error["code"]) == ("FAILED", "child_input_invalid")
    assert "labels.customer: the value of label 'customer' must be a string" in str(error["message"])


async def test_runs_of_triggers_have_the_labels_of_their_workflow(ready: RunningSystem) -> None:
    trigger: JsonObject = {
        "name": "nightly",
        "workflow": "order",
        "input": {"customer": "hal"},
        "schedule": {"every": "1d"},
    }
    assert (await ready.call("POST", "/triggers", trigger)).status == 201
    fired = await ready.call("POST", "/triggers/nightly/fire", {})
    assert fired.status == 202, fired.body
    (run,) = await ready.items("/runs?label=customer:hal")
    assert (run["trigger"], run["labels"]) == ("nightly", {"customer": "hal", "team": "billing"})


async def test_runs_of_a2a_callers_have_labels_that_can_read_the_message(
    shared_system: RunningSystem,
) -> None:
    await shared_system.save(
        {
            "name": "published",
            "labels": {"topic": "${ run.message.text }", "channel": "a2a"},
            "steps": {"a": {"set": {"x": 1}}},
            "publish": True,
        }
    )
    task = await A2ACaller(shared_system, "workflows/published").send(text("weather"))
    run = await shared_system.get(str(task["id"]))
    assert run["labels"] == {"topic": "weather", "channel": "a2a"}
