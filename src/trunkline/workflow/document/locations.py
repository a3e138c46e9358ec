"""
Where things stand in a workflow's source: paths into the document, and the lines and columns they lead to.

Offsets count characters, as the YAML parser's marks do.
"""

from __future__ import annotations

import re
from typing import NamedTuple

Path = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_-]*\Z")


class SourceSpan(NamedTuple):
    """A stretch of the source. Line and column count from 1, `start` and `end` are offsets in characters."""

    line: int
    column: int
    start: int
    end: int


class SourceLocation(NamedTuple):
    """Where a value stands, and the key that leads to it."""

    key: SourceSpan | None
    value: SourceSpan


SourceLocations = dict[Path, SourceLocation]


class ExpressionPosition(NamedTuple):
    """A point inside an expression; line and column count from 1."""

    source: str
    line: int
    column: int


def path_text(path: Path) -> str:
    """A path as people read it: `steps.check.needs[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.match(part):
            text += f".{part}" if text else part
        else:
            text += f"['{part}']"
    return text


def find_position(
    places: SourceLocations, text: str, path: Path, *, on_key: bool, excerpt: ExpressionPosition | None
) -> tuple[int, int] | None:
    """
    The line and column of a path, or of what encloses it when the path itself is not there.

    With an excerpt it is the point inside the value, as far as the source shows the expression as it is:
    escapes and folded lines hide it, and then the value's beginning has to do.
    """
    for end in range(len(path), -1, -1):
        place = places.get(path[:end])
        if place is None:
            continue
        if end == len(path) and on_key and place.key is not None:
            return place.key.line, place.key.column
        if end == len(path) and excerpt is not None:
            return _inside(text, place.value, excerpt)
        return place.value.line, place.value.column
    return None


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _inside(text: str, span: SourceSpan, excerpt: ExpressionPosition) -> tuple[int, int]:
    lines = excerpt.source.split("\n")
    before = sum(len(line) + 1 for line in lines[: excerpt.line - 1])
    start = text.find(excerpt.source, span.start, span.end)
    if start >= 0:
        return line_and_column(text, start + before + excerpt.column - 1)
    # In a block the lines are indented: look for the one line that matters.
    wanted = lines[min(excerpt.line, len(lines)) - 1]
    bare = wanted.strip()
    start = text.find(bare, span.start, span.end) if bare else -1
    if start < 0:
        return span.line, span.column
    indent = len(wanted) - len(wanted.lstrip())
    return line_and_column(text, start + max(0, excerpt.column - 1 - indent))
