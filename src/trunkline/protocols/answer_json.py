"""
From an answer's bytes to JSON, and the symptom when they are none.

msgspec skips what a type keeps as `Raw` without looking at it closely. Two things slip through and would fail
every later reader of the output: bytes that are not UTF-8 (checked here once, for the whole body) and numbers
out of range (checked in bodies of up to 64 KiB: in a larger one the check would cost more than everything
else).
"""

from __future__ import annotations

from typing import Generic, TypeVar, cast

import msgspec

from trunkline.jsontypes import JSON_STRING, Json, decode

T = TypeVar("T")

# A later reader of an output may be this much deeper in Python's stack than we are here, and msgspec
# counts its own depth on top of that.
HEADROOM_LEVELS = 100
WHOLE_CHECK_BYTES = 64 * 1024
# Two bytes of text can be an object of a hundred bytes: these keep an answer of the longest length at some tens of MB.
MAX_CONTAINERS = 200_000
MAX_ITEMS = 1_000_000

_OPENING = b"[" * HEADROOM_LEVELS
_CLOSING = b"]" * HEADROOM_LEVELS
_TOO_MANY = f"The answer has more than {MAX_CONTAINERS:,} objects and arrays, or {MAX_ITEMS:,} items"
_UTF8_BOM = b"\xef\xbb\xbf"
# Enough to find the first character behind any sensible amount of white space.
_HEAD_BYTES = 256


class NotJson(ValueError):
    """The text is not JSON that we can use; the message names the symptom."""


class JsonReader(Generic[T]):
    """
    Reads JSON text as one type.

    `read` raises `NotJson`, or `msgspec.ValidationError` when the text is JSON of another shape.
    """

    def __init__(self, type_: type[T]) -> None:
        nested: object = type_
        for _ in range(HEADROOM_LEVELS):
            nested = list[nested]
        self._plain = msgspec.json.Decoder(type_)
        self._nested: msgspec.json.Decoder[object] = msgspec.json.Decoder(cast("type[object]", nested))

    def read(self, text: bytes) -> T:
        text = text.removeprefix(_UTF8_BOM)
        try:
            return self._read(text)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise NotJson(describe_json_error(text, exc)) from exc

    def _read(self, text: bytes) -> T:
        if len(text) <= WHOLE_CHECK_BYTES and text.count(b"[") + text.count(b"{") <= HEADROOM_LEVELS:
            check_whole(text)
            return self._plain.decode(text)
        if not text.isascii():
            text.decode()
        if len(text) <= WHOLE_CHECK_BYTES:
            check_whole(text)
        elif _has_too_many(text) and (
            _has_too_many_strings(text) or _has_too_many(JSON_STRING.sub(b"", text))
        ):
            raise NotJson(_TOO_MANY)
        # Wrapped, so that a depth which would only just fit here is refused at once.
        value = self._nested.decode(b"".join((_OPENING, text, _CLOSING)))
        for _ in range(HEADROOM_LEVELS):
            value = cast("list[object]", value)[0]
        return cast("T", value)


def _has_too_many(text: bytes) -> bool:
    return text.count(b"[") + text.count(b"{") > MAX_CONTAINERS or text.count(b",") > MAX_ITEMS


def _has_too_many_strings(text: bytes) -> bool:
    # An item has a key and a value at most.
    return text.count(b'"') - text.count(b'\\"') > 4 * MAX_ITEMS


def check_whole(text: bytes) -> None:
    try:
        decode(text)
    except msgspec.ValidationError as exc:
        # With no type asked for, only a number can be invalid.
        raise NotJson(f"The JSON is not valid: {exc}") from exc


_anything: JsonReader[msgspec.Raw] = JsonReader(msgspec.Raw)


def parse(text: bytes) -> Json:
    """The JSON value of a text; raises `NotJson`."""
    try:
        return decode(_anything.read(text))
    except msgspec.ValidationError as exc:
        raise NotJson(f"The JSON is not valid: {exc}") from exc


def check_json(text: bytes) -> msgspec.Raw:
    """The text itself, when it is JSON; raises `NotJson`."""
    return _anything.read(text)


def decode_checked(text: bytes) -> Json:
    """The value of a part of an answer that has been read; None when a number in it is out of range."""
    try:
        return decode(text)
    except msgspec.ValidationError:
        # Only deep in a large answer: the wire record has it.
        return None


def describe_json_error(text: bytes, exc: Exception) -> str:
    head = text[:_HEAD_BYTES].lstrip()
    if not head and not text.strip():
        return "The answer is empty"
    if isinstance(exc, RecursionError):
        return "The answer is nested too deeply"
    if isinstance(exc, UnicodeDecodeError):
        return f"The answer is not UTF-8 ({exc.reason} at byte {exc.start})"
    if head.startswith(b"<"):
        return "The answer is HTML or XML, not JSON"
    if head.startswith((b"data:", b"event:", b"id:", b":")):
        return "The answer is an event stream, not JSON"
    if "truncated" in str(exc):
        return "The answer is cut off: truncated JSON"
    return f"The answer is not JSON ({exc})"


def json_kind(value: Json) -> str:
    """What a JSON value is, in words for a message."""
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case str():
            return "a string"
        case bool():
            return "a boolean"
        case None:
            return "null"
        case _:
            return "a number"
