"""The examples after their migration: JSON-RPC 2.0 as the guide has it, whatever they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import pytest
from tests.examples.conftest import Caller

from trunkline.jsontypes import Json, JsonObject, decode
from trunkline.messages import AgentTask
from trunkline.protocols import JsonRpc2Adapter

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
CALL_ID = "c-1"
LEFT_OUT = object()


def text_part(text: str) -> JsonObject:
    return {"kind": "text", "text": text}


def message(part: Json, **fields: Json) -> JsonObject:
    return {"message": {"role": "user", "messageId": "m-1", "parts": [part], **fields}}


def call(**changes: object) -> JsonObject:
    whole: dict[str, object] = {
        "jsonrpc": "2.0",
        "id": CALL_ID,
        "method": "message/send",
        "params": message(text_part('{"query": "tides"}')),
    }
    changed = {**whole, **changes}
    return {name: value for name, value in changed.items() if value is not LEFT_OUT}  # pyright: ignore[reportReturnType] - JSON by now


def answered(told: Json) -> Json:
    """An answer in which texts that are JSON are read as well: spaces between its words mean nothing."""
    if isinstance(told, list):
        return [answered(item) for item in told]
    if not isinstance(told, dict):
        return told
    return {key: _text(value) if key == "text" else answered(value) for key, value in told.items()}


def _text(value: Json) -> Json:
    return decode(value.encode()) if isinstance(value, str) and value.startswith("{") else value


def completed(part: JsonObject, result: str) -> Json:
    told: JsonObject = {"kind": "text", "text": {"result": result}}
    return {
        "status": {"state": "completed"},
        "artifacts": [{"parts": [told]}],
        "history": [{"role": "user", "parts": [answered(part)]}, {"role": "agent", "parts": [told]}],
    }


def assert_answers(after: Caller) -> None:
    answer = after.post(call())
    assert answer.status == 200
    assert answered(answer.json["result"]) == completed(text_part('{"query": "tides"}'), "Processed: tides")


class Refused(NamedTuple):
    body: Json | bytes
    codes: tuple[int, ...]
    call_id: Json = None
    status: int = 400


def invalid(**changes: object) -> Refused:
    return Refused(call(**changes), (INVALID_REQUEST,), CALL_ID)


def without_id(body: Json) -> Refused:
    return Refused(body, (INVALID_REQUEST,))


def params(value: object) -> Refused:
    return Refused(call(params=value), (INVALID_PARAMS,), CALL_ID)


def failing(part: JsonObject) -> Refused:
    return Refused(call(params=message(part)), (INTERNAL,), CALL_ID, 500)


DEEP = b"[" * 100_000 + b"]" * 100_000

REFUSED: Mapping[str, Refused] = {
    "nothing": Refused(b"", (PARSE_ERROR,)),
    "no JSON": Refused(b'{"jsonrpc": ', (PARSE_ERROR,)),
    "two values": Refused(b"{} {}", (PARSE_ERROR,)),
    "no UTF-8": Refused(b'{"jsonrpc": "2.0", "id": "\xff", "method": "message/send"}', (PARSE_ERROR,)),
    "NaN": Refused(b'{"jsonrpc": "2.0", "id": NaN, "method": "message/send"}', (PARSE_ERROR,)),
    # Some read it and find no object, others stop on the way down.
    "deep": Refused(DEEP, (PARSE_ERROR, INVALID_REQUEST)),
    "null": without_id(None),
    "number": without_id(7),
    "string": without_id("message/send"),
    "empty batch": without_id([]),
    "batch": without_id([call(), call()]),
    "notification": without_id(call(id=LEFT_OUT)),
    "id an object": without_id(call(id={"n": 1})),
    "id a list": without_id(call(id=["c-1"])),
    "id true": without_id(call(id=True)),
    "no jsonrpc": invalid(jsonrpc=LEFT_OUT),
    "jsonrpc 1.0": invalid(jsonrpc="1.0"),
    "jsonrpc a number": invalid(jsonrpc=2.0),
    "Simple A2A": without_id({"task_id": "t-1", "input": {"query": "tides"}}),
    "no method": invalid(method=LEFT_OUT),
    "method a number": invalid(method=7),
    "method null": invalid(method=None),
    "unknown method": Refused(call(method="tasks/frobnicate"), (NO_METHOD,), CALL_ID),
    "method in capitals": Refused(call(method="MESSAGE/SEND"), (NO_METHOD,), CALL_ID),
    "Method": invalid(method=LEFT_OUT, Method="message/send"),
    "no params": params(LEFT_OUT),
    "params null": params(None),
    "params a list": params([text_part("tides")]),
    "params a string": params("tides"),
    "no message": params({}),
    "message null": params({"message": None}),
    "message a string": params({"message": "tides"}),
    "message a list": params({"message": [text_part("tides")]}),
    "Message": params({"Message": message(text_part("tides"))["message"]}),
    "no parts": params({"message": {"role": "user"}}),
    "parts an object": params({"message": {"parts": text_part("tides")}}),
    "parts a string": params({"message": {"parts": "tides"}}),
    "parts empty": params({"message": {"parts": []}}),
    "part null": params(message(None)),
    "part a string": params(message("tides")),
    "part a list": params(message([text_part("tides")])),
    "no kind": params(message({"text": "tides"})),
    "kind unknown": params(message({"kind": "hologram", "text": "tides"})),
    "kind a number": params(message({"kind": 7, "text": "tides"})),
    "kind an object": params(message({"kind": {}, "text": "tides"})),
    "a file": params(message({"kind": "file", "file": {"bytes": ""}})),
    "no text": params(message({"kind": "text"})),
    "text a number": params(message({"kind": "text", "text": 7})),
    "text null": params(message({"kind": "text", "text": None})),
    "text an object": params(message({"kind": "text", "text": {"query": "tides"}})),
    "no data": params(message({"kind": "data"})),
    "data a list": params(message({"kind": "data", "data": ["tides"]})),
    "data null": params(message({"kind": "data", "data": None})),
    "query a number": failing(text_part('{"query": 7}')),
    "query an object": failing({"kind": "data", "data": {"query": {"n": 1}}}),
}
WORDS = {
    PARSE_ERROR: "Parse error: ",
    INVALID_REQUEST: "Invalid Request: ",
    NO_METHOD: "Method not found: ",
    INVALID_PARAMS: "Invalid params: ",
    INTERNAL: "Internal error: query must be a string",
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_request_is_refused_with_its_code_and_its_id(after: Caller, case: str) -> None:
    wrong = REFUSED[case]
    answer = after.post(wrong.body)
    told = answer.json
    error = told["error"]
    assert isinstance(error, dict)
    assert told == {"jsonrpc": "2.0", "id": wrong.call_id, "error": error}
    assert error["code"] in wrong.codes
    assert isinstance(error["code"], int)
    assert str(error["message"]).startswith(WORDS[error["code"]])
    assert answer.status == wrong.status
    assert_answers(after)


@pytest.mark.parametrize("call_id", ["t-1", "", "snow ☃", 7, 0, -3, 1.5, None], ids=repr)
def test_an_answer_has_the_id_of_its_request(after: Caller, call_id: Json) -> None:
    good, bad = after.post(call(id=call_id)), after.post(call(id=call_id, method="other"))
    assert "result" in good.json
    assert good.json["id"] == bad.json["id"] == call_id


def test_an_id_that_a_language_cannot_hold_never_comes_back_as_another(after: Caller) -> None:
    told = after.post(call(id=2**53 + 1)).json
    assert told["id"] == 2**53 + 1 or (told["id"] is None and "error" in told)


INPUTS: Mapping[str, tuple[JsonObject, str]] = {
    "JSON text": (message(text_part('{"query": "tides", "n": 2}')), "tides"),
    "plain text": (message(text_part("What about tides?")), "What about tides?"),
    "JSON that is no object": (message(text_part("[1, 2]")), "[1, 2]"),
    "almost JSON": (message(text_part('{"query": ')), '{"query": '),
    "no text at all": (message(text_part("")), ""),
    "other alphabets": (
        message(text_part("潮 \u2028 🌊 <b>&amp;</b> \u0000")),
        "潮 \u2028 🌊 <b>&amp;</b> \u0000",
    ),
    "data": (message({"kind": "data", "data": {"query": "tides"}}), "tides"),
    "metadata of another kind": (message(text_part("tides"), metadata={"trace": "7"}), "tides"),
    "metadata no object": (message(text_part("tides"), metadata="tides"), "tides"),
    "JSON next to metadata": (message(text_part('{"query": "tides"}'), metadata={"trace": "7"}), "tides"),
}


@pytest.mark.parametrize("case", INPUTS)
def test_the_input_is_read_from_the_message(after: Caller, case: str) -> None:
    given, query = INPUTS[case]
    answer = after.post(call(params=given))
    told = answer.json["result"]
    assert answer.status == 200
    assert isinstance(given["message"], dict)
    assert isinstance(given["message"]["parts"], list)
    assert isinstance(told, dict)
    history = told["history"]
    assert isinstance(history, list)
    assert history[0] == {"role": "user", "parts": given["message"]["parts"]}
    assert answered(told["artifacts"]) == [
        {"parts": [{"kind": "text", "text": {"result": f"Processed: {query}"}}]}
    ]


@pytest.mark.parametrize("mode", ["text", "json", "data"])
def test_the_whole_input_arrives_in_every_way_that_trunkline_sends_it(
    after: Caller, mode: Literal["text", "json", "data"]
) -> None:
    # Of these the text alone would be the wrong one.
    for text in ("in short", '{"query": "short"}', 7):
        task = AgentTask(task_id="t-1", input_data={"text": text, "query": "at length", "n": 2})
        answer = after.post(JsonRpc2Adapter(input_mode=mode).to_agent_request(task))
        assert "Processed: at length" in str(answer.json["result"])


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_is_taken_under_every_name_it_has(after: Caller, content_type: str) -> None:
    assert after.post(call(), content_type).status == 200


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "junk", None])
def test_another_content_type_is_refused_in_clear_words(after: Caller, content_type: str | None) -> None:
    answer = after.post(call(), content_type)
    assert answer.status == 415
    assert answer.json == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {
            "code": INVALID_REQUEST,
            "message": "Invalid Request: Content-Type must be application/json",
        },
    }


def test_a_body_that_is_too_large_is_refused(after: Caller) -> None:
    answer = after.post(call(params=message(text_part("x" * 1_100_000))))
    assert (answer.status, answer.json["id"]) == (413, None)
    assert str(answer.json["error"]).startswith("{'code': -32600, 'message': 'Invalid Request: ")
    assert after.post(call(params=message(text_part("x" * 900_000)))).status == 200


def test_input_that_is_nested_deeply_breaks_nothing(after: Caller) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": {"parts": [%s]}}}'
    for depth in (150, 990, 5_000, 100_000):
        deep = b'{"kind": "data", "data": {"query": "tides", "x": %s}}' % (b"[" * depth + b"]" * depth)
        answer = after.post(body % deep)
        # Some give it all back, and that is more than we would read.
        said = b'"result"' if answer.status == 200 else b'"error"'
        assert answer.headers.get_content_type() == "application/json"
        assert b'"jsonrpc"' in answer.body
        assert said in answer.body
    assert_answers(after)


def test_only_a_post_is_taken(after: Caller) -> None:
    answer = after.call("GET", None, {})
    assert answer.status == 405
    assert "POST" in answer.headers["Allow"]
