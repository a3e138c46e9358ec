"""Push notifications: every state of a task arrives at each receiver, in order, authenticated as it was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.scenarios.kit_server import served
from tests.scenarios.publishing.a2a_caller import A2ACaller, state_of, text, text_v03
from tests.scenarios.publishing.receiver import Receiver, receiving

from trunkline.agentkit import Agent, Message, Question, Task
from trunkline.jsontypes import Json, JsonObject
from trunkline.system_clock import SystemClock
from trunkline.testing import RunningSystem, running_system
from trunkline.testing.system import objects_in
from trunkline.triggers.signatures import WebhookDelivery, is_signed
from trunkline.wiring import Interceptors, LivenessTimeouts

pytestmark = pytest.mark.anyio

FRONT: JsonObject = {
    "name": "front",
    "publish": True,
    "steps": {"only": {"agent": "A", "message": "caller", "context": "caller"}},
}
STATES = ["submitted", "working", "input-required", "working", "completed"]


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    async with receiving() as running:
        yield running


@pytest.fixture
async def agent() -> AsyncGenerator[str]:
    async def play(task: Task) -> AsyncGenerator[object, Message]:
        if task.text == "ask":
            reply = yield Question("Which city?")
            yield f"{reply.text} it is."
        else:
            yield "Hello, world."

    kit = Agent("Kit", description="Plays.")
    kit.handler(play)
    async with served(kit) as url:
        yield url


@pytest.fixture
async def caller(system: RunningSystem, agent: str) -> A2ACaller:
    await system.register("A", agent)
    await system.save(FRONT)
    return A2ACaller(system, "workflows/front")


async def test_every_state_arrives_in_order_when_the_receiver_is_back(
    caller: A2ACaller, receiver: Receiver
) -> None:
    receiver.status = 503
    task = await caller.send(text("ask"), taskPushNotificationConfig={"url": f"{receiver.url}/"})
    await caller.send(text("Rome", "m-2", taskId=task["id"]))
    await receiver.has_refused(2)
    receiver.status = 200
    assert await receiver.states() == STATES
    kinds = [next(iter(each.body)) for each in receiver.at("/")]
    assert kinds == ["task", "statusUpdate", "statusUpdate", "statusUpdate", "artifactUpdate", "statusUpdate"]
    question = receiver.at("/")[2].body["statusUpdate"]
    assert "Which city?" in str(question)


async def test_clients_of_0_3_get_the_task_with_each_state(
    system: RunningSystem, caller: A2ACaller, receiver: Receiver
) -> None:
    del caller
    old = A2ACaller(system, "workflows/front", "0.3")
    configuration: JsonObject = {"pushNotificationConfig": {"url": f"{receiver.url}/"}}
    task = await old.call("message/send", {"message": text_v03("ask"), "configuration": configuration})
    await old.call("message/send", {"message": text_v03("Rome", "m-2", taskId=task["id"])})
    assert await receiver.states() == STATES
    bodies = [each.body for each in receiver.at("/")]
    assert {(str(body["kind"]), body["id"]) for body in bodies} == {("task", task["id"])}
    (artifact,) = objects_in(bodies[-1]["artifacts"])
    assert artifact["parts"] == [{"kind": "text", "text": "Rome it is."}]


async def test_each_receiver_is_authenticated_as_its_config_says(
    caller: A2ACaller, receiver: Receiver
) -> None:
    asking = await caller.send(text("ask"))
    configs: list[JsonObject] = [
        {"url": f"{receiver.url}/token", "token": "t-1"},
        {"url": f"{receiver.url}/bearer", "authentication": {"scheme": "Bearer", "credentials": "b-1"}},
        {
            "url": f"{receiver.url}/signed",
            "authentication": {"scheme": "standard-webhooks", "credentials": "s"},
        },
    ]
    for config in configs:
        shown = await caller.call("CreateTaskPushNotificationConfig", {"taskId": asking["id"], **config})
        assert not {"t-1", "b-1"} & set(str(shown).split("'"))
    await caller.send(text("Rome", "m-2", taskId=asking["id"]))
    for path in ("/token", "/bearer", "/signed"):
        # What came before the config was created is not sent.
        assert await receiver.states(path) == ["working", "completed"]
    (token, bearer, signed) = (receiver.at(path)[0] for path in ("/token", "/bearer", "/signed"))
    assert token.headers["x-a2a-notification-token"] == "t-1"
    assert bearer.headers["authorization"] == "Bearer b-1"
    delivery = WebhookDelivery(headers=signed.headers, body=signed.raw, now=SystemClock().now())
    assert is_signed(delivery, "standard-webhooks", ["s"])
    assert "authorization" not in signed.headers
    assert "authorization" not in token.headers


async def test_configs_are_created_read_listed_and_deleted_in_both_versions(
    system: RunningSystem, caller: A2ACaller
) -> None:
    # Also of tasks that have ended, and with an id that another task has.
    first, second = await caller.send(text("hi")), await caller.send(text("hi", "m-2"))
    url = "https://receiver.example/"
    for task in (first, second):
        created = await caller.call(
            "CreateTaskPushNotificationConfig", {"task_id": task["id"], "id": "mine", "url": url}
        )
        assert created == {"taskId": task["id"], "id": "mine", "url": url}
    task_id = first["id"]
    assert (await caller.call("GetTaskPushNotificationConfig", {"taskId": task_id, "id": "mine"}))[
        "url"
    ] == url
    old = A2ACaller(system, "workflows/front", "0.3")
    inner: JsonObject = {"url": url, "authentication": {"schemes": ["Bearer"], "credentials": "c"}}
    params: JsonObject = {"taskId": task_id, "pushNotificationConfig": inner}
    shown = await old.call("tasks/pushNotificationConfig/set", params)
    assert shown["taskId"] == task_id
    assert "'c'" not in str(shown)
    # Without an id it is the one config of the task: set again, it is replaced.
    assert await old.call("tasks/pushNotificationConfig/set", params) == shown
    assert await old.call("tasks/pushNotificationConfig/get", {"id": task_id}) == shown
    listed = (await old.response("tasks/pushNotificationConfig/list", {"id": task_id}))["result"]
    assert [str(each["pushNotificationConfig"]) for each in objects_in(listed)][1:] == [
        str(shown["pushNotificationConfig"])
    ]
    page = await caller.call("ListTaskPushNotificationConfigs", {"taskId": task_id, "pageSize": 1})
    rest = await caller.call(
        "ListTaskPushNotificationConfigs", {"taskId": task_id, "pageToken": page["nextPageToken"]}
    )
    assert [each["id"] for each in objects_in(page["configs"])] == ["mine"]
    assert ([each["id"] for each in objects_in(rest["configs"])], rest["nextPageToken"]) == ([task_id], "")
    for _ in range(2):
        gone = await caller.response("DeleteTaskPushNotificationConfig", {"taskId": task_id, "id": "mine"})
        assert gone == {"jsonrpc": "2.0", "id": "1", "result": None}
    assert await caller.refused("GetTaskPushNotificationConfig", {"taskId": task_id, "id": "mine"}) == -32001
    still = await caller.call("GetTaskPushNotificationConfig", {"taskId": second["id"], "id": "mine"})
    assert still["id"] == "mine"


@pytest.mark.embedded_only
async def test_a_task_has_at_most_twenty_configs(caller: A2ACaller) -> None:
    task = await caller.send(text("hi"))

    def params(name: str) -> Json:
        return {"taskId": task["id"], "id": name, "url": "https://receiver.example/"}

    for number in range(20):
        await caller.call("CreateTaskPushNotificationConfig", params(f"c{number}"))
    assert await caller.refused("CreateTaskPushNotificationConfig", params("more")) == -32602
    await caller.call("CreateTaskPushNotificationConfig", params("c0"))
    assert await caller.refused("CreateTaskPushNotificationConfig", {**task, "taskId": "x"}) == -32001


@pytest.mark.embedded_only
async def test_what_a_caller_gave_is_encrypted_in_the_store(
    caller: A2ACaller, receiver: Receiver, tmp_path: Path
) -> None:
    config: JsonObject = {
        "url": f"{receiver.url}/",
        "token": "token-in-clear",
        "authentication": {"scheme": "Bearer", "credentials": "credentials-in-clear"},
    }
    await caller.send(text("hi"), taskPushNotificationConfig=config)
    await receiver.states()
    stored = b"".join(file.read_bytes() for file in (tmp_path / "data").glob("*") if file.is_file())
    assert b"push_configs" in stored
    assert b"in-clear" not in stored


@pytest.mark.embedded_only
async def test_a_notification_that_was_not_accepted_is_sent_after_a_restart(
    agent: str, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.status = 500
    async with running_system(tmp_path / "data") as system:
        await system.register("A", agent)
        await system.save(FRONT)
        caller = A2ACaller(system, "workflows/front")
        task = await caller.send(text("hi"), taskPushNotificationConfig={"url": f"{receiver.url}/"})
        assert state_of(task) == "completed"
        await receiver.has_refused(1)
    receiver.status = 200
    async with running_system(tmp_path / "data"):
        assert await receiver.states() == ["submitted", "working", "completed"]


@pytest.mark.embedded_only
async def test_a_config_that_fails_too_often_is_disabled_until_it_is_enabled(
    agent: str, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.status = 500
    async with running_system(tmp_path / "data", push_max_failures=1) as system:
        await system.register("A", agent)
        await system.save(FRONT)
        config: JsonObject = {"id": "mine", "url": f"{receiver.url}/?secret=s"}
        task = await A2ACaller(system, "workflows/front").send(text("hi"), taskPushNotificationConfig=config)
        path = f"/runs/{task['id']}/push-configs"
        while (shown := objects_in((await system.call("GET", path)).json["items"])[0])["enabled"]:
            await asyncio.sleep(0.02)
        assert (shown["failures"], shown["error"]) == (1, "The receiver answered with HTTP 500.")
        assert shown["host"] == receiver.url.removeprefix("http://")
        # The task, that it works, and that it is completed; its artifact may come in pieces.
        assert isinstance(shown["waiting"], int)
        assert shown["waiting"] >= 3
        assert "secret" not in str(shown)
        assert await system.metric("trunkline_queue_depth", queue="push_configs_disabled") == 1
        assert await system.metric("trunkline_queue_depth", queue="callbacks") == shown["waiting"]
        assert receiver.refused == 1
        receiver.status = 200
        enabled = await system.call("POST", f"{path}/mine/enable")
        assert (enabled.status, enabled.json["enabled"], enabled.json["failures"]) == (200, True, 0)
        assert await receiver.states() == ["submitted", "working", "completed"]
        assert (await system.call("POST", f"{path}/other/enable")).status == 404
        assert (await system.call("DELETE", f"{path}/mine")).status == 204
        assert (await system.call("DELETE", f"{path}/mine")).status == 404
        assert (await system.call("GET", path)).json["items"] == []
        assert (await system.call("GET", "/runs/unknown/push-configs")).status == 404


@pytest.mark.embedded_only
async def test_updates_are_sent_when_they_are_committed_and_not_when_they_are_looked_for(
    tmp_path: Path, agent: str, receiver: Receiver
) -> None:
    interceptors = Interceptors(timeouts=LivenessTimeouts(callback_look=timedelta(hours=1)))
    async with running_system(tmp_path / "data", interceptors=interceptors) as system:
        await system.register("A", agent)
        await system.save(FRONT)
        caller = A2ACaller(system, "workflows/front")
        await caller.send(text("hi"), taskPushNotificationConfig={"url": f"{receiver.url}/"})
        assert await receiver.states() == ["submitted", "working", "completed"]
