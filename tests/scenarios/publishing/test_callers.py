"""Callers with API keys: none sees the tasks of another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.scenarios.api.test_keys import bearer, create_key, guarded_system
from tests.scenarios.kit_server import served
from tests.scenarios.publishing.a2a_caller import text
from tests.scenarios.publishing.receiver import receiving

from trunkline.agentkit import Agent, Message, Question, Task
from trunkline.jsontypes import JsonObject, encode
from trunkline.testing import FakeClock, RunningSystem, ScriptedAgent, running_system, simple_success
from trunkline.testing.system import objects_in

# Which keys there are, and what they allow, is the same on every set of backends.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

ENDPOINT = "//a2a/workflows/front"
JSON = {"Content-Type": "application/json"}
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
        assert isinstance(run.json["message"], dict)
        assert run.json["message"]["key"] == "otto"
        refused = await system.call("POST", ENDPOINT, {}, bearer(viewer))
        assert (refused.status, (await system.call("POST", ENDPOINT, {})).status) == (403, 401)
        card = await system.call("GET", f"{ENDPOINT}/.well-known/agent-card.json")
        assert card.json["securityRequirements"] == [{"schemes": {"bearer": {"list": []}}}]


async def test_a_caller_s_key_is_for_what_it_names(tmp_path: Path) -> None:
    admin = await create_key(tmp_path, "admin", "ann")
    async with guarded_system(tmp_path) as system, ScriptedAgent(simple_success("hi")) as agent:
        registered: JsonObject = {"name": "A", "url": agent.url, "protocol": "simple-a2a", "publish": True}
        await system.call("POST", "/agents", registered, bearer(admin))
        await system.call("POST", "/workflows", encode(FRONT), bearer(admin))
        wanted: JsonObject = {"name": "carl", "role": "caller", "publications": ["agents/A"]}
        created = await system.call("POST", "/keys", wanted, bearer(admin))
        assert (created.status, created.json["publications"]) == (201, ["agents/A"])
        carl = str(created.json["key"])
        body: JsonObject = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {"message": text("hi")},
        }
        called = await system.call("POST", "//a2a/agents/A", body, JSON | bearer(carl))
        assert "result" in called.json, called.json
        assert (await system.call("POST", ENDPOINT, body, JSON | bearer(carl))).status == 403
        for path in ("/runs", "/workflows", "/agents", "/keys"):
            assert (await system.call("GET", path, headers=bearer(carl))).status == 403
        catalog = (await system.call("GET", "//a2a/catalog", headers=bearer(carl))).json
        assert [card["name"] for card in objects_in(catalog["items"])] == ["A"]
        everything = (await system.call("GET", "//a2a/catalog", headers=bearer(admin))).json
        assert len(objects_in(everything["items"])) == 2
        assert (await system.call("GET", "//a2a/catalog")).status == 401


@pytest.mark.parametrize(
    "wanted",
    [
        {"role": "caller"},
        {"role": "caller", "publications": ["A"]},
        {"role": "caller", "publications": ["agents/A/b"]},
        {"role": "viewer", "publications": ["agents/A"]},
    ],
)
async def test_a_key_with_the_wrong_publications_is_refused(tmp_path: Path, wanted: JsonObject) -> None:
    admin = await create_key(tmp_path, "admin", "ann")
    async with guarded_system(tmp_path) as system:
        refused = await system.call("POST", "/keys", {"name": "carl", **wanted}, bearer(admin))
        assert refused.status == 422
        assert "publications" in str(refused.json["errors"])


async def test_what_is_public_needs_no_key(tmp_path: Path) -> None:
    admin = await create_key(tmp_path, "admin", "ann")
    viewer = await create_key(tmp_path, "viewer", "vera")
    async with guarded_system(tmp_path) as system, ScriptedAgent(simple_success("hi")) as agent:
        registered: JsonObject = {"name": "A", "url": agent.url, "protocol": "simple-a2a"}
        await system.call("POST", "/agents", registered, bearer(admin))
        public: JsonObject = {**FRONT, "publish": {"security": "public"}}
        await system.call("POST", "/workflows", encode(public), bearer(admin))
        body: JsonObject = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {"message": text("hi")},
        }
        for headers in ({}, bearer(viewer)):
            assert "result" in (await system.call("POST", ENDPOINT, body, JSON | headers)).json
        assert (await system.call("POST", ENDPOINT, body, JSON | bearer("tl_wrong"))).status == 401
        card = await system.call("GET", f"{ENDPOINT}/.well-known/agent-card.json")
        assert "securitySchemes" not in card.json


async def test_callers_without_a_key_see_nothing_of_one_another(tmp_path: Path) -> None:
    public: JsonObject = {
        **FRONT,
        "publish": {"security": "public"},
        "steps": {"only": {"agent": "A", "message": "caller", "context": "caller"}},
    }

    async def call(system: RunningSystem, method: str, params: JsonObject) -> JsonObject:
        body: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = (await system.call("POST", ENDPOINT, body, JSON)).json
        found = answer.get("result", answer.get("error"))
        assert isinstance(found, dict)
        return found

    async def task_id(system: RunningSystem, message: JsonObject) -> str:
        task = (await call(system, "SendMessage", {"message": message}))["task"]
        assert isinstance(task, dict)
        return str(task["id"])

    contexts: list[str] = []

    async def play(task: Task) -> AsyncGenerator[object, Message]:
        contexts.append(task.context_id)
        yield "Hello."

    kit = Agent("Kit", description="Plays.")
    kit.handler(play)
    async with served(kit) as url:
        async with running_system(tmp_path) as system:
            await system.register("A", url)
            await system.save(public)
            before = await task_id(system, text("hi", contextId="c"))
            await task_id(system, text("hi", "m-2", contextId="c"))
            assert (await call(system, "ListTasks", {}))["totalSize"] == 2
        await create_key(tmp_path, "admin", "ann")
        async with guarded_system(tmp_path) as system:
            assert (await call(system, "GetTask", {"id": before}))["code"] == -32001
            refused = await call(system, "ListTasks", {})
            assert (refused["code"], refused["message"]) == (-32004, "Listing tasks needs an API key.")
            first = await task_id(system, text("hi", "m-3", contextId="c"))
            await task_id(system, text("hi", "m-4", contextId="c"))
            assert (await call(system, "GetTask", {"id": first}))["id"] == first
            config: JsonObject = {"taskId": first, "id": "p", "url": "https://receiver.example/secret?key=1"}
            created = await call(system, "CreateTaskPushNotificationConfig", config)
            read = await call(system, "GetTaskPushNotificationConfig", {"taskId": first, "id": "p"})
            assert (created["url"], read["url"]) == (config["url"], "https://receiver.example/")
    # Without keys, the second task continued the conversation of the first one.
    assert contexts[0] == contexts[1]
    assert len(set(contexts)) == 3


@pytest.mark.parametrize("allowed", ["", "127.0.0.1/32"])
async def test_where_keys_are_required_updates_reach_only_public_and_allowed_addresses(
    tmp_path: Path, allowed: str
) -> None:
    admin = await create_key(tmp_path, "admin", "ann")
    async with (
        running_system(tmp_path, require_keys=True, allowed_networks=allowed) as system,
        ScriptedAgent(simple_success("hi")) as agent,
        receiving() as receiver,
    ):
        registered: JsonObject = {"name": "A", "url": agent.url, "protocol": "simple-a2a"}
        await system.call("POST", "/agents", registered, bearer(admin))
        await system.call("POST", "/workflows", encode(FRONT), bearer(admin))
        config: JsonObject = {"taskPushNotificationConfig": {"id": "p", "url": f"{receiver.url}/"}}
        params: JsonObject = {"message": text("hi"), "configuration": config}
        body: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        answer = (await system.call("POST", ENDPOINT, body, JSON | bearer(admin))).json
        if allowed:
            assert (await receiver.states())[-1] == "completed"
            return
        error = answer.get("error")
        assert isinstance(error, dict), answer
        assert (error["code"], "loopback" in str(error["message"])) == (-32602, True)
        # The message is refused with its config, and a name is checked when it is called.
        body["method"], body["params"] = "ListTasks", {}
        listed = (await system.call("POST", ENDPOINT, body, JSON | bearer(admin))).json["result"]
        assert isinstance(listed, dict)
        assert listed["totalSize"] == 0
        assert (receiver.accepted, receiver.refused) == ([], 0)


async def test_a_path_that_ends_like_a_card_needs_a_key(tmp_path: Path) -> None:
    admin = await create_key(tmp_path, "admin", "ann")
    async with guarded_system(tmp_path) as system:
        await system.call("POST", "/workflows", encode(FRONT), bearer(admin))
        for name in ("agent.json", "agent-card.json"):
            card = f"{ENDPOINT}/.well-known/{name}"
            assert (await system.call("GET", card)).status == 200
            for path in (f"{ENDPOINT}/tasks/.well-known/{name}", f"{ENDPOINT}//.well-known/{name}"):
                assert (await system.call("GET", path)).status == 401


async def test_callers_with_a_key_get_an_extended_card_with_the_input_schema(tmp_path: Path) -> None:
    admin = await create_key(tmp_path, "admin", "ann")
    schema: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}}
    async with guarded_system(tmp_path) as system:
        await system.call("POST", "/workflows", encode({**FRONT, "input": schema}), bearer(admin))
        public: JsonObject = {**FRONT, "name": "open", "publish": {"security": "public"}}
        await system.call("POST", "/workflows", encode(public), bearer(admin))
        card = (await system.call("GET", f"{ENDPOINT}/.well-known/agent-card.json")).json
        extended = await system.call("GET", f"{ENDPOINT}/extendedAgentCard", headers=bearer(admin))
        old: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": "agent/getAuthenticatedExtendedCard"}
        of_old = (await system.call("POST", ENDPOINT, old, JSON | bearer(admin))).json["result"]
        without = await system.call("POST", "//a2a/workflows/open", old, JSON | bearer(admin))
        root = (await system.call("GET", "//.well-known/agent-card.json")).json
    assert isinstance(card["capabilities"], dict)
    assert card["capabilities"]["extendedAgentCard"] is True
    assert schema not in card["capabilities"].values()
    assert extended.json["name"] == card["name"]
    capabilities = extended.json["capabilities"]
    assert isinstance(capabilities, dict)
    assert objects_in(capabilities["extensions"])[-1]["params"] == {"schema": schema}
    assert isinstance(of_old, dict)
    assert of_old["supportsAuthenticatedExtendedCard"] is True
    assert "-32007" in str(without.json["error"])
    assert [skill["id"] for skill in objects_in(root["skills"])] == ["workflows/open"]


async def test_an_address_without_a_key_has_a_rate(tmp_path: Path) -> None:
    admin = await create_key(tmp_path, "admin", "ann")
    clock = FakeClock()
    limited = running_system(tmp_path, clock=clock, require_keys=True, max_rate_per_address=2)
    async with limited as system, ScriptedAgent(simple_success("hi")) as agent:
        registered: JsonObject = {"name": "A", "url": agent.url, "protocol": "simple-a2a"}
        await system.call("POST", "/agents", registered, bearer(admin))
        public: JsonObject = {**FRONT, "publish": {"security": "public"}}
        await system.call("POST", "/workflows", encode(public), bearer(admin))
        body: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}
        statuses = [(await system.call("POST", ENDPOINT, body, JSON)).status for _ in range(5)]
        assert statuses == [200] * 4 + [429]
        # Callers with a key are not affected.
        assert (await system.call("POST", ENDPOINT, body, JSON | bearer(admin))).status == 200
        refused = await system.call("POST", ENDPOINT, body, JSON)
        assert "max_rate_per_address" in str(refused.json["detail"])
        clock.advance(timedelta(seconds=1))
        assert (await system.call("POST", ENDPOINT, body, JSON)).status == 200


async def test_nothing_is_sent_for_a_key_that_was_revoked(tmp_path: Path) -> None:
    admin = await create_key(tmp_path, "admin", "ann")

    async def play(task: Task) -> AsyncGenerator[object, Message]:
        yield f"{(yield Question('Which city?')).text} it is."

    kit = Agent("Kit", description="Asks.")
    kit.handler(play)
    guarded = running_system(tmp_path, require_keys=True, allowed_networks="127.0.0.1/32")
    async with served(kit) as url, guarded as system, receiving() as receiver:
        registered: JsonObject = {"name": "A", "url": url, "publish": True}
        await system.call("POST", "/agents", registered, bearer(admin))
        wanted: JsonObject = {"name": "carl", "role": "caller", "publications": ["agents/A"]}
        carl = str((await system.call("POST", "/keys", wanted, bearer(admin))).json["key"])
        configuration: JsonObject = {"taskPushNotificationConfig": {"id": "p", "url": f"{receiver.url}/"}}
        params: JsonObject = {"message": text("hi"), "configuration": configuration}
        body: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        sent = (await system.call("POST", "//a2a/agents/A", body, JSON | bearer(carl))).json["result"]
        assert isinstance(sent, dict)
        assert isinstance(sent["task"], dict)
        run = str(sent["task"]["id"])
        await receiver.states(until="input-required")
        assert (await system.call("DELETE", "/keys/carl", headers=bearer(admin))).status == 204
        reply: JsonObject = {"text": "Rome"}
        steps = (await system.call("GET", f"/runs/{run}", headers=bearer(admin))).json["steps"]
        step = f"/runs/{run}/steps/{objects_in(steps)[0]['name']}/reply"
        assert (await system.call("POST", step, reply, bearer(admin))).status == 202
        path = f"/runs/{run}/push-configs"
        async with asyncio.timeout(60):
            while True:
                items = (await system.call("GET", path, headers=bearer(admin))).json["items"]
                (config,) = objects_in(items)
                if not config["enabled"]:
                    break
                await asyncio.sleep(0.01)
        assert config["error"] == "The API key of the caller was revoked."
        # Enabled again, it is disabled when the next one is due.
        await system.call("POST", f"{path}/p/enable", headers=bearer(admin))
        async with asyncio.timeout(60):
            while True:
                items = (await system.call("GET", path, headers=bearer(admin))).json["items"]
                if not objects_in(items)[0]["enabled"]:
                    break
                await asyncio.sleep(0.01)
        assert [each.state for each in receiver.at("/")][-1] == "input-required"
