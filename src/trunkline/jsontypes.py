"""What JSON can hold, as types, and the one way to encode and decode it."""

from __future__ import annotations

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

# The methods themselves: every message is encoded and decoded several times on its way.

# JSON text of a JSON value or a msgspec struct.
encode: Callable[[object], bytes] = msgspec.json.Encoder().encode
# The JSON value of a text; raises `msgspec.DecodeError` when it is not JSON.
decode: Callable[[bytes | str], Json] = msgspec.json.Decoder().decode


def is_too_deep(value: Json) -> bool:
    """Whether it is nested more than `MAX_DEPTH` levels deep."""
    level = _containers([value])
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _containers(_values(outer))]
        if not level:
            return False
    return True


def _containers(values: Iterable[Json]) -> list[JsonObject | list[Json]]:
    return [value for value in values if isinstance(value, dict | list)]


def _values(container: JsonObject | list[Json]) -> Iterable[Json]:
    return container.values() if isinstance(container, dict) else container
