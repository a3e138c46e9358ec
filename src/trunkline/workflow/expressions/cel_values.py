"""What goes into CEL, cut down to what the expression reads, and what comes out of it, as JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TypeAlias, cast

from trunkline.jsontypes import Json
from trunkline.workflow.expressions.syntax_tree import VariableRead

# Which keys of a value are read: True is all of it, False only that it is there.
WantedKeys: TypeAlias = "dict[str, WantedKeys] | bool"


class JsonConversionError(Exception):
    """The result of an expression is nothing that JSON can hold."""


def wanted_keys(readings: Iterable[VariableRead]) -> dict[str, WantedKeys]:
    """What a number of readings want of each variable."""
    wanted: dict[str, WantedKeys] = {}
    for root, keys, tested in readings:
        _want(wanted, (root, *keys), whole=not tested)
    return wanted


def select_wanted(value: Json, wanted: WantedKeys, taken: list[Json]) -> Json:
    """
    A value without its unused parts. What is left whole is also added to `taken`.

    Binding a value costs CEL time for every item in it.
    """
    if wanted is True:
        taken.append(value)
        return value
    if wanted is False:
        return None
    if isinstance(value, dict):
        return {
            key: select_wanted(value[key], of_key, taken) for key, of_key in wanted.items() if key in value
        }
    # CEL will refuse the key; it needs to see what is there instead, but not all of it.
    return [] if isinstance(value, list) else value


def to_json(value: object) -> Json:
    """The JSON of what CEL returns; raises `JsonConversionError`, with the reason, where there is none."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                raise JsonConversionError(f"the result is {value}, which cannot be represented in JSON")
            return value
        case list():
            return [to_json(item) for item in cast("list[object]", value)]
        case dict():
            return {_key(key): to_json(item) for key, item in cast("dict[object, object]", value).items()}
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            return f"{value.total_seconds():f}".rstrip("0").rstrip(".") + "s"
        case _:
            raise JsonConversionError("the result is a type, which cannot be represented in JSON")


def _want(wanted: dict[str, WantedKeys], keys: tuple[str, ...], *, whole: bool) -> None:
    first, *rest = keys
    present = wanted.get(first, False)
    if present is True:
        return
    if not rest:
        # A key whose parts are wanted is seen to be there anyway.
        wanted[first] = whole or present
        return
    inner = present if isinstance(present, dict) else {}
    wanted[first] = inner
    _want(inner, tuple(rest), whole=whole)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise JsonConversionError(
            f"the result has the key {key!r}, but JSON keys must be strings; use string({key})"
        )
    return key
