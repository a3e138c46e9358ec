"""Answers made to exhaust the JSON Schema validator: the run fails, and the system goes on."""

from __future__ import annotations

import asyncio
import resource
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.workflow.test_bounded_schema import RECURSIVE, chain, doubling

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Call, RunningSystem, ScriptedAgent, running_system, simple_success
from trunkline.testing.system import error_of, objects_in

pytestmark = pytest.mark.anyio

CHILD: JsonObject = {
    "name": "child",
    "input": {**RECURSIVE},
    "steps": {"work": {"agent": "Worker", "input": {"text": "x"}}},
}
PARENT: JsonObject = {
    "name": "parent",
    "steps": {
        "ask": {"agent": "Worker", "input": {"text": "x"}},
        "inner": {"workflow": "child", "input": "${ steps.ask.output.data.nested }", "needs": ["ask"]},
    },
}


def peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


async def test_an_answer_that_can_be_read_in_millions_of_ways_fails_its_own_run(
    system: RunningSystem, capsys: pytest.CaptureFixture[str]
) -> None:
    before = peak_mib()
    async with ScriptedAgent(simple_success({"nested": chain(22, 1)})) as agent:
        await system.register("Worker", agent.url, protocol="simple-a2a")
        await system.save(CHILD)
        await system.save(PARENT)
        failed = await system.run("parent", {})
        answer = await system.call("POST", "/workflows/child/execute", chain(22, 1))
    with capsys.disabled():
        print(f"\n  peak memory grew by {peak_mib() - before} MiB")  # noqa: T201 - the figure is a result
    error = error_of(failed)
    assert (failed["status"], error["code"], error["step"]) == ("FAILED", "child_input_invalid", "inner")
    assert "does not match the schema; it is too large to say where" in str(error["message"])
    assert answer.status == 422
    assert peak_mib() - before < 200


async def test_a_schema_without_a_bounded_cost_is_not_saved(system: RunningSystem) -> None:
    answer = await system.call("POST", "/workflows", {**CHILD, "input": doubling(40)})
    assert answer.status == 422
    (finding,) = objects_in(answer.json["errors"])
    assert finding["path"] == "input"
    assert "its references lead to more than 10,000 parts" in str(finding["message"])


@pytest.mark.embedded_only(reason="A restart on the same data folder.")
async def test_such_an_answer_fails_its_own_run_also_after_a_restart(tmp_path: Path) -> None:
    waiting = asyncio.Event()

    async def answer(call: Call) -> Json:
        if not waiting.is_set():
            waiting.set()
            await asyncio.Event().wait()
        return {"task_id": call.id, "status": "success", "output": {"nested": chain(22, 1)}, "error": None}

    async with ScriptedAgent(answer) as agent:
        async with running_system(tmp_path, stop_timeout=timedelta(0)) as system:
            await system.register("Worker", agent.url, protocol="simple-a2a")
            await system.save(CHILD)
            await system.save(PARENT)
            run_id = await system.start("parent", {})
            await waiting.wait()
        async with running_system(tmp_path) as system:
            assert error_of(await system.wait_for(run_id))["code"] == "child_input_invalid"
        async with running_system(tmp_path) as system:
            assert (await system.get(run_id))["status"] == "FAILED"
            other = await system.run("parent", {})
    assert error_of(other)["code"] == "child_input_invalid"
