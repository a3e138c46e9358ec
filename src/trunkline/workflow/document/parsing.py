"""
Reads the text of a workflow: YAML 1.2 as far as JSON goes, and JSON, which is YAML.

Built from the parser's events and not by a YAML loader, for what a loader does not do: it stops deep
nesting and aliases that multiply before they cost anything, and it sees a key that is given twice. Places
are looked up only when there is something to say about them; most workflows are right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple, cast

import msgspec
import yaml

from trunkline.errors import Finding
from trunkline.jsontypes import Json
from trunkline.workflow.document.builder import MAX_NODES, DocumentBuilder, UnreadableDocument
from trunkline.workflow.document.locations import SourceLocations, line_and_column
from trunkline.workflow.validation_report import MAX_FINDINGS, invalid_error

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 100

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# JSON writes characters beyond the basic plane as two escapes, which YAML refuses; for places any two will
# do.
_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")

_HINTS = {
    "mapping values are not allowed": "put a string that contains ': ' in quotes",
    "could not find expected ':'": "put ':' and a space after a key",
    "did not find expected key": "check the indentation, and put a string that contains quotes in quotes",
    "did not find expected ',' or": 'close the bracket; inside [ ] and { }, put expressions in quotes: "${ … }"',
    "did not find expected '-' indicator": "check the indentation",
    "unexpected end of stream": "a closing quote is missing",
    "found undefined alias": "an alias (*name) must come after its anchor (&name)",
    "cannot start any token": "put a string that starts with @, ` or % in quotes",
}


class ParsedDocument(NamedTuple):
    text: str
    value: Json
    # What is wrong with the document itself; the content may be read all the same.
    problems: list[Finding]


def read_document(text: str | bytes, source: str) -> ParsedDocument:
    """The value that a text holds; raises `Invalid` when it cannot be read at all."""
    try:
        content = _decoded(text)
        value = _as_json(content)
        if value is not None:
            return ParsedDocument(content, value, [])
        builder = _build(content, places=None)
    except UnreadableDocument as refused:
        raise invalid_error(source, [refused.finding], 1) from refused
    return ParsedDocument(content, builder.value, builder.problems[:MAX_FINDINGS])


def locate_values(text: str) -> SourceLocations:
    """The place of everything in a text that `read_document` could read."""
    places: SourceLocations = {}
    try:
        _build(_SURROGATES.sub(r"\\u003f\\u003f", text), places)
    except UnreadableDocument:
        # JSON that YAML does not take: a finding without its line is better than none.
        return places
    return places


def _decoded(text: str | bytes) -> str:
    if len(text) > MAX_BYTES:
        raise UnreadableDocument(
            f"the source has {len(text):,} bytes, more than {MAX_BYTES:,}; split the workflow"
        )
    try:
        text = text.decode() if isinstance(text, bytes) else text.encode().decode()
    except UnicodeDecodeError as exc:
        line, column = line_and_column(exc.object[: exc.start].decode(), exc.start)
        raise UnreadableDocument("the source is not UTF-8; save it as UTF-8", line, column) from exc
    except UnicodeEncodeError as exc:
        line, column = line_and_column(exc.object, exc.start)
        raise UnreadableDocument("unpaired surrogate; write the complete character", line, column) from exc
    return text.removeprefix("\ufeff")


def _as_json(text: str) -> Json:
    """The value of a JSON object without doubled keys; None for all else, for the YAML reader to explain."""
    if not text.lstrip().startswith("{") or sum(map(text.count, "[{,:")) > MAX_NODES:
        return None
    try:
        value: Json = msgspec.json.decode(text)
        json.loads(text, object_pairs_hook=_refuse_doubled)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return None if _deeper_than(value, MAX_DEPTH) else value


def _refuse_doubled(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError


def _deeper_than(value: Json, depth: int) -> bool:
    if isinstance(value, dict):
        return depth == 0 or any(_deeper_than(child, depth - 1) for child in value.values())
    if isinstance(value, list):
        return depth == 0 or any(_deeper_than(child, depth - 1) for child in value)
    return False


def _build(text: str, places: SourceLocations | None) -> DocumentBuilder:
    builder = DocumentBuilder(MAX_DEPTH, places)
    try:
        # The stubs leave the type of the events open.
        stream = yaml.parse(text, Loader=_Loader)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        for event in cast("Iterator[yaml.Event]", stream):
            builder.add_event(event)
    except yaml.reader.ReaderError as exc:
        line, column = line_and_column(text, exc.position)
        code = ord(text[exc.position])
        message = (
            f"the character #x{code:04x} is not allowed in YAML; write it as \\u{code:04x} inside "
            "double quotes"
        )
        raise UnreadableDocument(message, line, column) from exc
    except yaml.MarkedYAMLError as exc:
        raise _explained(text, exc) from exc
    return builder


def _explained(text: str, exc: yaml.MarkedYAMLError) -> UnreadableDocument:
    problem = exc.problem or "it cannot be parsed"
    mark = exc.problem_mark or exc.context_mark
    if "could not find expected ':'" in problem:
        # Noticed long after the key that lacks it.
        mark = exc.context_mark or mark
    if mark is None:
        return UnreadableDocument(f"invalid YAML: {problem}")
    if text[mark.index : mark.index + 1] == "\t":
        return UnreadableDocument(
            "YAML cannot be indented with tabs; use spaces", mark.line + 1, mark.column + 1
        )
    hint = next((hint for part, hint in _HINTS.items() if part in problem), "")
    context = f" {exc.context}" if exc.context else ""
    message = f"invalid YAML: {problem}{context}" + (f"; {hint}" if hint else "")
    return UnreadableDocument(message, mark.line + 1, mark.column + 1)
