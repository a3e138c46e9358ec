"""What A2A and its conformance kit expect of a server: versions, errors, names, content types, cards, HTTP+JSON."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest
from tests.scenarios.publishing.a2a_caller import A2ACaller, parts_of, state_of, text

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.testing import RunningSystem, ScriptedAgent, running_system, simple_success
from trunkline.testing.system import objects_in

# It is about what is on the wire, which is the same on every set of backends.
pytestmark = [pytest.mark.anyio, pytest.mark.embedded_only]

_HUGE_PLACE = urlsafe_b64encode(f"{10**20}/1".encode()).decode().rstrip("=")
OPTIONS: JsonObject = {
    "name": "Front",
    "description": "Says things.",
    "version": "2.1",
    "provider": {"organization": "O", "url": "https://o.example"},
    "skills": [{"id": "s", "name": "S", "description": "Does s.", "tags": ["t"], "examples": ["e"]}],
}


@pytest.fixture(scope="module")
async def agent() -> AsyncGenerator[ScriptedAgent]:
    async with ScriptedAgent(simple_success({"text": "done"})) as agent:
        yield agent


@pytest.fixture(scope="module")
async def server(shared_system: RunningSystem, agent: ScriptedAgent) -> RunningSystem:
    await shared_system.register("A", agent.url, protocol="simple-a2a")
    step: JsonObject = {"agent": "A"}
    output = "${ steps.only.output.text }"
    await shared_system.save({"name": "front", "publish": OPTIONS, "steps": {"only": step}, "output": output})
    return shared_system


@pytest.fixture
def caller(server: RunningSystem) -> A2ACaller:
    return A2ACaller(server, "workflows/front")


def error_in(response: JsonObject) -> JsonObject:
    error = response["error"]
    assert isinstance(error, dict)
    return error


INVALID: list[tuple[object, int]] = [
    (b"{", -32700),
    ([{"jsonrpc": "2.0", "id": 1, "method": "GetTask"}], -32600),
    ("text", -32600),
    ({"id": 1, "method": "GetTask"}, -32600),
    ({"jsonrpc": "2.0", "method": "GetTask"}, -32602),
    ({"jsonrpc": "2.0", "method": "Unknown"}, -32601),
    ({"jsonrpc": "2.0", "id": None, "method": "GetTask"}, -32600),
    ({"jsonrpc": "2.0", "id": {}, "method": "GetTask"}, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": 7}, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": "Unknown"}, -32601),
    ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": []}, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {}}, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}, -32001),
    ({"jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": {"id": "\x00"}}, -32001),
    ({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"pageSize": 0}}, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"pageSize": 101}}, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"pageToken": "?"}}, -32602),
    # A time beyond 64 bits.
    ({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"pageToken": _HUGE_PLACE}}, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"status": "odd"}}, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"statusTimestampAfter": "x"}}, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}, -32007),
    ({"jsonrpc": "2.0", "id": 1, "method": "ListTaskPushNotificationConfigs", "params": {}}, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {}}}, -32602),
]


@pytest.mark.parametrize(("body", "code"), INVALID)
async def test_a_request_that_is_refused_says_why(caller: A2ACaller, body: Json, code: int) -> None:
    assert error_in(await caller.post(body))["code"] == code


async def test_errors_of_1_0_have_a_reason_for_programs(caller: A2ACaller) -> None:
    error = error_in(await caller.response("GetTask", {"id": "x"}))
    assert error["data"] == [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org",
        }
    ]
    assert "data" not in error_in(await caller.response("tasks/get", {"id": "x"}))


@pytest.mark.parametrize("version", ["", "0.3", "0.3.0", "1.0", "1.0.7"])
async def test_the_name_of_a_method_decides_the_version(caller: A2ACaller, version: str) -> None:
    body: Json = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    assert "result" in await caller.post(body, {"A2A-Version": version})


async def test_a_version_that_is_not_supported_is_refused(caller: A2ACaller) -> None:
    body: Json = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    assert error_in(await caller.post(body, {"A2A-Version": "99.0"}))["code"] == -32009


async def test_names_may_be_in_snake_case_and_the_address_may_end_with_a_slash(caller: A2ACaller) -> None:
    caller.url += "/"
    message: JsonObject = {
        "message_id": "m",
        "context_id": "c",
        "role": "ROLE_USER",
        "parts": [{"text": "hi"}],
    }
    sent = await caller.call("SendMessage", {"message": message, "configuration": {"history_length": 0}})
    task = sent["task"]
    assert isinstance(task, dict)
    assert (task["contextId"], "history" in task) == ("c", False)


async def test_another_content_type_is_refused(caller: A2ACaller) -> None:
    response = await caller.post({}, {"Content-Type": "text/plain"})
    assert error_in(response)["code"] == -32005


async def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with running_system(tmp_path / "data", max_body_bytes=1_000) as system:
        await system.save({"name": "front", "publish": True, "steps": {"only": {"agent": "A"}}})
        caller = A2ACaller(system, "workflows/front")
        assert await caller.refused("SendMessage", {"message": text("x" * 1_000)}) == -32600


async def test_the_card_is_strictly_1_0_unless_0_3_is_asked_for(server: RunningSystem) -> None:
    path = "//a2a/workflows/front/.well-known/agent-card.json"
    answer = await server.call("GET", path)
    url = f"{server.url}/a2a/workflows/front"
    assert answer.json == {
        "name": "Front",
        "description": "Says things.",
        "version": "2.1",
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        ],
        "capabilities": {
            "streaming": True,
            "pushNotifications": True,
            "extensions": [
                {
                    "uri": "urn:trunkline:a2a:idempotency:1",
                    "description": "A message that is sent again with the same messageId and content has started the "
                    "same task.",
                    "required": False,
                }
            ],
            "extendedAgentCard": False,
        },
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "provider": {"organization": "O", "url": "https://o.example"},
        "skills": [{"id": "s", "name": "S", "description": "Does s.", "tags": ["t"], "examples": ["e"]}],
    }
    assert answer.headers["Vary"] == "A2A-Version"
    assert "max-age" in answer.headers["Cache-Control"]
    assert answer.headers["Last-Modified"].endswith(" GMT")
    again = await server.call("GET", path, headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status == 304
    old = await server.call("GET", path, headers={"A2A-Version": "0.3"})
    assert (old.json["url"], old.json["protocolVersion"]) == (url, "0.3.0")
    assert (await server.call("GET", "//a2a/workflows/front/.well-known/agent.json")).json == old.json


async def http(
    server: RunningSystem, method: str, path: str, body: Json = None, **headers: str
) -> tuple[int, JsonObject]:
    url = f"{server.url}/a2a/workflows/front{path}"
    sent = {"A2A-Version": "1.0", "Content-Type": "application/a2a+json", **headers}
    data = None if body is None else encode(body)
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, data=data, headers=sent) as got,
    ):
        found = decode(await got.read())
    assert isinstance(found, dict)
    return got.status, found


@pytest.mark.parametrize("tenant", ["", "/tenant"])
async def test_the_same_tasks_can_be_reached_over_http_json(
    server: RunningSystem, caller: A2ACaller, tenant: str
) -> None:
    status, sent = await http(server, "POST", f"{tenant}/message:send", {"message": text("hi")})
    task = sent["task"]
    assert isinstance(task, dict)
    assert (status, state_of(task), parts_of(task)) == (200, "completed", [{"text": "done"}])
    assert await http(server, "GET", f"{tenant}/tasks/{task['id']}") == (200, await caller.task(task["id"]))
    _, page = await http(server, "GET", f"{tenant}/tasks?pageSize=1&includeArtifacts=true&historyLength=0")
    (listed,) = objects_in(page["tasks"])
    assert (listed["id"], parts_of(listed), "history" in listed) == (task["id"], [{"text": "done"}], False)


async def test_a_stream_over_http_json_has_the_events_themselves(server: RunningSystem) -> None:
    url = f"{server.url}/a2a/workflows/front/message:stream"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json={"message": text("hi")}) as response,
    ):
        assert response.headers["Content-Type"].startswith("text/event-stream")
        lines = [line for line in (await response.read()).splitlines() if line.startswith(b"data: ")]
    events = objects_in([decode(line.removeprefix(b"data: ")) for line in lines])
    assert [next(iter(event)) for event in events] == [
        "task",
        "statusUpdate",
        "artifactUpdate",
        "statusUpdate",
    ]


REFUSED: list[tuple[str, str, int, str]] = [
    ("GET", "/tasks/unknown", 404, "TASK_NOT_FOUND"),
    ("POST", "/tasks/unknown:cancel", 404, "TASK_NOT_FOUND"),
    ("GET", "/extendedAgentCard", 400, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
    ("GET", "/tasks/unknown/pushNotificationConfigs", 404, "TASK_NOT_FOUND"),
]


@pytest.mark.parametrize(("method", "path", "status", "reason"), REFUSED)
async def test_errors_over_http_json_have_their_status_and_reason(
    server: RunningSystem, method: str, path: str, status: int, reason: str
) -> None:
    found, body = await http(server, method, path)
    error = error_in(body)
    assert (found, error["code"]) == (status, status)
    assert objects_in(error["details"])[0]["reason"] == reason


async def test_a_finished_task_cannot_be_canceled_or_followed_over_http_json(server: RunningSystem) -> None:
    _, sent = await http(server, "POST", "/message:send", {"message": text("hi")})
    task = sent["task"]
    assert isinstance(task, dict)
    for action, reason in (("cancel", "TASK_NOT_CANCELABLE"), ("subscribe", "UNSUPPORTED_OPERATION")):
        status, body = await http(server, "POST", f"/tasks/{task['id']}:{action}")
        assert (status, objects_in(error_in(body)["details"])[0]["reason"]) == (400, reason)
    unknown, body = await http(server, "POST", "/message:unknown", {})
    assert (unknown, error_in(body)["status"]) == (404, "NOT_FOUND")


@pytest.mark.embedded_only
async def test_a_setting_gives_errors_over_http_json_the_statuses_of_1_0_0(tmp_path: Path) -> None:
    async with running_system(tmp_path / "data", a2a_http_statuses="1.0.0") as system:
        await system.save({"name": "front", "publish": True, "steps": {"only": {"set": {"x": 1}}}})
        _, sent = await http(system, "POST", "/message:send", {"message": text("hi")})
        task = sent["task"]
        assert isinstance(task, dict)
        status, body = await http(system, "POST", f"/tasks/{task['id']}:cancel")
        error = error_in(body)
        assert (status, error["code"], error["status"]) == (409, 409, "FAILED_PRECONDITION")
        status, _ = await http(system, "POST", f"/tasks/{task['id']}:subscribe")
        assert status == 400


async def test_the_catalog_lists_cards_and_finds_them_by_skill_and_tag(server: RunningSystem) -> None:
    path = "//a2a/workflows/front/.well-known/agent-card.json"
    card = (await server.call("GET", path)).json
    for query in ("", "?skill=s", "?skill=S", "?tag=t", "?skill=s&tag=t"):
        assert card in objects_in((await server.call("GET", f"//a2a/catalog{query}")).json["items"])
    for query in ("?skill=other", "?tag=s", "?skill=s&tag=other"):
        page = await server.call("GET", f"//a2a/catalog{query}")
        assert page.json == {"items": [], "next_cursor": None}
    assert (await server.call("GET", "//a2a/catalog?limit=0")).status == 422
    assert (await server.call("POST", "//a2a/catalog")).status == 405


async def test_the_pages_of_the_catalog_have_every_card_once(server: RunningSystem) -> None:
    step: JsonObject = {"agent": "A"}
    for number in range(3):
        await server.save({"name": f"listed-{number}", "publish": True, "steps": {"only": step}})
        await server.save({"name": f"private-{number}", "steps": {"only": step}})
    names: list[object] = []
    cursor: Json = ""
    while cursor is not None:
        query = f"&cursor={cursor}" if cursor else ""
        page = (await server.call("GET", f"//a2a/catalog?limit=2{query}")).json
        items = objects_in(page["items"])
        assert len(items) <= 2
        names += [card["name"] for card in items]
        cursor = page["next_cursor"]
    assert sorted(map(str, names)) == ["Front", "listed-0", "listed-1", "listed-2"]
