"""What is refused, with which code, and that the answer has the request's id."""

from __future__ import annotations

import pytest
from tests.unit.agentkit.asgi import begin, call, post, result_of
from tests.unit.agentkit.versions import V03, V1, VERSIONS, Version

from trunkline.agentkit import Agent, Artifact, Task
from trunkline.jsontypes import Json, JsonObject, decode, encode

pytestmark = pytest.mark.anyio

MESSAGE: JsonObject = V03.message({"text": "tides"})


@pytest.fixture
def agent() -> Agent:
    agent = Agent("Echo", max_body_bytes=100_000)

    @agent
    def echo(task: Task) -> str:
        return task.text

    return agent


def request(method: str, params: Json, call_id: Json = 7) -> JsonObject:
    return {"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}


def sending(**fields: Json) -> JsonObject:
    return request("message/send", {"message": {**MESSAGE, **fields}})


def with_part(part: Json) -> JsonObject:
    return sending(parts=[part])


def configured(configuration: Json) -> JsonObject:
    return request("message/send", {"message": MESSAGE, "configuration": configuration})


DEEP = b'{"jsonrpc":"2.0","id":7,"method":"message/send","params":' + b'{"a":' * 300 + b"1" + b"}" * 301
VERY_DEEP = b"[" * 90_000

REFUSED: list[tuple[str, JsonObject | list[Json] | bytes, int, Json]] = [
    ("nothing", b"", -32700, None),
    ("no JSON", b"{not json", -32700, None),
    ("no UTF-8", b'"\xff"', -32700, None),
    ("a number", b"1", -32600, None),
    ("an empty object", {}, -32600, None),
    ("an empty batch", [], -32600, None),
    ("too large a batch", b"[" + b"1," * 100 + b"1]", -32600, None),
    ("too deep", DEEP, -32600, None),
    ("far too deep", VERY_DEEP, -32600, None),
    ("no version", {"id": 7, "method": "message/send"}, -32600, 7),
    ("another version", {"jsonrpc": "1.0", "id": 7, "method": "message/send"}, -32600, 7),
    ("no id", {"jsonrpc": "2.0", "method": "message/send"}, -32600, None),
    ("an id that is a list", {"jsonrpc": "2.0", "id": [1], "method": "message/send"}, -32600, None),
    ("an id that is true", {"jsonrpc": "2.0", "id": True, "method": "message/send"}, -32600, None),
    ("no method", {"jsonrpc": "2.0", "id": 7}, -32600, 7),
    ("a method that is a number", {"jsonrpc": "2.0", "id": 7, "method": 1}, -32600, 7),
    ("an unknown method", request("message/sing", {}), -32601, 7),
    ("no params", {"jsonrpc": "2.0", "id": 7, "method": "message/send"}, -32602, 7),
    ("params that are a list", request("message/send", [1]), -32602, 7),
    ("params that are null", request("message/send", None), -32602, 7),
    ("no message", request("message/send", {}), -32602, 7),
    ("a message that is a text", request("message/send", {"message": "hi"}), -32602, 7),
    ("no messageId", sending(messageId=None), -32602, 7),
    ("a messageId that is a number", sending(messageId=5), -32602, 7),
    ("a messageId without end", sending(messageId="m" * 5000), -32602, 7),
    ("another role", sending(role="agent"), -32602, 7),
    ("metadata that are a text", sending(metadata="x"), -32602, 7),
    ("no parts", sending(parts=[]), -32602, 7),
    ("parts that are an object", sending(parts={}), -32602, 7),
    ("a part that is null", with_part(None), -32602, 7),
    ("a part without a content", with_part({"kind": "text"}), -32602, 7),
    ("a text that is a number", with_part({"kind": "text", "text": 1}), -32602, 7),
    ("a part of an unknown kind", with_part({"kind": "smell"}), -32602, 7),
    ("a file without a content", with_part({"kind": "file", "file": {}}), -32602, 7),
    ("a file that is a text", with_part({"kind": "file", "file": "x"}), -32602, 7),
    ("bytes that are no base64", with_part({"raw": "!!"}), -32602, 7),
    ("a taskId that is an object", sending(taskId={}), -32602, 7),
    ("a task that nobody knows", sending(taskId="t-9"), -32001, 7),
    ("a configuration that is a list", configured([]), -32602, 7),
    ("a flag that is a text", configured({"blocking": "no"}), -32602, 7),
    ("a negative length", request("tasks/get", {"id": "t", "historyLength": -1}), -32602, 7),
    ("a wish for pushes", configured({"pushNotificationConfig": {"url": "https://a.example"}}), -32003, 7),
    ("a get without an id", request("tasks/get", {}), -32602, 7),
    ("a get of a task that nobody knows", request("tasks/get", {"id": "t-9"}), -32001, 7),
    ("a cancel of a task that nobody knows", request("CancelTask", {"id": "t-9"}), -32001, 7),
    ("a stream of a task that nobody knows", request("SubscribeToTask", {"id": "t-9"}), -32001, 7),
    ("a list of everything", request("ListTasks", {}), -32602, 7),
    ("pushes of 0.3", request("tasks/pushNotificationConfig/set", {}), -32003, 7),
    ("pushes of 1.0", request("CreateTaskPushNotificationConfig", {}), -32003, 7),
    ("an extended card", request("GetExtendedAgentCard", {}), -32007, 7),
]


@pytest.mark.parametrize(("_", "body", "code", "call_id"), REFUSED, ids=[row[0] for row in REFUSED])
async def test_a_wrong_request_gets_its_code_and_its_id(
    agent: Agent, _: str, body: JsonObject | list[Json] | bytes, code: int, call_id: Json
) -> None:
    answer = await post(agent, body)
    assert answer.status == 200
    error = answer.json.get("error")
    assert isinstance(error, dict)
    assert (error["code"], answer.json["id"]) == (code, call_id)
    assert len(str(error["message"])) > 10
    assert "result" not in answer.json


@pytest.mark.parametrize("call_id", ["a", "", 0, 1.5, None], ids=repr)
async def test_an_answer_has_the_id_of_its_request(agent: Agent, call_id: Json) -> None:
    answer = (await post(agent, request("message/send", {"message": MESSAGE}, call_id))).json
    assert "result" in answer
    assert encode(answer["id"]) == encode(call_id)


async def test_a_request_that_is_too_large_is_not_read_to_its_end(agent: Agent) -> None:
    answer = await post(agent, b" " * 100_001)
    assert answer.status == 413
    assert "100,000" in str(answer.json)


async def test_a_batch_is_answered_one_by_one(agent: Agent) -> None:
    first = request("message/send", {"message": MESSAGE}, 1)
    second = request("no/such", {}, 2)
    third = request("message/stream", {"message": V03.message({"text": "b"}, message_id="m-2")}, 3)
    answers = decode((await post(agent, [first, second, third, "x"])).body)
    assert isinstance(answers, list)
    found = [item for item in answers if isinstance(item, dict)]
    assert [item["id"] for item in found] == [1, 2, 3, None]
    assert "result" in found[0]
    codes = [item["error"]["code"] for item in found[1:] if isinstance(item["error"], dict)]
    assert codes == [-32601, -32600, -32600]


@pytest.mark.parametrize(
    ("version", "is_spoken"), [("", True), ("0.3", True), ("1.0", True), ("1.0.1", True), ("2.0", False)]
)
async def test_an_unsupported_version_is_refused(agent: Agent, version: str, *, is_spoken: bool) -> None:
    body = request("SendMessage", V1.params())
    answer = (await post(agent, body, headers={"a2a-version": version})).json
    if is_spoken:
        assert "result" in answer
    else:
        error = answer["error"]
        assert isinstance(error, dict)
        assert error["code"] == -32009
        assert "VERSION_NOT_SUPPORTED" in str(error["data"])


async def test_errors_of_1_0_say_their_reason_to_programs(agent: Agent) -> None:
    error = (await call(agent, "GetTask", {"id": "t-9"}))["error"]
    assert isinstance(error, dict)
    info: JsonObject = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "TASK_NOT_FOUND",
        "domain": "a2a-protocol.org",
    }
    assert error["data"] == [info]


SIMPLE: list[tuple[str, JsonObject, str]] = [
    ("no input", {"task_id": "t"}, "input is missing"),
    ("an id that is null", {"task_id": None, "input": {}}, "task_id"),
    ("an empty id", {"task_id": "", "input": {}}, "task_id"),
]


@pytest.mark.parametrize(("_", "body", "reason"), SIMPLE, ids=[row[0] for row in SIMPLE])
async def test_an_invalid_simple_a2a_request_gets_a_simple_a2a_error(
    agent: Agent, _: str, body: JsonObject, reason: str
) -> None:
    answer = await post(agent, body)
    assert answer.status == 400
    assert reason in str(answer.json.pop("error"))
    assert answer.json["status"] == "error"
    assert (answer.json["task_id"], answer.json["output"]) == (body["task_id"], None)


@pytest.mark.parametrize(
    ("given", "seen"), [("tides", "tides"), ("", ""), (None, ""), (7, "7"), ([], "[]"), ({"query": "q"}, "q")]
)
async def test_simple_a2a_takes_any_input(agent: Agent, given: Json, seen: str) -> None:
    answer = await post(agent, {"task_id": "t", "input": given})
    assert answer.json["status"] == "success"
    assert answer.json["output"] == {"text": seen}


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
async def test_how_much_history_is_sent_is_the_callers_choice(agent: Agent, version: Version) -> None:
    task = version.task(await result_of(agent, version.send, version.params()))
    none = await result_of(agent, version.get, {"id": task["id"], "historyLength": 0})
    one = await result_of(agent, version.get, {"id": task["id"], "historyLength": 1})
    assert isinstance(one["history"], list)
    assert len(one["history"]) == 1
    # What means nothing in 0.3 means none in 1.0.
    assert none["history"] == ([] if version is V1 else task["history"])


async def test_the_history_of_message_send_ends_with_the_answer(agent: Agent) -> None:
    task = await result_of(agent, "message/send", V03.params("tides"))
    assert isinstance(task["history"], list)
    heard, said = task["history"]
    assert isinstance(heard, dict)
    assert isinstance(said, dict)
    assert (heard["role"], heard["parts"]) == ("user", [{"kind": "text", "text": "tides"}])
    assert (said["role"], said["parts"]) == ("agent", [{"kind": "text", "text": "tides"}])
    assert (await result_of(agent, "tasks/get", {"id": task["id"]}))["history"] == task["history"]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
async def test_a_task_that_is_over_takes_no_message_and_no_cancel(agent: Agent, version: Version) -> None:
    task = version.task(await result_of(agent, version.send, version.params()))
    more = await call(agent, version.send, version.params("more", "m-2", taskId=task["id"]))
    cancel = await call(agent, version.cancel, {"id": task["id"]})
    codes = [answer["error"]["code"] for answer in (more, cancel) if isinstance(answer["error"], dict)]
    assert codes == [-32004, -32002]


async def test_tasks_of_a_context_are_listed_in_pages(agent: Agent) -> None:
    for number in range(3):
        await result_of(agent, "SendMessage", V1.params("x", f"m-{number}", contextId="c-1"))
    await result_of(agent, "SendMessage", V1.params("x", "other", contextId="c-2"))
    page = await result_of(agent, "ListTasks", {"contextId": "c-1", "pageSize": 2})
    token = page["nextPageToken"]
    rest = await result_of(agent, "ListTasks", {"contextId": "c-1", "pageSize": 2, "pageToken": token})
    listed = encode([page["tasks"], rest["tasks"]]).decode()
    assert [listed.count(f'"messageId":"{name}"') for name in ("m-0", "m-1", "m-2", "other")] == [1, 1, 1, 0]
    assert (page["totalSize"], rest["nextPageToken"]) == (3, "")
    assert "artifacts" not in str(page)
    with_state: JsonObject = {"contextId": "c-1", "status": "TASK_STATE_WORKING"}
    assert (await result_of(agent, "ListTasks", with_state))["tasks"] == []


async def test_a_page_in_a_browser_is_turned_away(agent: Agent) -> None:
    body = request("message/send", {"message": MESSAGE})
    answer = await post(agent, body, headers={"origin": "https://evil.example"})
    assert answer.status == 403


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/", 404), ("PUT", "/", 405)])
async def test_other_requests_get_an_error_that_says_what_to_send(
    agent: Agent, method: str, path: str, status: int
) -> None:
    answer = await begin(agent, method=method, path=path).answer()
    assert answer.status == status
    assert "POST" in str(answer.json["error"])


async def test_an_agent_without_a_handler_says_so() -> None:
    error = (await call(Agent("Empty"), "message/send", {"message": MESSAGE}))["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32603
    assert "@agent" in str(error["message"])


def test_what_cannot_be_a_handler_or_an_artifact_is_refused_where_it_is_written() -> None:
    def answer(task: Task) -> object:
        yield task.text

    with pytest.raises(TypeError, match="async def"):
        Agent("Test").handler(answer)
    with pytest.raises(ValueError, match="exactly one"):
        Artifact("nothing")


@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/agent/.well-known/agent.json"])
async def test_the_card_names_the_address_at_which_it_was_asked_for(agent: Agent, path: str) -> None:
    answer = await begin(agent, method="GET", path=path).answer()
    url = "https://agent.example/agent" if path.startswith("/agent") else "https://agent.example/"
    assert answer.json["url"] == url
    interfaces = answer.json["supportedInterfaces"]
    assert interfaces == [
        {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
    ]
    again = await begin(
        agent, method="GET", path=path, headers={"if-none-match": answer.headers["etag"]}
    ).answer()
    assert (again.status, again.body) == (304, b"")


async def test_the_card_names_the_address_that_the_author_has_given() -> None:
    agent = Agent("Echo", url="https://public.example/echo", version="2.1.0", description="Repeats.")
    card = (await begin(agent, method="GET", path="/.well-known/agent-card.json").answer()).json
    assert (card["url"], card["version"]) == ("https://public.example/echo", "2.1.0")
    assert b"Repeats." in encode(card["skills"])
