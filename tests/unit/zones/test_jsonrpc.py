"""What is a request of the contract and what is not, byte for byte."""

from __future__ import annotations

import pytest

from trunkline.zones.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ZoneFault
from trunkline.zones.jsonrpc import read_request


def request(**changed: str) -> bytes:
    """A request whose members are given as JSON text; an empty one is left out."""
    members = {
        "jsonrpc": '"2.0"',
        "id": '"a"',
        "method": '"execute_task"',
        "params": '{"text":"hi"}',
    } | changed
    return ("{" + ",".join(f'"{name}":{text}' for name, text in members.items() if text) + "}").encode()


def code_of(body: bytes) -> int:
    with pytest.raises(ZoneFault) as caught:
        read_request(body)
    return caught.value.code


# The examples of the JSON-RPC 2.0 specification whose answer is one of these two.
OF_THE_SPECIFICATION = {
    "invalid JSON": (b'{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', PARSE_ERROR),
    "invalid Request": (b'{"jsonrpc": "2.0", "method": 1, "params": "bar"}', INVALID_REQUEST),
    "batch, invalid JSON": (
        b'[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"]',
        PARSE_ERROR,
    ),
    "empty array": (b"[]", INVALID_REQUEST),
    "invalid batch": (b"[1]", INVALID_REQUEST),
    "longer invalid batch": (b"[1,2,3]", INVALID_REQUEST),
    "batch": (b'[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}]', INVALID_REQUEST),
    "notification": (b'{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}', INVALID_REQUEST),
    "notification without params": (b'{"jsonrpc": "2.0", "method": "foobar"}', INVALID_REQUEST),
}


@pytest.mark.parametrize("name", OF_THE_SPECIFICATION)
def test_the_specifications_own_examples_are_refused_as_it_says(name: str) -> None:
    body, code = OF_THE_SPECIFICATION[name]
    assert code_of(body) == code


UNREADABLE = {
    "nothing": b"",
    "blanks": b" \n",
    "a word": b"hello",
    "cut": request()[:-1],
    "something after it": request() + b"{}",
    "bad UTF-8": request(params='{"text":"X"}').replace(b"X", b"\xff"),
    "bad UTF-8 in a name": request(params='{"X":1}').replace(b"X", b"\xc3"),
    "a surrogate as bytes": request(params='{"text":"X"}').replace(b"X", b"\xed\xa0\x80"),
    "half a surrogate pair": request(params=r'{"text":"\ud800 and more"}'),
    "UTF-16": request().decode().encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + request(),
    "NaN": request(params='{"n":NaN}'),
    "Infinity": request(params='{"n":-Infinity}'),
    "a number too large": request(params='{"n":1e999}'),
    "a number too long": request(params='{"n":' + "1" * 5_000 + "}"),
    "a leading zero": request(params='{"n":01}'),
    "a comment": request(params="{/* */}"),
    "single quotes": b"{'jsonrpc':'2.0'}",
    "a line break in a text": request(params='{"text":"a\nb"}'),
    "a comma at the end": request(params='{"text":"a",}'),
    "a little too deep": request(params='{"a":' + "[" * 200 + "]" * 200 + "}"),
    "the same name twice, and then no JSON": b'{"a":1,"a":2} and more',
    "the same name twice, and too deep": b'{"a":1,"a":' + b"[" * 300 + b"]" * 300 + b"}",
    "much too deep": request(params='{"a":' + "[" * 100_000 + "]" * 100_000 + "}"),
    "objects too deep": request(params='{"a":' * 5_000 + "1" + "}" * 5_000),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_not_json_is_a_parse_error(name: str) -> None:
    assert code_of(UNREADABLE[name]) == PARSE_ERROR


INVALID = {
    "a number": b"1",
    "a text": b'"execute_task"',
    "null": b"null",
    "an empty object": b"{}",
    "no version": request(jsonrpc=""),
    "version 1": request(jsonrpc='"1.0"'),
    "the version as a number": request(jsonrpc="2.0"),
    "no method": request(method=""),
    "a method that is null": request(method="null"),
    "a method that is a list": request(method='["execute_task"]'),
    "no id": request(id=""),
    "a null id": request(id="null"),
    "a boolean id": request(id="true"),
    "a list as the id": request(id="[1]"),
    "an object as the id": request(id="{}"),
    "params that are a text": request(params='"hi"'),
    "params that are null": request(params="null"),
    "the same name twice": request(params='{"text":"a","text":"b"}'),
    "the same name twice, once in letters": request(params=r'{"text":"a","\u0074ext":"b"}'),
    "the same name twice further in": request(params='{"a":[{"b":1,"b":1}]}'),
    "two ids": request()[:-1] + b',"id":"b"}',
    "two methods": request()[:-1] + b',"method":"other"}',
}


@pytest.mark.parametrize("name", INVALID)
def test_what_is_json_but_no_request_is_invalid(name: str) -> None:
    assert code_of(INVALID[name]) == INVALID_REQUEST


@pytest.mark.parametrize(
    "text",
    [
        '"7a1c9a52-5f0e-5d52-9c1b-0c9d6f6a2f10"',
        '""',
        r'"\u00e4 \/ \n"',
        '"ä €"',
        "0",
        "-0",
        "1.5",
        "1.50",
        "1E5",
        "1e-7",
        "123456789012345678901234567890",
        "0.30000000000000004441",
    ],
)
def test_an_id_is_kept_as_it_was_written(text: str) -> None:
    body = request(id=f" {text}\t")
    assert read_request(body).id == text.encode()


def test_the_order_of_members_blanks_and_unknown_members_do_not_matter() -> None:
    body = b'\n{ "more": [1], "params" : {"text": "hi"}, "method" : "m",\r\n"id":1 , "jsonrpc":"2.0" }\t'
    read = read_request(body)
    assert (read.method, read.params, read.id) == ("m", {"text": "hi"}, b"1")


def test_params_that_are_left_out_are_none() -> None:
    assert read_request(request(params="")).named_params() == {}


@pytest.mark.parametrize("params", ["[]", "[1,2]"])
def test_params_by_position_are_invalid_params(params: str) -> None:
    with pytest.raises(ZoneFault) as caught:
        read_request(request(params=params)).named_params()
    assert caught.value.code == INVALID_PARAMS
    assert caught.value.data["fields"]


def test_what_is_nested_as_deep_as_allowed_is_read() -> None:
    deep = '{"a":' + "[" * 198 + "]" * 198 + "}"
    assert read_request(request(params=deep)).named_params()


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert read_request(request(params='{"a":[' + ",".join(["[]"] * 1_000) + "]}")).named_params()


def test_a_correlation_id_is_known_only_where_it_is_one() -> None:
    assert read_request(request(params='{"correlation_id":"c-81"}')).correlation_id == "c-81"
    for other in ("5", '""', "null", '"' + "x" * 257 + '"'):
        assert read_request(request(params=f'{{"correlation_id":{other}}}')).correlation_id is None
    assert read_request(request(params="[]")).correlation_id is None


@pytest.mark.parametrize("name", [*UNREADABLE, *INVALID])
def test_a_refusal_repeats_nothing_of_what_was_sent(name: str) -> None:
    body = (UNREADABLE | INVALID)[name]
    secret = b"xoxb-canary"
    with pytest.raises(ZoneFault) as caught:
        read_request(body + secret if name in UNREADABLE else body)
    assert "canary" not in str(caught.value.data) + caught.value.message
