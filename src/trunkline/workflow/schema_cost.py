"""
What checking a value against a JSON Schema can cost, found out before it is done.

The library that validates remembers only a part of what it has visited, and describes every alternative of an `anyOf`
that does not match. So a short schema whose parts refer to one another, or a short value that is nested, can cost
time and memory without end. Nothing here validates: it counts what validation would visit, and stops at a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from trunkline.jsontypes import Json, JsonObject, encode

# Keywords by where they apply the schemas in them: to the value itself, to its members, or to its items.
_ITSELF = ("not", "if", "then", "else", "allOf", "anyOf", "oneOf")
_ITSELF_BY_NAME = ("dependentSchemas", "dependencies")
_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_MEMBERS_BY_NAME = ("properties", "patternProperties")
_ITEMS = ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")
# A description of an error quotes the value, so a long value costs as much as many short ones.
_QUOTED_BYTES_PER_VISIT = 1_000


class SchemaTooComplex(ValueError):
    """The cost of a schema has no bound that we could name in advance."""


class ReferenceNotFollowed(SchemaTooComplex):
    """A reference that leads out of the schema, or nowhere."""


class SchemaSize(NamedTuple):
    # How many parts there are when every reference is replaced by what it refers to, as far as it is not inside itself.
    parts: int
    is_recursive: bool


class SchemaGraph:
    """A schema, and the parts of it that it refers to."""

    def __init__(self, schema: JsonObject) -> None:
        self._root = schema
        self._anchors: dict[str, JsonObject] = {}
        self._has_inner_addresses = False
        self.references = 0
        waiting: list[Json] = [schema]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict):
                self._anchors.update(
                    {f"#{part[key]}": part for key in _ANCHORS if isinstance(part.get(key), str)}
                )
                # Inside of such a part, "#" means the part and not the whole.
                self._has_inner_addresses |= part is not schema and isinstance(part.get("$id"), str)
                self.references += sum(1 for _ in _references(part))
                waiting.extend(part.values())
            elif isinstance(part, list):
                waiting.extend(part)

    def size(self, limit: int) -> SchemaSize:
        """Raises `SchemaTooComplex` above `limit`, and `ReferenceNotFollowed`."""
        parts, is_recursive = 0, False
        inside: set[str] = set()
        # A text in it marks the end of what that reference has led to.
        waiting: list[JsonObject | str] = [self._root]
        while waiting:
            part = waiting.pop()
            if isinstance(part, str):
                inside.remove(part)
                continue
            parts += 1
            if parts > limit:
                raise SchemaTooComplex(f"its references lead to more than {limit:,} parts")
            for reference in _references(part):
                if reference in inside:
                    is_recursive = True
                    continue
                inside.add(reference)
                waiting += [reference, *_schemas(self._find(reference))]
            waiting.extend(_parts(part))
        return SchemaSize(parts, is_recursive)

    def can_describe(self, value: Json, limit: int) -> bool:
        """Whether describing every error of a value takes at most `limit` visits."""
        visits = 0
        waiting: list[tuple[JsonObject, Json]] = [(self._root, value)]
        while waiting:
            schema, part = waiting.pop()
            visits += 1 + _text_size(part) // _QUOTED_BYTES_PER_VISIT
            if visits + len(waiting) > limit:
                return False
            for reference in _references(schema):
                waiting.extend((found, part) for found in _schemas(self._find(reference)))
            waiting.extend((found, part) for found in _parts_for_itself(schema))
            if isinstance(part, dict):
                waiting.extend(_parts_for_members(schema, part))
            elif isinstance(part, list):
                found = [found for key in _ITEMS for found in _schemas(schema.get(key))]
                if len(found) * len(part) > limit:
                    return False
                waiting.extend((each, item) for each in found for item in part)
        return True

    def _find(self, reference: str) -> Json:
        own = self._root.get("$id")
        place = reference.removeprefix(own) if isinstance(own, str) and own else reference
        found: Json = None
        if place in ("", "#"):
            found = self._root
        elif place.startswith("#/"):
            found = self._pointed_at(place[2:])
        else:
            found = self._anchors.get(place)
        if found is None or self._has_inner_addresses:
            raise ReferenceNotFollowed(
                f"the reference {reference[:100]} cannot be followed inside the schema"
            )
        return found

    def _pointed_at(self, pointer: str) -> Json:
        found: Json = self._root
        for step in unquote(pointer).split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict):
                found = found.get(key)
            elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                return None
        return found


def count_nodes(value: Json, limit: int) -> int:
    """How many values there are in a value, itself included; counting stops soon after `limit`."""
    nodes = 0
    waiting = [value]
    while waiting and nodes <= limit:
        part = waiting.pop()
        nodes += 1
        if isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return nodes


def _text_size(value: Json) -> int:
    return len(encode(value)) if isinstance(value, str | dict | list) else 1


def _references(schema: JsonObject) -> Iterator[str]:
    for key in _REFERENCES:
        reference = schema.get(key)
        if isinstance(reference, str):
            yield reference


def _schemas(value: Json) -> list[JsonObject]:
    """A keyword's schemas; those that are only true or false cost nothing."""
    if isinstance(value, dict):
        return [value]
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _named(value: Json) -> list[JsonObject]:
    return _schemas(list(value.values())) if isinstance(value, dict) else []


def _parts(schema: JsonObject) -> Iterator[JsonObject]:
    """What a schema applies to anything, references left out."""
    yield from _parts_for_itself(schema)
    for key in (*_MEMBERS, *_ITEMS, "propertyNames"):
        yield from _schemas(schema.get(key))
    for key in _MEMBERS_BY_NAME:
        yield from _named(schema.get(key))


def _parts_for_itself(schema: JsonObject) -> Iterator[JsonObject]:
    for key in _ITSELF:
        yield from _schemas(schema.get(key))
    for key in _ITSELF_BY_NAME:
        yield from _named(schema.get(key))


def _parts_for_members(schema: JsonObject, value: JsonObject) -> Iterator[tuple[JsonObject, Json]]:
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, found in properties.items():
            if isinstance(found, dict) and name in value:
                yield found, value[name]
    # Which names a pattern fits is not looked at: all of them, for the bound.
    others = [*_named(schema.get("patternProperties"))]
    for key in _MEMBERS:
        others += _schemas(schema.get(key))
    for found in others:
        for member in value.values():
            yield found, member
    for found in _schemas(schema.get("propertyNames")):
        for name in value:
            yield found, name
