"""
The fields of a form that is made from a JSON Schema, as people fill it in: on the answer page and on the command line.

What has no field of its own (unions, free-form objects, unknown keywords) is written as JSON. Whether a value satisfies
the schema is checked elsewhere. The web UI has the same rules (`ui/src/forms/schema.ts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.jsontypes import Json, JsonObject

FieldKind = Literal["text", "number", "boolean", "choice", "list", "group", "file", "json"]
# `format` of an object that is an uploaded file: {name, mediaType, blob}.
FILE_FORMAT = "file"
# A schema may refer to itself.
MAX_DEPTH = 6
_MAX_HOPS = 6
_LONG_TEXT = 200
_UNIONS = ("oneOf", "anyOf")
_COMBINED = (*_UNIONS, "allOf", "not", "if", "patternProperties")


class FormChoice(NamedTuple):
    value: Json
    title: str


class FormField(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a form; `fields` and `items` are read on demand, since a schema may be deep."""

    name: str
    schema: JsonObject
    root: JsonObject
    required: bool
    depth: int
    kind: FieldKind
    choices: tuple[FormChoice, ...] = ()

    @property
    def title(self) -> str:
        title = self.schema.get("title")
        return title if isinstance(title, str) and title else self.name

    @property
    def description(self) -> str:
        text = self.schema.get("description")
        return text if isinstance(text, str) else ""

    @property
    def default(self) -> Json | UnsetType:
        return self.schema.get("default", UNSET)

    @property
    def format(self) -> str | None:
        value = self.schema.get("format")
        return value if isinstance(value, str) else None

    @property
    def is_whole_number(self) -> bool:
        return _type_of(self.schema) == "integer"

    @property
    def is_long_text(self) -> bool:
        longest = self.schema.get("maxLength")
        is_long = isinstance(longest, int) and longest > _LONG_TEXT
        return self.kind == "text" and (is_long or self.format in {"textarea", "multiline"})

    @property
    def standalone_schema(self) -> JsonObject:
        """Of this value alone."""
        shared = {name: self.root[name] for name in ("$defs", "definitions") if name in self.root}
        return {**shared, **self.schema}

    @property
    def fields(self) -> tuple[FormField, ...]:
        """Of a group."""
        properties, required = self.schema.get("properties"), self.schema.get("required")
        if not isinstance(properties, dict):
            return ()
        needed = required if isinstance(required, list) else []
        return tuple(
            _field(name, each, self.root, required=name in needed, depth=self.depth + 1)
            for name, each in properties.items()
        )

    @property
    def item(self) -> FormField:
        """One value of a list."""
        items = self.schema.get("items")
        return _field(self.name, items, self.root, required=True, depth=self.depth + 1)


def form_of_schema(schema: JsonObject) -> FormField:
    """The form as a whole: a group, unless the schema describes something else."""
    return _field("data", schema, schema, required=True, depth=0)


def _field(name: str, given: Json, root: JsonObject, *, required: bool, depth: int) -> FormField:
    schema = _resolved(given if isinstance(given, dict) else {}, root)
    choices = tuple(_choices(schema))
    kind = "choice" if choices else _kind(schema, depth)
    return FormField(
        name=name, schema=schema, root=root, required=required, depth=depth, kind=kind, choices=choices
    )


def _resolved(schema: JsonObject, root: JsonObject) -> JsonObject:
    """A `$ref` within the same document is followed."""
    for _ in range(_MAX_HOPS):
        reference = schema.get("$ref")
        target = _pointed(root, reference) if isinstance(reference, str) else None
        if target is None:
            break
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def _pointed(root: JsonObject, reference: str) -> JsonObject | None:
    if not reference.startswith("#"):
        return None
    found: Json = root
    for part in reference[1:].split("/")[1:]:
        if not isinstance(found, dict):
            return None
        found = found.get(part.replace("~1", "/").replace("~0", "~"))
    return found if isinstance(found, dict) else None


def _choices(schema: JsonObject) -> Iterator[FormChoice]:
    """An enum, one constant, or constants with titles (`oneOf: [{const, title}]`)."""
    values = schema.get("enum")
    if isinstance(values, list):
        yield from (FormChoice(value, _text_of(value)) for value in values)
    elif "const" in schema:
        yield FormChoice(schema["const"], _text_of(schema["const"]))
    else:
        for key in _UNIONS:
            options = schema.get(key)
            if isinstance(options, list) and options:
                constants = [each for each in options if isinstance(each, dict) and "const" in each]
                if len(constants) == len(options):
                    yield from (FormChoice(each["const"], _title_of(each)) for each in constants)
                    return


def _title_of(option: JsonObject) -> str:
    title = option.get("title")
    return title if isinstance(title, str) and title else _text_of(option["const"])


def _text_of(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _kind(schema: JsonObject, depth: int) -> FieldKind:
    if schema.get("format") == FILE_FORMAT:
        return "file"
    if "$ref" in schema or depth > MAX_DEPTH or any(key in schema for key in _COMBINED):
        return "json"
    match _type_of(schema):
        case "string":
            return "text"
        case "integer" | "number":
            return "number"
        case "boolean":
            return "boolean"
        case "array" if isinstance(schema.get("items"), dict):
            return "list"
        case "object" if isinstance(schema.get("properties"), dict) and schema["properties"]:
            return "group"
        case _:
            return "json"


def _type_of(schema: JsonObject) -> str | None:
    """The only type besides null."""
    kinds = schema.get("type")
    if kinds is None and isinstance(schema.get("properties"), dict):
        return "object"
    listed = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind != "null"]
    return listed[0] if len(listed) == 1 and isinstance(listed[0], str) else None
