"""Loops with real calls: order, limits, failures, retries, restarts, and what the API shows of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import quote

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.testing import Call, RunningSystem, ScriptedAgent, jsonrpc_task, running_system, simple_success
from trunkline.testing.system import error_of, step_of

pytestmark = pytest.mark.anyio


class DoublingAgent:
    """Answers with twice the number that it gets, fails for those it dislikes, and counts its concurrent calls."""

    def __init__(self, *disliked: int) -> None:
        self.disliked = set(disliked)
        self.seen: list[Json] = []
        self.most_present = 0
        self._present = 0

    async def __call__(self, call: Call) -> Json:
        number = call.body["input"]
        self.seen.append(number)
        self._present += 1
        self.most_present = max(self.most_present, self._present)
        await asyncio.sleep(0)
        self._present -= 1
        assert isinstance(number, int)
        if number in self.disliked:
            return {"task_id": call.id, "status": "error", "output": None, "error": f"No {number}."}
        return {"task_id": call.id, "status": "success", "output": {"twice": number * 2}, "error": None}


def loop(**options: Json) -> JsonObject:
    return {
        "name": "loop",
        "steps": {
            "each": {
                "agent": "Doubler",
                "for_each": {"items": "${ input.numbers }", **options},
                "retry": {"max_attempts": 1},
            }
        },
    }


async def items_of(system: RunningSystem, run: JsonObject) -> list[JsonObject]:
    return await system.items(f"/runs/{run['id']}/steps?of=each&limit=2")


async def test_a_loop_gives_its_outputs_in_the_order_of_its_items(system: RunningSystem) -> None:
    doubler = DoublingAgent()
    async with ScriptedAgent(doubler) as agent:
        await system.register("Doubler", agent.url, protocol="simple-a2a")
        await system.save(loop(limit=3))
        run = await system.run("loop", {"numbers": list(range(12))})
        items = await items_of(system, run)
    assert run["output"] == [{"data": {"twice": number * 2}} for number in range(12)]
    assert doubler.most_present <= 3
    step = step_of(run, "each")
    assert (step["input"], step["status"]) == (None, "COMPLETED")
    assert step["items"] == {
        "total": 12, "pending": 0, "running": 0, "waiting": 0, "completed": 12, "failed": 0, "skipped": 0,
        "cancelled": 0,
    }  # fmt: skip
    assert [item["name"] for item in items] == [f"each[{number}]" for number in range(12)]
    assert [item["input"] for item in items] == list(range(12))


async def test_a_retried_run_calls_only_for_the_items_that_have_not_completed(system: RunningSystem) -> None:
    doubler = DoublingAgent(2)
    async with ScriptedAgent(doubler) as agent:
        await system.register("Doubler", agent.url, protocol="simple-a2a")
        await system.save(loop(mode="sequential"))
        run = await system.run("loop", {"numbers": [0, 1, 2, 3]})
        assert (run["status"], error_of(run)["message"]) == ("FAILED", "Item 2: No 2.")
        doubler.disliked.clear()
        answer = await system.call("POST", f"/runs/{run['id']}/retry", {})
        retried = await system.wait_for(str(answer.json["id"]))
    assert retried["output"] == [{"data": {"twice": number * 2}} for number in range(4)]
    assert doubler.seen == [0, 1, 2, 2, 3]


async def test_a_step_with_items_takes_no_input_of_a_person(system: RunningSystem) -> None:
    async with ScriptedAgent(DoublingAgent()) as agent:
        await system.register("Doubler", agent.url, protocol="simple-a2a")
        await system.save(loop())
        run = await system.run("loop", {"numbers": [1]})
        body: JsonObject = {"from_step": "each", "step_input": [2]}
        answer = await system.call("POST", f"/runs/{run['id']}/retry", body)
    assert answer.status == 422
    assert "is a for_each step" in str(answer.json["detail"])


async def test_a_retry_with_another_input_keeps_no_item_of_the_list_before(system: RunningSystem) -> None:
    doubler = DoublingAgent(2)
    async with ScriptedAgent(doubler) as agent:
        await system.register("Doubler", agent.url, protocol="simple-a2a")
        await system.save(loop(mode="sequential"))
        run = await system.run("loop", {"numbers": [0, 1, 2]})
        answer = await system.call("POST", f"/runs/{run['id']}/retry", {"input": {"numbers": [5, 6]}})
        retried = await system.wait_for(str(answer.json["id"]))
    assert retried["output"] == [{"data": {"twice": 10}}, {"data": {"twice": 12}}]
    assert doubler.seen == [0, 1, 2, 5, 6]


async def test_a_step_that_runs_again_keeps_no_item(system: RunningSystem) -> None:
    doubler = DoublingAgent(1)
    async with ScriptedAgent(doubler) as agent:
        await system.register("Doubler", agent.url, protocol="simple-a2a")
        await system.save(loop(mode="sequential"))
        run = await system.run("loop", {"numbers": [0, 1]})
        doubler.disliked.clear()
        answer = await system.call("POST", f"/runs/{run['id']}/retry", {"from_step": "each"})
        retried = await system.wait_for(str(answer.json["id"]))
    assert (retried["status"], doubler.seen) == ("COMPLETED", [0, 1, 0, 1])


async def test_a_loop_that_collects_tells_how_each_item_ended(system: RunningSystem) -> None:
    async with ScriptedAgent(DoublingAgent(1)) as agent:
        await system.register("Doubler", agent.url, protocol="simple-a2a")
        await system.save(loop(on_error="collect"))
        run = await system.run("loop", {"numbers": [0, 1]})
    assert run["output"] == [
        {"item": 0, "status": "COMPLETED", "output": {"data": {"twice": 0}}},
        {"item": 1, "status": "FAILED", "error": {"code": "agent_reported_error", "message": "No 1."}},
    ]


async def test_items_are_listed_by_how_they_stand(system: RunningSystem) -> None:
    async with ScriptedAgent(DoublingAgent(1, 4, 5)) as agent:
        await system.register("Doubler", agent.url, protocol="simple-a2a")
        await system.save(loop(on_error="collect"))
        run = await system.run("loop", {"numbers": list(range(7))})

    async def listed(asked: str) -> list[Json]:
        return [step["name"] for step in await system.items(f"/runs/{run['id']}/steps?{asked}")]

    assert await listed("of=each&limit=2&status=FAILED") == ["each[1]", "each[4]", "each[5]"]
    assert await listed("of=each&limit=3&status=COMPLETED") == ["each[0]", "each[2]", "each[3]", "each[6]"]
    everyone = [f"each[{number}]" for number in range(7)]
    assert await listed("of=each&limit=2&status=COMPLETED&status=FAILED") == everyone
    assert await listed("of=each&status=WAITING") == []
    assert (await listed("status=COMPLETED"), await listed("status=FAILED")) == (["each"], [])
    refused = await system.call("GET", f"/runs/{run['id']}/steps?of=each&status=broken")
    assert refused.status == 422
    assert "OUTCOME_UNKNOWN" in str(refused.json)


async def test_the_question_of_an_item_is_answered_like_that_of_a_step(system: RunningSystem) -> None:
    asking = jsonrpc_task("Which?", state="input-required")
    async with ScriptedAgent(asking, jsonrpc_task("Thanks.")) as agent:
        await system.register("Doubler", agent.url, protocol="jsonrpc-2.0")
        await system.save(loop())
        run_id = await system.start("loop", {"numbers": [7]})
        await system.wait_for(run_id, {"WAITING"})
        (item,) = await system.items("/inbox")
        assert item["step"] == "each[0]"
        shown = await system.call("GET", f"/inbox/{quote(str(item['id']))}")
        assert shown.json["step"] == "each[0]"
        await system.call("POST", f"/runs/{run_id}/steps/each%5B0%5D/reply", {"text": "That one."})
        run = await system.wait_for(run_id)
    assert run["status"] == "COMPLETED"


async def test_a_step_without_items_has_none_to_show(system: RunningSystem) -> None:
    async with ScriptedAgent(simple_success("ok")) as agent:
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save({"name": "plain", "steps": {"only": {"agent": "Agent"}}})
        run = await system.run("plain")
        answer = await system.call("GET", f"/runs/{run['id']}/steps?of=only")
    assert (answer.status, answer.json["detail"]) == (404, f"Run {run['id']} has no for_each step only.")


async def test_a_loop_goes_on_after_a_restart_where_it_was(tmp_path: Path) -> None:
    gate = asyncio.Event()
    doubler = DoublingAgent()

    async def third_waits(call: Call) -> Json:
        if call.body["input"] == 2:
            await gate.wait()
        return await doubler(call)

    async with ScriptedAgent(third_waits) as agent:
        async with running_system(tmp_path / "data") as system:
            await system.register("Doubler", agent.url, protocol="simple-a2a")
            await system.save(loop(mode="sequential"))
            run_id = await system.start("loop", {"numbers": [0, 1, 2, 3]})
            await agent.called(3)
        gate.set()
        async with running_system(tmp_path / "data") as system:
            run = await system.wait_for(run_id)
    assert run["output"] == [{"data": {"twice": number * 2}} for number in range(4)]
    assert (doubler.seen.count(0), doubler.seen.count(1), doubler.seen.count(3)) == (1, 1, 1)
