"""JSON Schemas as tables of a page: a row for each property, in the words of the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from trunkline.jsontypes import Json, JsonObject, encode

# How a reference to another schema is written; it may be left to be a plain name.
Link = Callable[[str], str]

_KINDS = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
}


def table_of(schema: JsonObject, link: Link) -> list[str]:
    """The properties of an object, those of objects inside it under their paths."""
    return ["| field | | |", "|---|---|---|", *_rows(schema, link, "")]


def _rows(schema: JsonObject, link: Link, before: str) -> list[str]:
    required = cast("list[str]", schema.get("required", []))
    rows: list[str] = []
    for name, inner in properties_of(schema).items():
        path = f"{before}{name}"
        needed = "required" if name in required else _default(inner)
        form = form_of(inner, link)
        about = " ".join(str(inner.get("description", "")).split())
        rows.append(f"| `{path}` | {form}{f'; {needed}' if needed else ''} | {_cell(about)} |")
        for nested in _objects_in(inner):
            rows += _rows(nested, link, f"{path}.")
    return list(dict.fromkeys(rows))


def properties_of(schema: JsonObject) -> Mapping[str, JsonObject]:
    found = schema.get("properties")
    if not isinstance(found, dict):
        return {}
    # False forbids a property; there is nothing to say about it.
    return {name: inner for name, inner in found.items() if isinstance(inner, dict)}


def _objects_in(schema: JsonObject) -> list[JsonObject]:
    """The object that a property is, or those that it may be."""
    if "$ref" in schema:
        return []
    return [
        variant
        for variant in [schema, *variants_of(schema)]
        if "$ref" not in variant and properties_of(variant)
    ]


def variants_of(schema: JsonObject) -> list[JsonObject]:
    found = schema.get("oneOf", schema.get("anyOf", []))
    return [variant for variant in cast("list[Json]", found) if isinstance(variant, dict)]


def _default(schema: JsonObject) -> str:
    default = schema.get("default")
    return "" if default is None else f"default `{_text(default)}`"


def form_of(schema: JsonObject, link: Link) -> str:
    """What a value looks like, in a few words."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return link(reference.rpartition("/")[2])
    if "const" in schema:
        return f"`{_text(schema['const'])}`"
    if isinstance(schema.get("enum"), list):
        return ", ".join(f"`{_text(value)}`" for value in cast("list[Json]", schema["enum"]))
    if variants := variants_of(schema):
        return " or ".join(dict.fromkeys(form_of(variant, link) for variant in variants))
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return " or ".join(form_of({**schema, "type": kind}, link) for kind in kinds)
    if kinds == "array":
        items = schema.get("items")
        return f"list of {form_of(items, link)}" if isinstance(items, dict) and items else "list"
    if kinds == "object":
        return "object"
    return f"{_KINDS.get(str(kinds), 'any JSON')}{_range(schema)}"


def _range(schema: JsonObject) -> str:
    for low, high in (("minimum", "maximum"), ("minLength", "maxLength")):
        least, most = schema.get(low), schema.get(high)
        unit = " characters" if low == "minLength" else ""
        if least is not None and most is not None:
            return f", {_number(least)} to {_number(most)}{unit}"
        if most is not None:
            return f", at most {_number(most)}{unit}"
        if least is not None:
            return f", at least {_number(least)}{unit}"
    return ""


def _number(value: Json) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
