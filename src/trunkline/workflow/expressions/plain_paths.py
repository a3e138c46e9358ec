"""
Plain paths (`steps.research.output.text`, `input.list[0]`): the most frequent expressions, read without CEL.

They mean what CEL means by them, and fail where CEL fails, but cost a twentieth and say more about what is
missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from trunkline.jsontypes import Json
from trunkline.workflow.expressions.errors import ExpressionError
from trunkline.workflow.expressions.syntax_tree import VariableRead

# Gets "input", "run" or "steps.<name>", in a loop also "item" or "index", and returns the value.
Scope: TypeAlias = Callable[[str], Json]

_PATH = re.compile(
    r"\s*(?P<root>input|run|item|index|round|failure|(?:previous\.)?steps\.[A-Za-z_][A-Za-z0-9_]*)"
    r"(?P<keys>(?:\.[A-Za-z_][A-Za-z0-9_]*|\[(?:0|[1-9][0-9]{0,9})\]|\['[^'\\\n]*'\]|\[\"[^\"\\\n]*\"\])*)\s*\Z"
)
_KEY = re.compile(r"\.(?P<name>\w+)|\[(?P<index>[0-9]+)\]|\[(?P<quote>['\"])(?P<text>.*?)(?P=quote)\]")
# What only a step with `for_each` can read.
FOR_EACH_VARIABLES = ("item", "index")
# What only a step with `repeat`, and the steps inside it, can read.
ROUND_VARIABLE = "round"
PREVIOUS = "previous."
# What only the condition of a step that waits for events can read.
EVENT_VARIABLES = ("event",)
# What only a compensation can read.
FAILURE_VARIABLE = "failure"
# CEL's keywords: after a dot they are a syntax error there, and so they are not a path here.
KEYWORDS = frozenset({"true", "false", "null", "in"})
_MAX_KEYS_SHOWN = 10


class PlainPath:
    """A path that is followed key by key."""

    __slots__ = ("keys", "reads", "root", "source")

    def __init__(self, source: str, root: str, keys: tuple[str | int, ...]) -> None:
        self.source = source
        self.reads = frozenset({root})
        self.root = root
        self.keys = keys

    @property
    def reads_of_variables(self) -> tuple[VariableRead, ...]:
        """What is read, up to the first element of a list."""
        names: list[str] = []
        for key in self.keys:
            if isinstance(key, int):
                break
            names.append(key)
        return (VariableRead(self.root, tuple(names)),)

    def evaluate(self, scope: Scope, budget: object = None) -> Json:  # noqa: ARG002 - it makes nothing
        value = scope(self.root)
        for key in self.keys:
            if isinstance(value, dict) and key in value:
                # A dict of JSON has no integer keys, so this key is a name.
                value = value[key]  # pyright: ignore[reportArgumentType]
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                raise ExpressionError(
                    explain_missing(scope, self.root, self.keys) or "the path does not exist", self.source
                )
        return value


def plain_path(source: str) -> PlainPath | None:
    """The path that a source is, if it is nothing else."""
    match = _PATH.match(source)
    if match is None:
        return None
    keys: list[str | int] = []
    for key in _KEY.finditer(match["keys"]):
        if key["name"] in KEYWORDS:
            return None
        keys.append(int(key["index"]) if key["index"] else key["name"] or key["text"])
    return PlainPath(source.strip(), match["root"], tuple(keys))


def explain_missing(scope: Scope, root: str, keys: Sequence[str | int]) -> str | None:
    """Why a path leads nowhere; None when it leads somewhere."""
    value, seen = scope(root), root
    for key in keys:
        step = _step(value, key, seen)
        if isinstance(step, str):
            return step
        value = step[0]
        seen += f"[{key}]" if isinstance(key, int) else f".{key}"
    return None


def _step(value: Json, key: str | int, seen: str) -> tuple[Json] | str:
    match value:
        case dict() if isinstance(key, str) and key in value:
            return (value[key],)
        case dict():
            return f"{seen} has no key {key!r}; {_shown(value)}"
        case list() if isinstance(key, int) and key < len(value):
            return (value[key],)
        case list() if isinstance(key, int):
            return f"{seen} has {len(value)} items, so there is no [{key}]"
        case None:
            why = (
                " (its step was skipped or failed)"
                if seen.startswith("steps.") and seen.endswith(".output")
                else ""
            )
            return f"{seen} is null{why}, so it has no {key!r}; test {seen} != null first"
        case _:
            return f"{seen} is {_kind(value)}, so it has no {key!r}"


def _shown(value: dict[str, Json]) -> str:
    if not value:
        return "it is empty"
    names = ", ".join(list(value)[:_MAX_KEYS_SHOWN])
    more = f" and {len(value) - _MAX_KEYS_SHOWN} more" if len(value) > _MAX_KEYS_SHOWN else ""
    return f"it has {names}{more}"


def _kind(value: Json) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case _:
            return "a list"
