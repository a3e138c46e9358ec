"""Pieces of CEL, written so that they mean the same wherever they are put together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from trunkline.importing.identifiers import is_identifier
from trunkline.jsontypes import Json

# The limit of an expression in a workflow definition.
MAX_CHARACTERS = 2_000

Keys = Sequence[str | int]
_PLAIN_TEXT = re.compile(r"[^'\\\x00-\x1f\x7f]*")


def text(value: str) -> str:
    """A string literal."""
    return f"'{value}'" if _PLAIN_TEXT.fullmatch(value) else json.dumps(value)


def literal(value: Json) -> str:
    """A value of JSON."""
    match value:
        case str():
            return text(value)
        case dict():
            return mapping((key, literal(item)) for key, item in value.items())
        case list():
            return f"[{', '.join(map(literal, value))}]"
        case _:
            return json.dumps(value)


def mapping(entries: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{text(key)}: {value}" for key, value in entries) + "}"


def path(base: str, keys: Keys) -> str:
    for key in keys:
        base += f".{key}" if isinstance(key, str) and is_identifier(key) else f"[{literal(key)}]"
    return base


def present(base: str, keys: Keys) -> list[str]:
    """Conditions that hold when the path leads somewhere, for data that are there as far as `base`."""
    conditions: list[str] = []
    for number, key in enumerate(keys):
        whole = path(base, keys[:number])
        if isinstance(key, int):
            conditions.append(f"size({whole}) > {key}")
        elif is_identifier(key):
            conditions.append(f"has({whole}.{key})")
        else:
            conditions.append(f"{text(key)} in {whole}")
    return conditions


def failing(why: str) -> str:
    """
    An expression that cannot be worked out, and says why.

    It stands where something was not carried over: a run that comes there fails, instead of doing something else.
    """
    return f"{{}}[{text(why)}]"


def all_of(conditions: Sequence[str]) -> str:
    return " && ".join(conditions)


def in_brackets(expression: str) -> str:
    return f"({expression})"
