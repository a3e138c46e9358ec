"""JSON-RPC 2.0 beyond what the golden files show: the adapter's methods, hostile bodies, size."""

from __future__ import annotations

import sys

import pytest

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.messages import AgentTask
from trunkline.protocols import (
    AgentAnswer,
    Failed,
    Interrupted,
    JsonRpc2Adapter,
    ProtocolTranslationError,
    Succeeded,
    Working,
)
from trunkline.protocols.answer_json import WHOLE_CHECK_BYTES

JUNK: list[Json] = [None, 1, "x", [], [1], {}, [None], {"parts": 1}, [{"parts": [1, None, {}]}]]
TASK = AgentTask(task_id="t", input_data={"query": "q"})


def completed(artifacts: Json) -> JsonObject:
    return {"jsonrpc": "2.0", "id": "t", "result": {"status": {"state": "completed"}, "artifacts": artifacts}}


def decoded(body: bytes, status: int = 200) -> object:
    return JsonRpc2Adapter().decode(AgentAnswer(status=status, headers={}, body=body), TASK)


def output_of(body: bytes) -> Json:
    outcome = decoded(body)
    assert isinstance(outcome, Succeeded)
    return decode(outcome.output)


def symptom_of(body: bytes) -> str:
    with pytest.raises(ProtocolTranslationError) as raised:
        decoded(body)
    assert raised.value.code == "agent_answer_malformed"
    assert raised.value.original_data == body
    return str(raised.value)


@pytest.mark.parametrize(("value", "text"), [({}, "{}"), ("", ""), (None, "null")])
def test_empty_inputs_become_one_text_part(value: Json, text: str) -> None:
    request = JsonRpc2Adapter().to_agent_request(AgentTask(task_id="t", input_data=value))
    assert request["params"] == {
        "message": {
            "kind": "message",
            "role": "user",
            "messageId": "msg-t",
            "parts": [{"kind": "text", "text": text}],
        }
    }


def test_the_example_of_the_analysis_works_on_dicts() -> None:
    adapter = JsonRpc2Adapter()
    request = adapter.to_agent_request(
        AgentTask(task_id="test-123", input_data={"query": "What can you do?"})
    )
    assert (request["jsonrpc"], request["id"], request["method"]) == ("2.0", "test-123", "message/send")
    result = adapter.from_agent_response(
        {
            "id": "test-123",
            "jsonrpc": "2.0",
            "result": {
                "status": {"state": "completed"},
                "artifacts": [{"parts": [{"kind": "text", "text": "I can help"}]}],
            },
        },
        "test-123",
    )
    assert result == {
        "task_id": "test-123",
        "status": "success",
        "output": {
            "text": "I can help",
            "artifacts": [{"parts": [{"kind": "text", "text": "I can help"}]}],
        },
        "error": None,
    }


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"id": "t", "result": {}}, "Response missing 'jsonrpc' field"),
        ({"jsonrpc": "1.0", "id": "t", "result": {}}, "Unsupported JSON-RPC version: 1.0"),
        ({"jsonrpc": "2.0", "id": "t"}, "Response missing both 'result' and 'error'"),
        ({"jsonrpc": "2.0", "id": "x", "result": {}}, "Response ID mismatch: expected t, got x"),
        ({}, "Response missing 'jsonrpc' field"),
    ],
)
def test_a_malformed_dict_is_raised_with_the_seeds_words(response: JsonObject, message: str) -> None:
    with pytest.raises(ProtocolTranslationError) as raised:
        JsonRpc2Adapter().from_agent_response(response, "t")
    assert str(raised.value) == message
    assert (raised.value.protocol, raised.value.direction) == ("jsonrpc-2.0", "response")


@pytest.mark.parametrize(
    ("response", "error"),
    [
        ({"error": {"code": -32600, "message": "Invalid Request"}}, "JSON-RPC Error -32600: Invalid Request"),
        ({"result": {"status": {"state": "failed"}}}, "Task state: failed"),
        ({"result": {"id": "r", "status": {"state": "working"}}}, "Task state: working"),
        (
            {"result": {"id": "r", "status": {"state": "input-required", "message": "City?"}}},
            "Task state: input-required: City?",
        ),
    ],
)
def test_whatever_is_not_success_is_an_error_without_output(response: JsonObject, error: str) -> None:
    envelope: JsonObject = {"jsonrpc": "2.0", "id": "t"}
    assert JsonRpc2Adapter().from_agent_response(envelope | response, "t") == {
        "task_id": "t",
        "status": "error",
        "output": None,
        "error": error,
    }


def test_only_version_2_0_exists() -> None:
    with pytest.raises(ValueError, match=r"Unsupported JSON-RPC version: 3\.0"):
        JsonRpc2Adapter(version="3.0")


def test_an_input_that_is_no_json_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ProtocolTranslationError) as raised:
        JsonRpc2Adapter().encode(AgentTask(task_id="t", input_data="lone \ud800 surrogate"))
    assert (raised.value.direction, raised.value.code) == ("request", "request_not_encodable")


def nested(depth: int, opening: bytes, closing: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":"t","result":' + opening * depth + b"1" + closing * depth + b"}"


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_an_answer_that_is_nested_too_deeply_is_malformed(opening: bytes, closing: bytes) -> None:
    body = nested(100_000, opening, closing)
    assert symptom_of(body) == "malformed JSON-RPC response: The answer is nested too deeply"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="later Pythons count the depth of C code apart")
def test_a_depth_that_only_just_fits_here_is_refused_for_those_who_read_it_later() -> None:
    body = nested(sys.getrecursionlimit() - 90, b"[", b"]")
    assert symptom_of(body) == "malformed JSON-RPC response: The answer is nested too deeply"


def test_bytes_that_are_not_utf8_do_not_slip_through() -> None:
    body = encode(completed([{"parts": [{"kind": "data", "data": {"x": "MARK"}}]}])).replace(b"MARK", b"\xff")
    assert symptom_of(body).startswith("malformed JSON-RPC response: The answer is not UTF-8")
    large = body + b" " * WHOLE_CHECK_BYTES
    assert symptom_of(large).startswith("malformed JSON-RPC response: The answer is not UTF-8")


@pytest.mark.parametrize("number", [b"1e999", b"-1e400", b"1" * 5_000])
def test_a_number_out_of_range_is_malformed(number: bytes) -> None:
    body = encode(completed([{"parts": [{"kind": "data", "data": {"x": 77777}}]}])).replace(b"77777", number)
    assert "out of range" in symptom_of(body)


def test_a_number_out_of_range_deep_in_a_large_question_loses_only_itself() -> None:
    asked: Json = {"role": "agent", "parts": [{"kind": "data", "data": {"x": 77777}}]}
    status: Json = {"state": "input-required", "message": asked}
    result: Json = {"kind": "task", "id": "r", "status": status, "metadata": {"x": "y" * WHOLE_CHECK_BYTES}}
    body = encode({"jsonrpc": "2.0", "id": "task-123", "result": result}).replace(b"77777", b"1e999")
    outcome = JsonRpc2Adapter().decode(AgentAnswer(200, {}, body), AgentTask(task_id="task-123"))
    assert isinstance(outcome, Interrupted)
    assert outcome.question.data is None


def test_a_byte_order_mark_is_overlooked() -> None:
    body = b"\xef\xbb\xbf" + encode(completed([]))
    assert output_of(body) == {"status": {"state": "completed"}, "artifacts": []}


def test_of_duplicate_keys_the_last_one_counts() -> None:
    body = b'{"jsonrpc":"1.0","jsonrpc":"2.0","id":"t","result":{"role":"agent","parts":[{"text":"x"}]}}'
    assert output_of(body) == {"text": "x", "response": "x"}


def test_a_large_answer_reads_like_a_small_one() -> None:
    rows: Json = [{"n": n, "name": f"row {n}"} for n in range(10_000)]
    artifacts: Json = [{"artifactId": "a", "parts": [{"kind": "data", "data": {"rows": rows}}]}]
    assert output_of(encode(completed(artifacts))) == {"data": {"rows": rows}, "artifacts": artifacts}


@pytest.mark.parametrize(("text", "data"), [("42", 42), ("true", True), ("null", None), ('"s"', "s")])
def test_any_json_text_is_also_data(text: str, data: Json) -> None:
    output = output_of(encode(completed([{"parts": [{"kind": "text", "text": text}]}])))
    assert isinstance(output, dict)
    assert (output["text"], output["data"]) == (text, data)


@pytest.mark.parametrize("text", ["", "Hello", "{not json}", "1e999", "nothing", "[1,", "12 monkeys"])
def test_other_text_has_no_data(text: str) -> None:
    output = output_of(encode(completed([{"parts": [{"kind": "text", "text": text}]}])))
    assert isinstance(output, dict)
    assert output["text"] == text
    assert "data" not in output


def test_a_poll_is_read_like_the_first_answer() -> None:
    adapter = JsonRpc2Adapter()
    working = decoded(
        encode({"jsonrpc": "2.0", "id": "t", "result": {"id": "r", "status": {"state": "working"}}})
    )
    assert isinstance(working, Working)
    poll = adapter.encode_poll(TASK, working.remote_task_id)
    assert poll is not None
    assert decode(poll.body) == {"jsonrpc": "2.0", "id": "t", "method": "tasks/get", "params": {"id": "r"}}


def test_an_agent_that_takes_the_input_itself_has_no_tasks_to_ask_for() -> None:
    adapter = JsonRpc2Adapter(method="execute_task", params="input")
    assert adapter.encode_poll(TASK, "r") is None
    assert adapter.encode_cancel(TASK, "r") is None


def test_a_task_and_a_message_next_to_it_are_both_read() -> None:
    result: Json = {
        "task": {"id": "r", "status": {"state": "completed"}},
        "message": {"role": "agent", "parts": [{"text": "Hello"}]},
    }
    assert output_of(encode({"jsonrpc": "2.0", "id": "t", "result": result})) == {
        "text": "Hello",
        "response": "Hello",
    }


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("field", ["artifacts", "history", "metadata", "contextId", "id", "kind", "parts"])
def test_a_field_of_the_wrong_type_does_not_hide_the_rest(field: str, junk: Json) -> None:
    status: JsonObject = {"state": "completed", "message": {"role": "agent", "parts": [{"text": "said"}]}}
    body: JsonObject = {"jsonrpc": "2.0", "id": "t", "result": {"status": status, field: junk}}
    output = output_of(encode(body))
    assert isinstance(output, dict)
    assert output["text"] == "said"


def test_a_failure_with_an_answer_in_no_dialect_keeps_the_status() -> None:
    outcome = decoded(b"\xff\xfe", 500)
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, outcome.error.http_status) == ("agent_http_error", 500)
