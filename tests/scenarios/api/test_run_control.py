"""Reading and steering runs over REST."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from tests.resources import as_resource, read_resource

from trunkline.api.resources.exchanges import WirePage
from trunkline.api.resources.runs import RunPage, RunResource, StepPage
from trunkline.jsontypes import Json
from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_task, simple_error, simple_success
from trunkline.testing.agents import Call
from trunkline.testing.system import step_of

pytestmark = pytest.mark.anyio

WORKFLOW = """
name: w
steps:
  a: {agent: A}
  b: {agent: A, needs: [a]}
"""


@pytest.fixture
async def agent(system: RunningSystem) -> AsyncGenerator[ScriptedAgent]:
    async with ScriptedAgent(simple_success({"text": "done"})) as agent:
        await system.register("A", agent.url, protocol="simple-a2a")
        await system.save(WORKFLOW)
        yield agent


class Gate:
    """An agent's answer that waits for the test."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, call: Call) -> Json:
        self.called.set()
        await self.open.wait()
        return {"task_id": call.id, "status": "success", "output": {}, "error": None}


async def test_runs_are_listed_newest_first_and_filtered(system: RunningSystem, agent: ScriptedAgent) -> None:
    await system.save(WORKFLOW.replace("name: w", "name: v"))
    first, second = [str((await system.run("w"))["id"]) for _ in range(2)]
    agent.script(simple_error("no"))
    failed = str((await system.run("v"))["id"])

    async def ids(query: str) -> list[str]:
        answer = await system.call("GET", f"/runs{query}")
        return [run["id"] for run in read_resource(RunPage, answer.body)["items"]]

    workflow_id = (await system.call("GET", "/workflows/w")).json["id"]
    assert await ids("") == [failed, second, first]
    assert await ids("?status=FAILED") == [failed]
    assert await ids("?workflow=w") == await ids(f"?workflow={workflow_id}") == [second, first]
    assert await ids("?workflow=none") == []
    page = (await system.call("GET", "/runs?limit=2")).json
    assert await ids(f"?limit=2&cursor={page['next_cursor']}") == [first]


async def test_a_failed_run_says_why_and_what_to_do(system: RunningSystem, agent: ScriptedAgent) -> None:
    agent.script(simple_success({}), simple_error("no such city"))
    run = as_resource(RunResource, await system.run("w"))
    assert run["status"] == "FAILED"
    assert run["error"] is not None
    assert (run["error"].get("step"), run["error"].get("attempt"), run["error"]["code"]) == (
        "b",
        1,
        "agent_reported_error",
    )
    assert "no such city" in run["error"]["message"]
    assert run["error"]["fix"]
    assert [step["status"] for step in run["steps"]] == ["COMPLETED", "FAILED"]


async def test_steps_come_in_pages_in_the_order_of_the_definition(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    run_id = str((await system.run("w"))["id"])
    first = read_resource(StepPage, (await system.call("GET", f"/runs/{run_id}/steps?limit=1")).body)
    rest = await system.call("GET", f"/runs/{run_id}/steps?limit=1&cursor={first['next_cursor']}")
    second = read_resource(StepPage, rest.body)
    assert [step["name"] for step in (*first["items"], *second["items"])] == ["a", "b"]
    assert second["next_cursor"] is None
    assert (await system.call("GET", "/runs/none/steps")).status == 404


async def test_a_retry_is_a_new_run_that_keeps_what_was_done(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    agent.script(simple_success({"text": "kept"}), simple_error("no"), simple_success({"text": "now"}))
    old = str((await system.run("w", {"query": 1}))["id"])
    answer = await system.call("POST", f"/runs/{old}/retry")
    assert answer.status == 202
    new = read_resource(RunResource, answer.body)
    assert (new.get("retry_of"), new["input"]) == (old, {"query": 1})
    assert answer.headers["Location"] == f"/api/v1/runs/{new['id']}"
    run = await system.wait_for(new["id"])
    assert run["status"] == "COMPLETED"
    assert step_of(run, "a")["output"] == {"text": "kept", "data": {"text": "kept"}}
    assert len(agent.calls) == 3


async def test_a_wrong_retry_is_refused(system: RunningSystem, agent: ScriptedAgent) -> None:
    run_id = str((await system.run("w"))["id"])
    for body in (
        b"[]", b'{"from": "a"}', b'{"from_step": 1}', b'{"from_step": "nowhere"}', b'{"step_input": 1}',
        b'{"from_step": "nowhere", "step_input": 1}', b'{"from_step": "a", "from_start": true}',
    ):  # fmt: skip
        assert (await system.call("POST", f"/runs/{run_id}/retry", body)).status == 422, body
    assert len(await system.items("/runs")) == 1


async def test_what_the_state_does_not_allow_is_a_conflict_with_the_reason(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    run_id = str((await system.run("w"))["id"])
    for action in ("cancel", "pause", "resume"):
        answer = await system.call("POST", f"/runs/{run_id}/{action}")
        assert answer.status == 409
        assert "COMPLETED" in str(answer.json["detail"])
    reply = await system.call("POST", f"/runs/{run_id}/steps/a/reply", {"text": "x"})
    resolve = await system.call("POST", f"/runs/{run_id}/steps/a/resolve", {"outcome": "failed"})
    nowhere = await system.call("POST", f"/runs/{run_id}/steps/z/resolve", {"outcome": "failed"})
    assert [answer.status for answer in (reply, resolve, nowhere)] == [409, 409, 404]


async def test_a_running_run_can_be_paused_resumed_and_not_retried(
    system: RunningSystem, agent: ScriptedAgent
) -> None:
    gate = Gate()
    agent.script(gate)
    run_id = await system.start("w")
    await gate.called.wait()
    assert (await system.call("POST", f"/runs/{run_id}/retry")).status == 409
    paused = await system.call("POST", f"/runs/{run_id}/pause")
    assert (paused.status, paused.json["status"]) == (202, "PAUSED")
    gate.open.set()
    await system.wait_for_step(run_id, "a", {"COMPLETED"})
    assert (await system.get(run_id))["status"] == "PAUSED"
    assert len(agent.calls) == 1
    assert (await system.call("POST", f"/runs/{run_id}/resume")).status == 202
    assert (await system.wait_for(run_id))["status"] == "COMPLETED"


async def test_a_cancelled_run_ends(system: RunningSystem, agent: ScriptedAgent) -> None:
    gate = Gate()
    agent.script(gate)
    run_id = await system.start("w")
    await gate.called.wait()
    answer = await system.call("POST", f"/runs/{run_id}/cancel")
    assert answer.status == 202
    read_resource(RunResource, answer.body)
    assert (await system.wait_for(run_id))["status"] == "CANCELLED"
    gate.open.set()


async def test_a_question_is_shown_and_a_reply_goes_to_the_same_task(system: RunningSystem) -> None:
    async with ScriptedAgent(
        jsonrpc_task("which city?", state="input-required"), jsonrpc_task("sunny")
    ) as agent:
        await system.register("Asks", agent.url, protocol="jsonrpc-2.0")
        await system.save("name: q\nsteps:\n  a: {agent: Asks}\n")
        run_id = await system.start("q")
        run = as_resource(RunResource, await system.wait_for(run_id, {"WAITING"}))
        waiting = run["steps"][0]["waiting_for"]
        assert waiting is not None
        assert (waiting["kind"], waiting["text"]) == ("input", "which city?")
        empty = await system.call("POST", f"/runs/{run_id}/steps/a/reply", {})
        no_part = await system.call("POST", f"/runs/{run_id}/steps/a/reply", {"parts": []})
        wrong = await system.call("POST", f"/runs/{run_id}/steps/a/reply", {"text": 1})
        assert [answer.status for answer in (empty, no_part, wrong)] == [422, 422, 422]
        assert (await system.call("POST", f"/runs/{run_id}/steps/a/reply", {"text": "Bern"})).status == 202
        done = await system.wait_for(run_id)
    assert done["status"] == "COMPLETED"
    assert agent.calls[1].message["taskId"] == "remote-1"


async def test_the_wire_shows_every_exchange_in_order(system: RunningSystem, agent: ScriptedAgent) -> None:
    run_id = str((await system.run("w", {"query": "x"}))["id"])
    page = read_resource(WirePage, (await system.call("GET", f"/runs/{run_id}/wire?limit=1")).body)
    rest = await system.call("GET", f"/runs/{run_id}/wire?cursor={page['next_cursor']}")
    exchanges = [*page["items"], *read_resource(WirePage, rest.body)["items"]]
    assert [exchange["step"] for exchange in exchanges] == ["a", "b"]
    assert exchanges[0]["request"]["method"] == "POST"
    assert exchanges[0]["response"] is not None
    assert exchanges[0]["response"]["status"] == 200
    only_b = await system.call("GET", f"/runs/{run_id}/wire?step=b")
    assert [exchange["step"] for exchange in read_resource(WirePage, only_b.body)["items"]] == ["b"]
