"""Lists of runs in several processes: each hears what the others have done."""

from __future__ import annotations

import pytest
from tests.scenarios.change_notifications import CONNECTED, RUNS_CHANGED, change_notifications
from tests.scenarios.distributed.in_process_roles import serving_roles

from trunkline.jsontypes import JsonObject
from trunkline.testing import ScriptedAgent, simple_success

pytestmark = [pytest.mark.anyio, pytest.mark.distributed_only]

ONE: JsonObject = {"name": "one", "steps": {"only": {"agent": "Agent"}}}


async def test_a_notification_wakes_watchers_of_a_run_that_another_process_drives() -> None:
    async with (
        ScriptedAgent(simple_success("ok")) as agent,
        serving_roles("api") as system,
        serving_roles("api") as other,
    ):
        await system.register("Agent", agent.url, protocol="simple-a2a")
        await system.save(ONE)
        notifications = change_notifications(other)
        assert await anext(notifications) == CONNECTED
        # Nobody is there to move it.
        run = await system.start("one")
        assert await anext(notifications) == RUNS_CHANGED
        assert [item["status"] for item in await other.items("/runs")] == ["PENDING"]
        async with serving_roles("executor", "bridge"):
            while (await other.get(run))["status"] != "COMPLETED":
                assert await anext(notifications) == RUNS_CHANGED
        await notifications.aclose()
