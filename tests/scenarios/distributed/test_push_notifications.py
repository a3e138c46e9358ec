"""An agent rings at a process that has no bridge: the one that has its task asks, at once."""

from __future__ import annotations

import asyncio

import pytest
from tests.scenarios.distributed.in_process_roles import serving_roles

from trunkline.messages import TaskKey
from trunkline.testing import FakeClock, ScriptedAgent, jsonrpc_task, step_of

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

HEADER = "X-A2A-Notification-Token"


async def test_a_push_to_the_api_wakes_the_bridge_in_another_process() -> None:
    # Time stands still: nobody asks the agent unless it rings.
    clock = FakeClock()
    async with (
        ScriptedAgent(jsonrpc_task("", state="working")) as agent,
        serving_roles("api", "executor", clock=clock, public_url="http://trunkline.example") as system,
        serving_roles("bridge", clock=clock, public_url="http://trunkline.example") as bridge,
    ):
        await system.register("Agent", agent.url, protocol="jsonrpc-2.0")
        await system.save({"name": "one", "steps": {"only": {"agent": "Agent"}}})
        run_id = await system.start("one")
        while step_of(await system.get(run_id), "only")["waiting_for"] is None:
            await asyncio.sleep(0.02)
        agent.script(jsonrpc_task("Sunny"))
        target = system.embedded.api.push_notifications.target(TaskKey(f"{run_id}/only/0", 1))
        assert target is not None
        path = "/" + target.url.removeprefix("http://trunkline.example")
        elsewhere = await bridge.call("POST", path, b"{}", {HEADER: target.token})
        answer = await system.call("POST", path, b"{}", {HEADER: target.token})
        run = await system.wait_for(run_id)
    assert (elsewhere.status, answer.status) == (404, 204), "a process without the API has no hooks"
    assert run["status"] == "COMPLETED"
    assert [call.method for call in agent.calls] == ["message/send", "tasks/get"]
