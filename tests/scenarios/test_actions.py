"""Steps that do something without a call, in the whole system: they compute values, and sleep across restarts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from trunkline.jsontypes import JsonObject
from trunkline.testing import FakeClock, RunningSystem, running_system
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

INVOICE: JsonObject = {
    "name": "invoice",
    "steps": {
        "sum": {"set": {"total": "${ input.price * input.amount }", "note": "for ${ input.name }"}},
        "lines": {"for_each": "${ input.lines }", "set": {"line": "${ index }: ${ item }"}},
        "pause": {"sleep": "1ms", "needs": ["sum"]},
        "late": {"sleep": {"until": "2020-01-01T00:00:00+01:00"}, "needs": ["pause"]},
    },
    "output": {"sum": "${ steps.sum.output.total }", "lines": "${ steps.lines.output }"},
}


async def test_a_workflow_without_a_call_computes_sleeps_and_ends(system: RunningSystem) -> None:
    await system.save(INVOICE)
    run = await system.run("invoice", {"price": 3, "amount": 14, "name": "Ada", "lines": ["x", "y"]})
    assert (run["status"], run["output"]) == (
        "COMPLETED", {"sum": 42, "lines": [{"line": "0: x"}, {"line": "1: y"}]},
    )  # fmt: skip
    assert step_of(run, "sum")["output"] == {"total": 42, "note": "for Ada"}
    assert [(step_of(run, name)["kind"], step_of(run, name)["agent"]) for name in ("sum", "pause")] == [
        ("set", ""), ("sleep", ""),
    ]  # fmt: skip


async def test_the_graph_names_the_kind_of_each_step(system: RunningSystem) -> None:
    await system.save(INVOICE)
    graph = (await system.call("GET", "/workflows/invoice/graph")).json
    assert isinstance(graph["steps"], list)
    kinds = [(step["kind"], step["agent"]) for step in graph["steps"] if isinstance(step, dict)]
    assert kinds == [("set", None), ("set", None), ("sleep", None), ("sleep", None)]


@pytest.mark.embedded_only
async def test_a_sleep_survives_a_restart_and_ends_at_its_time(tmp_path: Path) -> None:
    clock = FakeClock()
    nap: JsonObject = {
        "name": "nap",
        "steps": {"sleep": {"sleep": "2h"}, "after": {"set": {"x": 1}, "needs": ["sleep"]}},
    }
    async with running_system(tmp_path, clock=clock) as system:
        await system.save(nap)
        run_id = await system.start("nap")
        await system.wait_for_step(run_id, "sleep", {"WAITING"})
    async with running_system(tmp_path, clock=clock) as system:
        run = await system.get(run_id)
        waiting = step_of(run, "sleep")["waiting_for"]
        assert isinstance(waiting, dict)
        assert (run["status"], waiting["kind"], waiting["until"]) == (
            "RUNNING", "time", "2026-01-01T02:00:00.000000Z",
        )  # fmt: skip
        clock.advance(timedelta(hours=2))
        run = await system.wait_for(run_id)
        assert (run["status"], run["output"]) == ("COMPLETED", {"x": 1})
        assert step_of(run, "sleep")["finished_at"] == "2026-01-01T02:00:00.000000Z"


async def test_a_sleeping_run_is_paused_resumed_and_cancelled_with_its_children(
    system: RunningSystem,
) -> None:
    await system.save({"name": "nap", "steps": {"sleep": {"sleep": "2h"}}})
    await system.save({"name": "outer", "steps": {"nap": {"workflow": "nap"}}})
    run_id = await system.start("outer")
    child = step_of({"steps": [await system.wait_for_step(run_id, "nap", {"RUNNING"})]}, "nap")["child"]
    assert isinstance(child, dict)
    await system.wait_for_step(str(child["run_id"]), "sleep", {"WAITING"})
    await system.call("POST", f"/runs/{run_id}/pause")
    await system.wait_for(str(child["run_id"]), {"PAUSED"})
    await system.call("POST", f"/runs/{run_id}/resume")
    await system.wait_for(str(child["run_id"]), {"RUNNING"})
    await system.call("POST", f"/runs/{run_id}/cancel")
    assert (await system.wait_for(run_id))["status"] == "CANCELLED"
    assert (await system.get(str(child["run_id"])))["status"] == "CANCELLED"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ({"s": {"sleep": "soon"}}, "'soon' is not a duration"),
        ({"s": {"set": {"x": "${ 1 + }"}}}, "incomplete"),
    ],
)
async def test_a_mistake_is_reported_when_the_workflow_is_saved(
    system: RunningSystem, steps: JsonObject, message: str
) -> None:
    answer = await system.call("POST", "/workflows", {"name": "w", "steps": steps})
    assert answer.status == 422
    (error,) = answer.json["errors"] if isinstance(answer.json["errors"], list) else []
    assert isinstance(error, dict)
    assert message in str(error["message"])
    assert isinstance(error["line"], int)
