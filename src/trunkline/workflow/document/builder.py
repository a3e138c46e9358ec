"""Builds a JSON value out of a YAML parser's events, within limits."""

from __future__ import annotations

from typing import cast

import yaml

from trunkline.errors import Finding
from trunkline.jsontypes import Json
from trunkline.workflow.document.locations import SourceLocation, SourceLocations, SourceSpan, path_text
from trunkline.workflow.document.scalars import resolve_scalar

# What aliases may add to a document, in characters and nodes: enough for shared settings, little for a bomb.
ALIAS_BUDGET = 1_000_000
# Keys and values: more than twenty thousand steps, and what 64 MiB can hold.
MAX_NODES = 500_000


class UnreadableDocument(Exception):
    """The text cannot be read; the finding says why."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.finding = Finding(path="", message=message, line=line, column=column)


class _OpenCollection:
    """A mapping or a sequence that is being read."""

    __slots__ = ("anchor", "key", "key_lines", "key_span", "value", "weight")

    def __init__(self, value: dict[str, Json] | list[Json], anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.weight = 1
        # The key whose value comes next.
        self.key: str | None = None
        self.key_span: SourceSpan | None = None
        self.key_lines: dict[str, int] = {}


class DocumentBuilder:
    """
    Takes the events of one document; `value` is whole after the last.

    Locations are recorded only on request: they cost more than the value.
    """

    def __init__(self, max_depth: int, places: SourceLocations | None) -> None:
        self.value: Json = None
        self.problems: list[Finding] = []
        self._max_depth = max_depth
        self._places = places
        self._stack: list[_OpenCollection] = []
        # One part per frame: where in it the reading is.
        self._path: list[str | int] = []
        self._anchors: dict[str, tuple[Json, int]] = {}
        self._aliased = 0
        self._documents = 0
        self._nodes = 0

    def add_event(self, event: yaml.Event) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _unreadable(
                event, f"the document has more than {MAX_NODES:,} keys and values; split the workflow"
            )
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent):
            self._open(event, {})
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open(event, [])
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _unreadable(
                    event, "a second document starts here; put each workflow in a file of its own"
                )

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        text = event.value
        value: Json = text
        if event.tag is not None:
            self._problem(event, f"the tag {event.tag} is not supported; remove it")
        elif event.implicit[0]:
            try:
                value = resolve_scalar(text)
            except ValueError as exc:
                self._problem(event, str(exc))
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, len(text) + 1)
        if self._awaits_key():
            self._key(event, text, value)
        else:
            self._add(event, value, len(text) + 1)

    def _open(self, event: yaml.CollectionStartEvent, value: dict[str, Json] | list[Json]) -> None:
        if self._awaits_key():
            raise _unreadable(event, "a key must be a string, but this one is a list or a mapping")
        if len(self._stack) >= self._max_depth:
            raise _unreadable(event, f"nested deeper than {self._max_depth} levels")
        if event.tag is not None:
            self._problem(event, f"the tag {event.tag} is not supported; remove it")
        self._add(event, value, 0)
        self._stack.append(_OpenCollection(value, event.anchor))
        self._path.append(0)

    def _close(self) -> None:
        frame = self._stack.pop()
        self._path.pop()
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (frame.value, frame.weight)
        if self._stack:
            self._stack[-1].weight += frame.weight

    def _alias(self, event: yaml.AliasEvent) -> None:
        if any(frame.anchor == event.anchor for frame in self._stack):
            raise _unreadable(
                event,
                f"the alias *{event.anchor} is inside its own anchor, which would make the value infinite",
            )
        if event.anchor not in self._anchors:
            raise _unreadable(
                event, f"the alias *{event.anchor} has no anchor; define &{event.anchor} before it"
            )
        value, weight = self._anchors[event.anchor]
        # The value is shared here, but every copy costs memory when it is written out.
        self._aliased += weight
        if self._aliased > ALIAS_BUDGET:
            raise _unreadable(
                event,
                "the aliases expand to more than the size limit; write the values out, or use fewer aliases",
            )
        if self._awaits_key():
            self._key(event, str(value), value)
        else:
            self._add(event, value, weight)

    def _awaits_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None

    def _key(self, event: yaml.Event, text: str, value: Json) -> None:
        frame = self._stack[-1]
        frame.key = self._path[-1] = text
        if not isinstance(value, str):
            self._problem(event, f"the key {text or 'null'} is not a string; put it in quotes")
        elif text == "<<":
            self._problem(event, "merge keys (<<) are not supported; write the keys out")
        span = _span(event)
        if text in frame.key_lines:
            first = frame.key_lines[text]
            self._problem(event, f"duplicate key '{text}', first used in line {first}; remove one of them")
        else:
            frame.key_lines[text] = span.line
        frame.key_span = span

    def _add(self, event: yaml.Event, value: Json, weight: int) -> None:
        key_span = None
        if self._stack:
            frame = self._stack[-1]
            frame.weight += weight
            if isinstance(frame.value, list):
                self._path[-1] = len(frame.value)
                frame.value.append(value)
            else:
                frame.value[cast("str", frame.key)] = value
                frame.key, key_span = None, frame.key_span
        else:
            self.value = value
        if self._places is not None:
            self._places[tuple(self._path)] = SourceLocation(key_span, _span(event))

    def _problem(self, event: yaml.Event, message: str) -> None:
        span = _span(event)
        path = path_text(tuple(self._path))
        self.problems.append(Finding(path=path, message=message, line=span.line, column=span.column))


def _span(event: yaml.Event) -> SourceSpan:
    # The parser always sets the marks; only their type does not say so.
    start, end = cast("yaml.Mark", event.start_mark), cast("yaml.Mark", event.end_mark)
    return SourceSpan(start.line + 1, start.column + 1, start.index, end.index)


def _unreadable(event: yaml.Event, message: str) -> UnreadableDocument:
    span = _span(event)
    return UnreadableDocument(message, span.line, span.column)
