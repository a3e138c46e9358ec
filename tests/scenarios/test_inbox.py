"""What waits for a person: found in one place, answered from there, and given up when nobody comes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import RunningSystem, ScriptedAgent, jsonrpc_task, running_system
from trunkline.testing.agents import Hangup
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio

ASKING = jsonrpc_task("Which city?", state="input-required")
LOGIN = jsonrpc_task("Log in at example.com", state="auth-required")
DONE = jsonrpc_task("Sunny")


async def start_asking(
    system: RunningSystem, agent: ScriptedAgent, *, name: str = "ask", **fields: Json
) -> str:
    await system.register(f"Agent-{name}", agent.url, protocol="jsonrpc-2.0")
    await system.save({"name": name, "steps": {"only": {"agent": f"Agent-{name}", **fields}}})
    run_id = await system.start(name, {"query": "weather"})
    await system.wait_for(run_id, {"WAITING"})
    return run_id


async def the_item(system: RunningSystem) -> JsonObject:
    (item,) = await system.items("/inbox")
    return item


async def test_a_question_is_an_item_that_says_where_it_is_answered(system: RunningSystem) -> None:
    async with ScriptedAgent(ASKING, DONE) as agent:
        run_id = await start_asking(system, agent)
        item = await the_item(system)
        assert {name: item[name] for name in ("run_id", "workflow", "step", "agent", "kind", "text")} == {
            "run_id": run_id,
            "workflow": {"name": "ask", "version": 1},
            "step": "only",
            "agent": "Agent-ask",
            "kind": "input",
            "text": "Which city?",
        }
        assert (item["data"], item["until"], item["protocol"]) == (None, None, "jsonrpc-2.0")
        assert (await system.call("GET", f"/inbox/{item['id']}")).json == item
        answer = await system.call("POST", "/" + str(item["reply_url"]), {"text": "Rome", "item": item["id"]})
        assert answer.status == 202
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"
    assert agent.calls[1].message["taskId"] == "remote-1"
    assert await system.items("/inbox") == []
    assert (await system.call("GET", f"/inbox/{item['id']}")).status == 404


async def test_a_login_request_and_an_unknown_outcome_are_items_too(system: RunningSystem) -> None:
    async with ScriptedAgent(LOGIN, DONE) as shy, ScriptedAgent(Hangup()) as rude:
        login = await start_asking(system, shy, name="login")
        doubt = await start_asking(system, rude, name="doubt", delivery="at_most_once")
        kinds = [(item["kind"], item["run_id"]) for item in await system.items("/inbox")]
        assert kinds == [("auth", login), ("outcome", doubt)]
        (outcome,) = await system.items("/inbox?kind=outcome")
        assert str(outcome["reply_url"]).endswith(f"/runs/{doubt}/steps/only/resolve")
        assert (await system.items("/inbox?workflow=login"))[0]["run_id"] == login
        await system.call("POST", f"/runs/{login}/steps/only/reply", {"data": {"token": "from a person"}})
        await system.call("POST", "/" + str(outcome["reply_url"]), {"outcome": "succeeded", "output": 7})
        ended = [await system.wait_for(login), await system.wait_for(doubt)]
    assert [run["status"] for run in ended] == ["COMPLETED", "COMPLETED"]
    assert shy.calls[1].message["parts"] == [{"kind": "data", "data": {"token": "from a person"}}]
    assert await system.items("/inbox") == []


async def test_items_come_in_pages_the_oldest_first(system: RunningSystem) -> None:
    async with ScriptedAgent(ASKING) as agent:
        first = await start_asking(system, agent)
        runs = [first]
        for _ in range(4):
            runs.append(await system.start("ask"))
            await system.wait_for(runs[-1], {"WAITING"})
        assert [item["run_id"] for item in await system.items("/inbox?limit=2")] == runs
    assert (await system.call("GET", "/inbox?cursor=bm9uZQ")).status == 422
    assert (await system.call("GET", "/inbox?kind=retry")).status == 422


async def test_items_of_a_list_that_ask_come_in_pages_too(system: RunningSystem) -> None:
    async with ScriptedAgent(ASKING) as agent:
        run_id = await start_asking(system, agent, for_each=["a", "b", "c"])
        found = await system.items("/inbox?limit=1")
    assert sorted(str(item["step"]) for item in found) == ["only[0]", "only[1]", "only[2]"]
    assert {str(item["run_id"]) for item in found} == {run_id}


async def test_an_answer_to_a_question_that_was_answered_is_refused(system: RunningSystem) -> None:
    async with ScriptedAgent(ASKING, jsonrpc_task("And which day?", state="input-required")) as agent:
        run_id = await start_asking(system, agent)
        item = await the_item(system)
        reply = {"text": "Rome", "item": item["id"]}
        assert (await system.call("POST", "/" + str(item["reply_url"]), reply)).status == 202
        await agent.called(2)
        await system.wait_for(run_id, {"WAITING"})
        while (await the_item(system))["id"] == item["id"]:
            await asyncio.sleep(0.02)
        refused = await system.call("POST", "/" + str(item["reply_url"]), reply)
    assert refused.status == 409
    assert "has been answered" in str(refused.json["detail"])


async def test_an_unanswered_question_fails_its_step_and_cancels_the_remote_task(
    system: RunningSystem,
) -> None:
    async with ScriptedAgent(ASKING, jsonrpc_task("", state="canceled")) as agent:
        run_id = await start_asking(system, agent, reply_timeout="1s")
        item = await the_item(system)
        run = await system.wait_for(run_id)
        cancelled = await agent.called_for("tasks/cancel")
        late = await system.call("POST", f"/runs/{run_id}/steps/only/reply", {"text": "Rome"})
    assert item["until"] is not None
    assert (run["status"], error_of(run)["code"]) == ("FAILED", "reply_timed_out")
    assert cancelled.body["params"] == {"id": "remote-1"}
    assert late.status == 409
    assert "too late" in str(late.json["detail"])
    assert await system.items("/inbox") == []


async def test_the_settings_say_how_long_a_question_waits_where_the_step_does_not(tmp_path: Path) -> None:
    async with (
        running_system(tmp_path / "data", reply_timeout="1s") as system,
        ScriptedAgent(ASKING, jsonrpc_task("", state="canceled")) as agent,
    ):
        run_id = await start_asking(system, agent, on_error="continue")
        run = await system.wait_for(run_id)
    assert (run["status"], error_of(step_of(run, "only"))["code"]) == ("COMPLETED", "reply_timed_out")


async def test_a_question_waits_on_over_a_restart_and_its_deadline_too(tmp_path: Path) -> None:
    async with ScriptedAgent(ASKING, jsonrpc_task("", state="canceled")) as agent:
        async with running_system(tmp_path / "data") as system:
            run_id = await start_asking(system, agent, reply_timeout="3s")
            before = await the_item(system)
        async with running_system(tmp_path / "data") as system:
            assert await the_item(system) == before
            run = await system.wait_for(run_id)
    assert error_of(run)["code"] == "reply_timed_out"
