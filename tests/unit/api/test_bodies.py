"""Bodies are read with a cap and decoded once; what is broken is said to be broken."""

from __future__ import annotations

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from trunkline.api.bodies import MAX_DEPTH, decode_json, decode_object, read_body
from trunkline.api.problems import BodyTooLarge, MalformedBody
from trunkline.errors import Invalid
from trunkline.jsontypes import MAX_CONTAINERS, decode

pytestmark = pytest.mark.anyio


def request_of(*messages: Message, length: int | None = None) -> Request:
    waiting = list(messages)

    async def receive() -> Message:
        return waiting.pop(0)

    headers = [] if length is None else [(b"content-length", str(length).encode())]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive)


def chunk(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_in_pieces_is_put_together() -> None:
    request = request_of(chunk(b"ab", more=True), chunk(b"", more=True), chunk(b"cd"))
    assert await read_body(request, 4) == b"abcd"


async def test_a_body_that_is_announced_too_large_is_refused_before_it_is_read() -> None:
    with pytest.raises(BodyTooLarge):
        await read_body(request_of(length=5), 4)


async def test_a_body_that_grows_too_large_is_refused_while_it_comes() -> None:
    with pytest.raises(BodyTooLarge):
        await read_body(request_of(chunk(b"abc", more=True), chunk(b"de", more=True)), 4)


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_not_an_empty_body() -> None:
    with pytest.raises(ClientDisconnect):
        await read_body(request_of(chunk(b"{", more=True), {"type": "http.disconnect"}), 100)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"a":}', "byte 5"),
        (b"", "truncated"),
        (b"NaN", "invalid character"),
        (b'"\xff"', "UTF-8"),
        (b'"\\ud800"', "JSON"),
        (b"1e400", "out of range"),
        (b"1" * 5000, "JSON"),
        (b"[" * 100_000, "levels deep"),
        (b'{"a":' * 100_000, "levels deep"),
    ],
)
def test_a_broken_body_is_refused_with_what_is_wrong(body: bytes, says: str) -> None:
    with pytest.raises(MalformedBody, match=says):
        decode_json(body)


def test_a_value_may_be_nested_up_to_the_limit() -> None:
    decode_json(b"[" * MAX_DEPTH + b"1" + b"]" * MAX_DEPTH)
    with pytest.raises(MalformedBody, match="levels deep"):
        decode_json(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))


def test_many_brackets_are_not_deep() -> None:
    assert decode_json(b"[" + b",".join([b"{}"] * 1000) + b"]") == [{}] * 1000


def test_a_nul_character_is_a_character() -> None:
    assert decode_json(b'"\\u0000"') == "\x00"


@pytest.mark.parametrize("body", [b"[]", b"null", b'"x"', b"1"])
def test_what_is_not_an_object_is_refused_where_one_is_needed(body: bytes) -> None:
    with pytest.raises(Invalid, match="object"):
        decode_object(body)


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"[]," * MAX_CONTAINERS + b"0]",
        b"[" + b'{"a":0},' * MAX_CONTAINERS + b"0]",
        b'{"a":"\\"",' + b'"b":[{}],' * MAX_CONTAINERS + b'"c":0}',
    ],
)
def test_a_body_of_more_objects_than_its_length_suggests_is_refused(body: bytes) -> None:
    with pytest.raises(BodyTooLarge, match="100,000 objects and arrays"):
        decode_json(body)


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"[]," * (MAX_CONTAINERS - 1) + b"0]",
        b'"' + b"[{" * MAX_CONTAINERS + b'"',
        b'["\\\\", "' + b'[\\"{' * MAX_CONTAINERS + b'"]',
        b"[" + b"0," * 5 * MAX_CONTAINERS + b"0]",
    ],
)
def test_brackets_in_strings_and_many_numbers_are_no_objects(body: bytes) -> None:
    assert decode_json(body) == decode(body)
