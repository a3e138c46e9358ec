"""What JSON can hold, as types, and the one way to encode and decode it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

if TYPE_CHECKING:
    Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
    JsonObject: TypeAlias = "dict[str, Json]"
else:
    # msgspec reads annotations at run time and cannot follow an alias that names itself.
    Json = Any
    JsonObject = dict[str, Any]

# Deeper than any real input, shallower than what any reader behind us can recurse into.
MAX_DEPTH = 200
# Two bytes of text can be an object of a hundred bytes, and decoding a hundred thousand takes a tenth of a second.
MAX_CONTAINERS = 100_000

# A string of a JSON text. One that is never closed goes on to the end, so that no text takes longer than its length.
JSON_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)
_CONTAINERS = frozenset({dict, list})

# The methods themselves: every message is encoded and decoded several times on its way.

# JSON text of a JSON value or a msgspec struct.
encode: Callable[[object], bytes] = msgspec.json.Encoder().encode
# The JSON value of a text; raises `msgspec.DecodeError` when it is not JSON.
decode: Callable[[bytes | str], Json] = msgspec.json.Decoder().decode


def is_too_deep(value: Json) -> bool:
    """Whether it is nested more than `MAX_DEPTH` levels deep."""
    level = _containers([value])
    for _ in range(MAX_DEPTH):
        inner: list[JsonObject | list[Json]] = []
        for outer in level:
            if not outer:
                continue
            values = outer.values() if isinstance(outer, dict) else outer
            # Long lists of numbers or texts are the most common large values.
            if not _CONTAINERS.isdisjoint(map(type, values)):
                inner += _containers(values)
        level = inner
        if not level:
            return False
    return True


def _containers(values: Iterable[Json]) -> list[JsonObject | list[Json]]:
    return [value for value in values if isinstance(value, dict | list)]


def has_too_many_containers(text: bytes) -> bool:
    """
    Whether a JSON text has more than `MAX_CONTAINERS` objects and arrays, so that decoding it would take more time and
    memory than its length suggests.

    Also for a text with as many brackets in more strings than that: finding out would take as long.
    """
    if _brackets(text) <= MAX_CONTAINERS:
        return False
    return text.count(b'"') > 2 * MAX_CONTAINERS or _brackets(JSON_STRING.sub(b"", text)) > MAX_CONTAINERS


def _brackets(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")
