"""The flow control of a workflow: runs that are started by a request wait as the runs of a trigger do."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.jsontypes import JsonObject
from trunkline.testing import RunningSystem

pytestmark = pytest.mark.anyio

WAITS = "steps: {wait: {wait_for: {signal: go}}}"


async def start(system: RunningSystem, run_input: JsonObject, query: str = "") -> str:
    started = await system.call("POST", f"/workflows/guarded/execute{query}", run_input)
    assert started.status == 202, started.body
    return str(started.json["id"])


async def go_on(system: RunningSystem, run_id: str) -> None:
    await system.wait_for_step(run_id, "wait", {"WAITING"})
    assert (await system.call("POST", f"/runs/{run_id}/signals/go")).status == 202
    assert (await system.wait_for(run_id))["status"] == "COMPLETED"


async def reason_for_waiting(system: RunningSystem, run_id: str) -> str:
    """As soon as a gate has been looked at."""
    while True:
        run = await system.get(run_id)
        if isinstance(queued := run.get("queued"), dict) and queued["reason"]:
            assert run["status"] == "PENDING"
            return str(queued["reason"])
        await asyncio.sleep(0.05)


async def test_runs_of_a_workflow_wait_for_one_another_whoever_starts_them(system: RunningSystem) -> None:
    await system.save(
        f"{{name: guarded, {WAITS}, concurrency: {{limit: 1, key: input.customer}}, priority: 1}}"
    )
    first, other = await start(system, {"customer": "a"}), await start(system, {"customer": "b"})
    trigger: JsonObject = {
        "name": "t",
        "workflow": "guarded",
        "input": {"customer": "a"},
        "webhook": {"verify": {"scheme": "none"}},
    }
    assert (await system.call("POST", "/triggers", trigger)).status == 201
    of_trigger = str((await system.call("POST", "/triggers/t/fire")).json["id"])
    urgent = await start(system, {"customer": "a"}, "?priority=9")
    for waiting in (of_trigger, urgent):
        assert await reason_for_waiting(system, waiting) == "concurrency"
    refused = await system.call("POST", f"/runs/{urgent}/pause")
    assert (refused.status, "workflow guarded" in str(refused.json["detail"])) == (409, True)
    # The other customer's run goes on, and the one with the higher priority comes before the older one.
    for run_id in (other, first, urgent, of_trigger):
        await go_on(system, run_id)
    assert "queued" not in await system.get(urgent)


async def test_a_trigger_with_limits_of_its_own_does_not_wait_for_the_workflow(system: RunningSystem) -> None:
    await system.save(f"{{name: guarded, {WAITS}, concurrency: {{limit: 1}}}}")
    first = await start(system, {})
    trigger: JsonObject = {
        "name": "t",
        "workflow": "guarded",
        "webhook": {"verify": {"scheme": "none"}},
        "concurrency": {"limit": 5},
    }
    assert (await system.call("POST", "/triggers", trigger)).status == 201
    fired = str((await system.call("POST", "/triggers/t/fire")).json["id"])
    await go_on(system, fired)
    await go_on(system, first)


async def test_only_the_last_of_several_requests_starts(system: RunningSystem) -> None:
    await system.save("{name: guarded, steps: {work: {set: {n: '${ input.n }'}}}, debounce: 1s by input.key}")
    runs = [await start(system, {"n": number, "key": "k"}) for number in range(3)]
    last = await system.wait_for(runs[2])
    assert (last["status"], last["output"]) == ("COMPLETED", {"n": 2})
    for run_id in runs[:2]:
        replaced = await system.wait_for(run_id)
        assert replaced["status"] == "CANCELLED"
        assert isinstance(replaced["error"], dict)
        assert replaced["error"]["code"] == "not_started"


async def test_a_run_above_the_limit_is_cancelled_and_a_retry_of_it_starts(system: RunningSystem) -> None:
    await system.save(f"{{name: guarded, {WAITS}, concurrency: {{limit: 1, on_limit: drop}}}}")
    first = await start(system, {})
    await system.wait_for_step(first, "wait", {"WAITING"})
    dropped = await start(system, {})
    assert (await system.wait_for(dropped))["status"] == "CANCELLED"
    retried = await system.call("POST", f"/runs/{dropped}/retry", {})
    assert retried.status == 202
    await go_on(system, str(retried.json["id"]))
    await go_on(system, first)
    await go_on(system, await start(system, {}))


@pytest.mark.embedded_only
async def test_a_request_whose_key_cannot_be_evaluated_is_refused(system: RunningSystem) -> None:
    await system.save(f"{{name: guarded, {WAITS}, concurrency: {{limit: 1, key: input.customer}}}}")
    refused = await system.call("POST", "/workflows/guarded/execute", {})
    assert refused.status == 422
    assert "workflow guarded" in str(refused.json["detail"])
    too_high = await system.call("POST", "/workflows/guarded/execute?priority=1001", {"customer": "a"})
    assert too_high.status == 422
    assert await system.items("/runs") == []
