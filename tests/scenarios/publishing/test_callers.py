"""Callers with API keys: none sees the tasks of another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scenarios.api.test_keys import bearer, create_key, guarded_system
from tests.scenarios.publishing.a2a_caller import text

from trunkline.jsontypes import JsonObject, encode
from trunkline.testing import ScriptedAgent, simple_success
from trunkline.testing.system import objects_in

# Which keys there are, and what they allow, is the same on every set of backends.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

ENDPOINT = "//a2a/workflows/front"
FRONT: JsonObject = {"name": "front", "publish": True, "steps": {"only": {"agent": "A"}}}


async def test_a_task_of_another_caller_does_not_exist(tmp_path: Path) -> None:
    admin = await create_key(tmp_path, "admin", "ann")
    keys = [await create_key(tmp_path, "operator", name) for name in ("otto", "olga")]
    viewer = await create_key(tmp_path, "viewer", "vera")
    async with guarded_system(tmp_path) as system, ScriptedAgent(simple_success("hi")) as agent:
        registered: JsonObject = {"name": "A", "url": agent.url, "protocol": "simple-a2a"}
        await system.call("POST", "/agents", registered, bearer(admin))
        await system.call("POST", "/workflows", encode(FRONT), bearer(admin))

        async def call(key: str, method: str, params: JsonObject) -> JsonObject:
            headers = {"Content-Type": "application/json", **bearer(key)}
            body: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return (await system.call("POST", ENDPOINT, body, headers)).json

        sent = (await call(keys[0], "SendMessage", {"message": text("hi")}))["result"]
        assert isinstance(sent, dict)
        task = sent["task"]
        assert isinstance(task, dict)
        assert "result" in await call(keys[0], "GetTask", {"id": task["id"]})
        for method in ("GetTask", "CancelTask", "SubscribeToTask"):
            error = (await call(keys[1], method, {"id": task["id"]}))["error"]
            assert isinstance(error, dict)
            assert error["code"] == -32001
        listed = (await call(keys[1], "ListTasks", {}))["result"]
        assert isinstance(listed, dict)
        assert (objects_in(listed["tasks"]), listed["totalSize"]) == ([], 0)
        run = await system.call("GET", f"/runs/{task['id']}", headers=bearer(admin))
        assert run.json["started_by"] == "a2a:otto"
        refused = await system.call("POST", ENDPOINT, {}, bearer(viewer))
        assert (refused.status, (await system.call("POST", ENDPOINT, {})).status) == (403, 401)
        card = await system.call("GET", f"{ENDPOINT}/.well-known/agent-card.json")
        assert card.json["securityRequirements"] == [{"schemes": {"bearer": {"list": []}}}]
