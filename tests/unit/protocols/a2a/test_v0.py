"""A2A before 1.0, beyond what the golden files show: who streams, who can be asked, what cannot be sent."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import AgentTask
from trunkline.protocols import (
    A2AV01Adapter,
    A2AV03Adapter,
    AgentAnswer,
    Failed,
    JsonRpc2Adapter,
    JsonRpcCallAdapter,
    ProtocolAdapter,
    ProtocolTranslationError,
    SimpleA2AAdapter,
    Succeeded,
)

TASK = AgentTask(task_id="t", input_data="q")
WITHOUT_STREAMS: list[ProtocolAdapter] = [
    SimpleA2AAdapter(),
    JsonRpc2Adapter(),
    JsonRpcCallAdapter(),
    A2AV01Adapter(),
]


def answered(body: Json, status: int = 200) -> AgentAnswer:
    return AgentAnswer(status=status, headers={}, body=encode(body))


@pytest.mark.parametrize("adapter", WITHOUT_STREAMS)
def test_only_the_later_ones_stream(adapter: ProtocolAdapter) -> None:
    assert adapter.encode_stream(TASK) is None
    assert adapter.encode_resubscribe(TASK, "r") is None
    with pytest.raises(NotImplementedError):
        adapter.read_stream(TASK)


def test_an_agent_of_0_3_cannot_be_asked_for_a_task_that_it_has_not_named() -> None:
    assert A2AV03Adapter().encode_find(TASK) is None


@pytest.mark.parametrize("state", ["working", "completed", "failed", "input-required"])
def test_an_agent_of_0_1_has_the_task_under_our_name(state: str) -> None:
    body: JsonObject = {"jsonrpc": "2.0", "id": "t", "result": {"id": "t", "status": {"state": state}}}
    assert A2AV01Adapter().decode_find(answered(body), TASK) == "t"


def test_an_agent_of_0_1_says_that_it_does_not_have_the_task() -> None:
    body: JsonObject = {"jsonrpc": "2.0", "id": "t", "error": {"code": -32001, "message": "Task not found"}}
    assert A2AV01Adapter().decode_find(answered(body), TASK) is None


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (
            answered({"jsonrpc": "2.0", "id": "t", "error": {"code": -32603, "message": "Oops"}}),
            "agent_jsonrpc_error",
        ),
        (answered("gone", 503), "agent_http_error"),
        (answered([]), "agent_answer_malformed"),
    ],
)
def test_whether_an_agent_of_0_1_has_the_task_may_stay_open(answer: AgentAnswer, code: str) -> None:
    with pytest.raises(ProtocolTranslationError) as raised:
        A2AV01Adapter().decode_find(answer, TASK)
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("input_data", "complaint"),
    [
        ("lone \ud800 surrogate", "The input cannot be sent in a2a-0.3"),
        ({"parts": []}, "parts is empty"),
        ({"parts": [{"raw": "***"}]}, "parts[0] has bytes that are not base64"),
        ({"parts": ["a", {"txt": "b"}]}, "parts[1] has a field 'txt' that parts do not support"),
    ],
)
def test_what_cannot_be_sent_cannot_be_streamed_either(input_data: Json, complaint: str) -> None:
    task = AgentTask(task_id="t", input_data=input_data)
    adapter = A2AV03Adapter()
    for encode_it in (adapter.encode, adapter.encode_stream):
        with pytest.raises(ProtocolTranslationError) as raised:
            encode_it(task)
        assert raised.value.code == "request_not_encodable"
        assert complaint in str(raised.value)


WHOLE: JsonObject = {
    "kind": "task",
    "id": "r",
    "contextId": "c",
    "status": {
        "state": "completed",
        "message": {"role": "agent", "parts": [{"kind": "text", "text": "Done."}]},
    },
    "artifacts": [
        {
            "artifactId": "a",
            "name": "answer",
            "parts": [{"kind": "text", "text": "42"}],
            "metadata": {"n": 1},
        },
        {"artifactId": "b", "parts": [{"kind": "data", "data": {"unit": None}}]},
    ],
    "history": [{"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "q"}]}],
    "metadata": {"usage": {"input_tokens": 3}},
}


@pytest.mark.parametrize("without", ["", "contextId", "history", "metadata", "artifacts", "id"])
def test_a_completed_task_means_the_same_in_one_event_as_without_a_stream_and_piece_by_piece(
    without: str,
) -> None:
    result = {name: value for name, value in WHOLE.items() if name != without}
    at_once, folded = A2AV03Adapter().read_stream(TASK), A2AV03Adapter().read_stream(TASK)
    news = at_once.take(encode({"jsonrpc": "2.0", "id": "t", "result": result}))
    assert news.is_over
    assert (news.remote_task_id, news.context_id) == (result.get("id"), result.get("contextId"))
    # A field that no version of A2A has: such a task is read tolerantly.
    folded.take(encode({"jsonrpc": "2.0", "id": "t", "result": {**result, "extra": True}}))
    plain = A2AV03Adapter().decode(answered({"jsonrpc": "2.0", "id": "t", "result": result}), TASK)
    outcomes = [reading.outcome() for reading in (at_once, folded)]
    assert isinstance(plain, Succeeded)
    for outcome in outcomes:
        assert isinstance(outcome, Succeeded)
        assert decode(outcome.output) == decode(plain.output)
        assert replace(outcome, output=b"") == replace(plain, output=b"")


def test_a_task_in_one_event_keeps_the_conversation_that_it_was_begun_in() -> None:
    result = {name: value for name, value in WHOLE.items() if name != "contextId"}
    reading = A2AV03Adapter().read_stream(AgentTask(task_id="t", input_data="q", context_id="earlier"))
    reading.take(encode({"jsonrpc": "2.0", "id": "t", "result": result}))
    assert reading.outcome().context_id == "earlier"


def test_ten_thousand_pieces_are_one_text() -> None:
    reading = A2AV03Adapter().read_stream(TASK)
    for number in range(10_000):
        artifact: JsonObject = {"artifactId": "a", "parts": [{"kind": "text", "text": "word "}]}
        event: JsonObject = {
            "kind": "artifact-update",
            "taskId": "r",
            "artifact": artifact,
            "append": number > 0,
        }
        reading.take(encode({"jsonrpc": "2.0", "id": "t", "result": event}))
    done: JsonObject = {
        "kind": "status-update",
        "taskId": "r",
        "status": {"state": "completed"},
        "final": True,
    }
    assert reading.take(encode({"jsonrpc": "2.0", "id": "t", "result": done})).is_over
    outcome = reading.outcome()
    assert isinstance(outcome, Succeeded)
    output = decode(outcome.output)
    assert isinstance(output, dict)
    assert output["text"] == "word " * 10_000


@pytest.mark.parametrize(
    ("code", "message", "unknown"),
    [
        (-32001, "Task not found", True),
        # a2a-js 0.3 loaded as CommonJS.
        (-32603, "Task not found: 85a12ef7", True),
        (-32603, "Internal error", False),
        (-32602, "Task not found", False),
    ],
)
def test_an_agent_of_0_3_says_that_it_does_not_know_the_task(code: int, message: str, unknown: bool) -> None:
    body: JsonObject = {"jsonrpc": "2.0", "id": "t", "error": {"code": code, "message": message}}
    outcome = A2AV03Adapter().decode(answered(body), TASK)
    assert isinstance(outcome, Failed)
    assert outcome.task_unknown is unknown
