"""What JSON can hold, as types, and the one way in which the kit reads and writes it."""

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

# Deeper than any real input, shallower than what an author's code can recurse into.
MAX_DEPTH = 200

encode: Callable[[object], bytes] = msgspec.json.Encoder().encode


class InvalidJson(ValueError):
    """The text is not JSON."""


class JsonTooDeep(ValueError):
    """The text is JSON, but nested too deep."""


def decode(text: bytes | str) -> Json:
    """The JSON value of a text; raises `NotJson` or `JsonTooDeep`."""
    try:
        value: Json = msgspec.json.decode(text)
    except RecursionError as exc:
        raise JsonTooDeep(f"The JSON is nested more than {MAX_DEPTH} levels deep") from exc
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise InvalidJson(str(exc)) from exc
    if _is_too_deep(value):
        raise JsonTooDeep(f"The JSON is nested more than {MAX_DEPTH} levels deep")
    return value


def kind_of(value: Json) -> str:
    """The JSON type of a value, for an error message."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case dict():
            return "an object"


def _is_too_deep(value: Json) -> bool:
    level = _containers([value])
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _containers(_inside(outer))]
        if not level:
            return False
    return True


def _containers(values: Iterable[Json]) -> list[JsonObject | list[Json]]:
    return [value for value in values if isinstance(value, dict | list)]


def _inside(container: JsonObject | list[Json]) -> Iterable[Json]:
    return container.values() if isinstance(container, dict) else container
