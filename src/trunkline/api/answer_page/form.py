"""
A form made from a JSON Schema: its HTML, and the value that a browser sends back.

Objects become groups of fields, enums become lists of choices, and lists of texts have a line for each text. What has
no field of its own is written as JSON. The value is checked against the schema elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import NamedTuple

import msgspec

from trunkline.jsontypes import Json, JsonObject, decode, encode

# A schema can be larger than a person can fill in.
MAX_FIELDS = 200
MAX_DEPTH = 5
_LONG_TEXT = 200
_INPUT_TYPES = {"date": "date", "email": "email", "uri": "url", "time": "time"}


class WrongField(NamedTuple):
    label: str
    message: str


class SchemaFormPage:
    """The fields are numbered in the order of the schema, so that a name says nothing and fits any key."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._count = 0
        self.wrong: list[WrongField] = []

    def html(self, given: Mapping[str, str]) -> str:
        """`given`: what was sent before, by the names of the fields."""
        self._count = 0
        return self._group(self._schema, given, 0)

    def value(self, given: Mapping[str, str]) -> JsonObject:
        """What the fields say; what cannot be read is in `wrong`."""
        self._count, self.wrong = 0, []
        return self._read_group(self._schema, given, 0)

    def _properties(self, schema: JsonObject) -> list[tuple[str, JsonObject, bool]]:
        """The name, the schema and whether it is required."""
        properties, required = schema.get("properties"), schema.get("required")
        names = required if isinstance(required, list) else []
        if not isinstance(properties, dict):
            return []
        return [
            (name, each if isinstance(each, dict) else {}, name in names) for name, each in properties.items()
        ]

    def _is_group(self, schema: JsonObject, depth: int) -> bool:
        return schema.get("type") == "object" and "properties" in schema and depth < MAX_DEPTH

    def _next_name(self) -> str | None:
        self._count += 1
        return f"f{self._count}" if self._count <= MAX_FIELDS else None

    def _group(self, schema: JsonObject, given: Mapping[str, str], depth: int) -> str:
        parts: list[str] = []
        for name, each, required in self._properties(schema):
            if self._is_group(each, depth):
                legend = f"<legend>{_label(name, each)}</legend>{_description(each)}"
                parts.append(f"<fieldset>{legend}{self._group(each, given, depth + 1)}</fieldset>")
                continue
            field = self._next_name()
            if field is not None:
                parts.append(_field(field, name, each, given, required=required))
        return "".join(parts)

    def _read_group(self, schema: JsonObject, given: Mapping[str, str], depth: int) -> JsonObject:
        found: JsonObject = {}
        for name, each, required in self._properties(schema):
            if self._is_group(each, depth):
                group = self._read_group(each, given, depth + 1)
                if group or required:
                    found[name] = group
                continue
            field = self._next_name()
            text = None if field is None else given.get(field)
            if text is None or (not text and _kind(each) != "boolean"):
                if _kind(each) == "boolean" and field is not None:
                    # A box that is not ticked is not sent.
                    found[name] = False
                continue
            try:
                found[name] = _value(each, text)
            except ValueError as exc:
                self.wrong.append(WrongField(_plain_label(name, each), str(exc)))
        return found


def _kind(schema: JsonObject) -> str | None:
    """Its type; of several, the first one that says something."""
    kinds = schema.get("type")
    listed = kinds if isinstance(kinds, list) else [kinds]
    return next((kind for kind in listed if isinstance(kind, str) and kind != "null"), None)


def _choices(schema: JsonObject) -> list[Json] | None:
    choices = schema.get("enum")
    return choices if isinstance(choices, list) else None


def _is_list_of_texts(schema: JsonObject) -> bool:
    items = schema.get("items")
    return schema.get("type") == "array" and isinstance(items, dict) and items.get("type") == "string"


def _value(schema: JsonObject, text: str) -> Json:
    """Raises `ValueError`."""
    text = text.replace("\r\n", "\n")
    kind = _kind(schema)
    if _choices(schema) is not None:
        return _json(text)
    if kind == "boolean":
        return True
    if kind in {"integer", "number"}:
        return _number(text)
    if kind == "string":
        return text
    if _is_list_of_texts(schema):
        return [line for line in text.split("\n") if line.strip()]
    return _json(text)


def _number(text: str) -> Json:
    try:
        value = decode(text.strip().encode())
    except (msgspec.DecodeError, ValueError, RecursionError) as exc:
        raise ValueError(f"must be a number, but it is '{text[:40]}'") from exc
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, but it is '{text[:40]}'")  # noqa: TRY004 - a wrong value
    return value


def _json(text: str) -> Json:
    try:
        return decode(text.encode())
    except (msgspec.DecodeError, ValueError, RecursionError) as exc:
        raise ValueError(f"must be JSON: {str(exc)[:200]}") from exc


def _plain_label(name: str, schema: JsonObject) -> str:
    title = schema.get("title")
    return title if isinstance(title, str) and title else name


def _label(name: str, schema: JsonObject) -> str:
    return escape(_plain_label(name, schema))


def _description(schema: JsonObject) -> str:
    text = schema.get("description")
    return f'<p class="hint">{escape(text)}</p>' if isinstance(text, str) and text else ""


def _field(field: str, name: str, schema: JsonObject, given: Mapping[str, str], *, required: bool) -> str:
    default = schema.get("default")
    shown = given.get(field)
    if shown is None and not given and default is not None:
        shown = default if isinstance(default, str) and _choices(schema) is None else encode(default).decode()
    need = " required" if required else ""
    mark = "" if required else ' <span class="hint">(optional)</span>'
    label = f'<label for="{field}">{_label(name, schema)}{mark}</label>{_description(schema)}'
    if _kind(schema) == "boolean" and _choices(schema) is None:
        checked = " checked" if shown in {"true", "on"} else ""
        return (
            f'<p class="box"><input type="checkbox" id="{field}" name="{field}" value="true"{checked}>'
            f'<label for="{field}">{_label(name, schema)}</label></p>{_description(schema)}'
        )
    return f"<p>{label}{_control(field, schema, shown or '', need)}</p>"


def _control(field: str, schema: JsonObject, shown: str, need: str) -> str:
    names = f'id="{field}" name="{field}"{need}'
    choices = _choices(schema)
    if choices is not None:
        options = ['<option value=""></option>']
        for choice in choices:
            value = encode(choice).decode()
            text = choice if isinstance(choice, str) else value
            selected = " selected" if value == shown else ""
            options.append(f'<option value="{escape(value)}"{selected}>{escape(text)}</option>')
        return f"<select {names}>{''.join(options)}</select>"
    kind, longest = _kind(schema), schema.get("maxLength")
    if kind in {"integer", "number"}:
        step = "1" if kind == "integer" else "any"
        return f'<input type="number" step="{step}" inputmode="decimal" {names} value="{escape(shown)}">'
    if kind != "string":
        hint = "One per line." if _is_list_of_texts(schema) else "As JSON."
        return f'<span class="hint">{hint}</span><textarea rows="4" {names}>{escape(shown)}</textarea>'
    format_ = schema.get("format")
    if format_ in ("textarea", "multiline") or (isinstance(longest, int) and longest > _LONG_TEXT):
        return f'<textarea rows="6" {names}>{escape(shown)}</textarea>'
    type_ = _INPUT_TYPES.get(format_, "text") if isinstance(format_, str) else "text"
    hint = '<span class="hint">Such as 2026-03-01T09:00:00Z.</span>' if format_ == "date-time" else ""
    return f'{hint}<input type="{type_}" {names} value="{escape(shown)}">'
