"""
Shapes: what is known of a value when a workflow is saved, and what a key of it can be.

A shape never claims too much. `never` is said only of a key that no value of the shape has; what a schema leaves open,
and whatever would cost too much to find out, is unknown. So an error that follows from it is always right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from trunkline.jsontypes import Json, JsonObject

# always: each value has the key. maybe: a value without it fits, too. unknown: nothing is said of it.
Presence = Literal["always", "maybe", "undeclared", "never", "unknown"]

# Of the alternatives of one value; more of them are not told apart.
MAX_ALTERNATIVES = 32
# Parts of schemas that are looked at for one workflow: some tenths of a second.
MAX_VISITS = 100_000
# Of `$ref` and `allOf` that lead to one another.
_MAX_DEPTH = 20
_MAX_NAMES = 50


class AnyShape(NamedTuple):
    """Nothing is known."""


class ScalarShape(NamedTuple):
    """A value without keys: text, a number, true or false, null."""

    kind: str


class ObjectShape(NamedTuple):
    """An object with exactly these keys."""

    fields: Mapping[str, Shape]


class ListShape(NamedTuple):
    """A list of any length."""

    element: Shape


class SchemaShape(NamedTuple):
    """A value that was checked against a JSON Schema, or against a part of `root`."""

    schema: Json
    root: JsonObject


class UnionShape(NamedTuple):
    """One of these."""

    alternatives: tuple[Shape, ...]


Shape: TypeAlias = AnyShape | ScalarShape | ObjectShape | ListShape | SchemaShape | UnionShape

ANY = AnyShape()
TEXT, NUMBER = ScalarShape("text"), ScalarShape("a number")


class Member(NamedTuple):
    """What is found at a key."""

    shape: Shape
    presence: Presence
    # The keys that are there instead.
    names: tuple[str, ...] = ()


_UNKNOWN = Member(ANY, "unknown")
_NEVER = Member(ANY, "never")


class ShapeReader:
    """Follows keys in shapes, within a limit for all of them together."""

    def __init__(self, max_visits: int = MAX_VISITS) -> None:
        self.visits_left = max_visits
        # By the part of a schema and the key; parts live as long as the definitions that are checked.
        self._found: dict[tuple[int, str | int], Member] = {}

    def member(self, shape: Shape, key: str | int) -> Member:
        match shape:
            case AnyShape():
                return _UNKNOWN
            case ScalarShape():
                return _NEVER
            case ObjectShape(fields):
                if isinstance(key, str) and key in fields:
                    return Member(fields[key], "always")
                return Member(ANY, "never", tuple(fields))
            case ListShape(element):
                return Member(element, "unknown") if isinstance(key, int) else _NEVER
            case UnionShape(alternatives):
                return _either([self.member(each, key) for each in alternatives[:MAX_ALTERNATIVES]])
            case SchemaShape(schema, root):
                found = self._found.get((id(schema), key))
                if found is None:
                    found = self._found[id(schema), key] = self._in_schema(schema, root, key, _MAX_DEPTH)
                return found

    def _in_schema(self, schema: Json, root: JsonObject, key: str | int, depth: int) -> Member:
        self.visits_left -= 1
        if not isinstance(schema, dict) or self.visits_left < 0 or depth == 0:
            return _UNKNOWN
        if schema is not root and "$id" in schema:
            # References in it mean something else.
            return _UNKNOWN
        if "$ref" in schema:
            target = resolve(schema["$ref"], root)
            return _UNKNOWN if target is None else self._in_schema(target, root, key, depth - 1)
        found = [_own_member(schema, root, key)]
        for keyword, combine in (("allOf", _both), ("anyOf", _either), ("oneOf", _either)):
            parts = schema.get(keyword)
            if isinstance(parts, list) and 0 < len(parts) <= MAX_ALTERNATIVES:
                found.append(combine([self._in_schema(part, root, key, depth - 1) for part in parts]))
        return _both(found)


def resolve(reference: Json, root: JsonObject) -> Json:
    """The part of the schema that a reference names; None if it leads elsewhere."""
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#/") or "%" in reference:
        return None
    found: Json = root
    for escaped in reference[2:].split("/"):
        found = _part(found, escaped.replace("~1", "/").replace("~0", "~"))
        if isinstance(found, dict) and found is not root and "$id" in found:
            # References in it mean something else.
            return None
    return found


def _part(schema: Json, name: str) -> Json:
    match schema:
        case dict():
            return schema.get(name)
        case list() if name.isdecimal() and len(name) < 10 and int(name) < len(schema):
            return schema[int(name)]
        case _:
            return None


def _own_member(schema: JsonObject, root: JsonObject, key: str | int) -> Member:
    """By the keywords of the schema itself."""
    types = _types(schema)
    if isinstance(key, int):
        if types is not None and "array" not in types:
            return _NEVER
        return Member(_element(schema, root, key), "unknown")
    if types is not None and "object" not in types:
        return _NEVER
    properties = schema.get("properties")
    declared = properties if isinstance(properties, dict) else {}
    names = tuple(list(declared)[:_MAX_NAMES])
    if key in declared:
        if declared[key] is False:
            return Member(ANY, "never", tuple(name for name in names if name != key))
        required = schema.get("required")
        is_required = isinstance(required, list) and key in required and types in (None, {"object"})
        return Member(SchemaShape(declared[key], root), "always" if is_required else "maybe", names)
    others = schema.get("additionalProperties")
    if schema.get("patternProperties"):
        return _UNKNOWN
    if others is False:
        return Member(ANY, "never", names)
    if isinstance(others, dict):
        return Member(SchemaShape(others, root), "unknown")
    if others is True or not declared:
        return _UNKNOWN
    return Member(ANY, "undeclared", names)


def _types(schema: JsonObject) -> set[str] | None:
    """Those that a value may have; None: any."""
    value = schema.get("type")
    if isinstance(value, str):
        return {value}
    return {each for each in value if isinstance(each, str)} if isinstance(value, list) else None


def _element(schema: JsonObject, root: JsonObject, index: int) -> Shape:
    first, others = schema.get("prefixItems"), schema.get("items")
    if isinstance(others, list):
        # As older drafts have it.
        first, others = others, schema.get("additionalItems")
    if isinstance(first, list) and index < len(first):
        return SchemaShape(first[index], root)
    return SchemaShape(others, root) if isinstance(others, dict) else ANY


def _both(found: list[Member]) -> Member:
    """Of a value to which all of them apply."""
    if any(each.presence == "never" for each in found):
        return Member(ANY, "never", _names(found))
    known = [each for each in found if not isinstance(each.shape, AnyShape)]
    if any(each.presence == "always" for each in found):
        presence: Presence = "always"
    elif any(each.presence == "maybe" for each in found):
        presence = "maybe"
    elif all(each.presence == "undeclared" for each in found):
        presence = "undeclared"
    else:
        presence = "unknown"
    # Each of them is right; the first says the most.
    return Member(known[0].shape if known else ANY, presence, _names(found))


def _either(found: list[Member]) -> Member:
    """Of a value to which one of them applies."""
    possible = [each for each in found if each.presence != "never"]
    if not possible:
        return Member(ANY, "never", _names(found))
    if any(each.presence == "unknown" for each in possible):
        presence: Presence = "unknown"
    elif len(possible) < len(found) or any(each.presence == "maybe" for each in possible):
        presence = "maybe"
    elif all(each.presence == "undeclared" for each in possible):
        presence = "undeclared"
    elif all(each.presence == "always" for each in possible):
        presence = "always"
    else:
        presence = "maybe"
    return Member(union(each.shape for each in possible), presence, _names(found))


def _names(found: Iterable[Member]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in found for name in each.names))[:_MAX_NAMES]


def union(shapes: Iterable[Shape]) -> Shape:
    found: list[Shape] = []
    for shape in shapes:
        for each in shape.alternatives if isinstance(shape, UnionShape) else (shape,):
            if isinstance(each, AnyShape):
                return ANY
            if not any(each is other for other in found):
                found.append(each)
    if not found or len(found) > MAX_ALTERNATIVES:
        return ANY
    return found[0] if len(found) == 1 else UnionShape(tuple(found))
