"""
A form made from a JSON Schema: its HTML, and the value that a browser sends back.

The page has no scripts. So items are added to a list, and removed from it, by sending the form: the server answers with
the same form and one item more or less. The browser checks what HTML can say; everything is checked against the schema
elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.workflow.actions.form_fields import FormField, form_of_schema

# A schema can be larger than a person can fill in.
MAX_FIELDS = 200
MAX_ITEMS = 50
# Buttons that send the form without being an answer; their value is the name of a list, or of an item of one.
ADD, REMOVE = "add", "remove"
# What Enter in a field presses, instead of the first of the other buttons: shows the form again.
STAY = "stay"
STAY_BUTTON = (
    f'<button class="away" name="{STAY}" value="1" formnovalidate tabindex="-1" aria-hidden="true"></button>'
)
# Of a list: how many items it has. Of a file: what was uploaded.
_COUNT, _UPLOADED = ".count", ".uploaded"
_INPUT_TYPES = {"date": "date", "email": "email", "uri": "url", "time": "time"}
_EXAMPLES = {"date-time": "2026-03-01T09:00:00Z", "time": "09:00:00Z"}
_ITEM = re.compile(r"(f[0-9]+(?:-[0-9]+)*)-([0-9]{1,3})")
_LIMITS = {"minimum": "min", "maximum": "max", "minLength": "minlength", "maxLength": "maxlength"}


class WrongField(NamedTuple):
    label: str
    message: str


class SchemaFormPage:
    """The fields are named by their places in the schema, so that a name fits any key."""

    def __init__(self, schema: JsonObject) -> None:
        self._root = form_of_schema(schema)
        self._count = 0
        self.wrong: list[WrongField] = []

    def html(self, given: Mapping[str, str]) -> str:
        """`given`: what was sent before, by the names of the fields."""
        self._count = 0
        return self._group(self._root, "f", given)

    def value(self, given: Mapping[str, str]) -> JsonObject:
        """What the fields say; what cannot be read is in `wrong`."""
        self._count, self.wrong = 0, []
        return self._read_group(self._root, "f", given)

    @property
    def has_files(self) -> bool:
        return _has(self._root, lambda field: field.kind == "file")

    @property
    def has_lists(self) -> bool:
        """Of items that have buttons."""
        return _has(self._root, lambda field: field.kind == "list" and not _is_list_of_texts(field))

    def _takes_room(self) -> bool:
        self._count += 1
        return self._count <= MAX_FIELDS

    def _group(self, group: FormField, name: str, given: Mapping[str, str]) -> str:
        return "".join(
            self._field(field, _child(name, place), given)
            for place, field in enumerate(group.fields, start=1)
        )

    def _field(self, field: FormField, name: str, given: Mapping[str, str]) -> str:
        if field.kind == "group":
            return f"<fieldset>{_legend(field)}{self._group(field, name, given)}</fieldset>"
        if field.kind == "list" and not _is_list_of_texts(field):
            return self._list(field, name, given)
        return _one_field(field, name, given) if self._takes_room() else ""

    def _list(self, field: FormField, name: str, given: Mapping[str, str]) -> str:
        parts = [f"<fieldset>{_legend(field)}"]
        count = _items(field, name, given)
        for place in range(count):
            if not self._takes_room():
                break
            item = f"{name}-{place}"
            remove = f'<button class="small" name="{REMOVE}" value="{item}" formnovalidate>Remove {place + 1}</button>'
            parts.append(
                f'<div class="item">{self._field(_item_of(field, place), item, given)}{remove}</div>'
            )
        parts.append(f'<input type="hidden" name="{name}{_COUNT}" value="{count}">')
        if count < MAX_ITEMS:
            title = escape(field.title)
            parts.append(
                f'<button class="small" name="{ADD}" value="{name}" formnovalidate>Add to {title}</button>'
            )
        return "".join([*parts, "</fieldset>"])

    def _read_group(self, group: FormField, name: str, given: Mapping[str, str]) -> JsonObject:
        found: JsonObject = {}
        for place, field in enumerate(group.fields, start=1):
            value = self._read(field, _child(name, place), given)
            if not isinstance(value, UnsetType):
                found[field.name] = value
        return found

    def _read(self, field: FormField, name: str, given: Mapping[str, str]) -> Json | UnsetType:
        """UNSET: it is left out."""
        if field.kind == "group":
            group = self._read_group(field, name, given)
            return group if group or field.required else UNSET
        if field.kind == "list" and not _is_list_of_texts(field):
            items: list[Json] = []
            for place in range(_items(field, name, given)):
                value = (
                    self._read(_item_of(field, place), f"{name}-{place}", given)
                    if self._takes_room()
                    else UNSET
                )
                items.append(None if isinstance(value, UnsetType) else value)
            return items if items or field.required else UNSET
        if not self._takes_room():
            return UNSET
        try:
            return _value(field, name, given)
        except ValueError as exc:
            self.wrong.append(WrongField(field.title, str(exc)))
            return UNSET


def edited(given: Mapping[str, str]) -> dict[str, str] | None:
    """The form with one item more or less; None: it was sent as an answer."""
    if STAY in given:
        return dict(given)
    name = given.get(ADD)
    if name is not None:
        count = _number(given.get(f"{name}{_COUNT}"))
        return {**given, f"{name}{_COUNT}": str(min(count + 1, MAX_ITEMS))}
    removed = _ITEM.fullmatch(given.get(REMOVE, ""))
    if removed is None:
        return None if REMOVE not in given else dict(given)
    name, place = removed[1], int(removed[2])
    found: dict[str, str] = {}
    for key, value in given.items():
        item = re.match(rf"{re.escape(name)}-([0-9]{{1,3}})(.*)", key)
        if item is None:
            found[key] = value
        elif int(item[1]) != place:
            # Those behind it move up.
            found[f"{name}-{int(item[1]) - (int(item[1]) > place)}{item[2]}"] = value
    found[f"{name}{_COUNT}"] = str(max(_number(given.get(f"{name}{_COUNT}")) - 1, 0))
    return found


def uploaded_field(name: str) -> str:
    """Where the form keeps what was uploaded in a field."""
    return f"{name}{_UPLOADED}"


def _child(name: str, place: int) -> str:
    return f"f{place}" if name == "f" else f"{name}-{place}"


def _has(field: FormField, wanted: Callable[[FormField], bool]) -> bool:
    if wanted(field):
        return True
    match field.kind:
        case "group":
            return any(_has(each, wanted) for each in field.fields)
        case "list":
            return _has(field.item, wanted)
        case _:
            return False


def _item_of(field: FormField, place: int) -> FormField:
    return msgspec.structs.replace(field.item, name=f"{field.title} {place + 1}", required=True)


def _is_list_of_texts(field: FormField) -> bool:
    return field.kind == "list" and field.item.kind == "text"


def _items(field: FormField, name: str, given: Mapping[str, str]) -> int:
    least = field.schema.get("minItems")
    first = least if isinstance(least, int) and not given else 0
    return max(0, min(_number(given.get(f"{name}{_COUNT}", str(first))), MAX_ITEMS))


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 5 else 0


def _value(field: FormField, name: str, given: Mapping[str, str]) -> Json | UnsetType:
    """Raises `ValueError`."""
    if field.kind == "file":
        uploaded = given.get(uploaded_field(name))
        return _json(uploaded) if uploaded else UNSET
    text = given.get(name, "").replace("\r\n", "\n")
    if field.kind == "boolean":
        # A box that is not ticked is not sent.
        return bool(text)
    if not text:
        return UNSET
    if field.kind == "text":
        return text
    if field.kind == "number":
        return _read_number(text)
    if _is_list_of_texts(field):
        return [line for line in text.split("\n") if line.strip()]
    return _json(text)


def _read_number(text: str) -> Json:
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


def _legend(field: FormField) -> str:
    return f"<legend>{escape(field.title)}</legend>{_description(field)}"


def _description(field: FormField) -> str:
    return f'<p class="hint">{escape(field.description)}</p>' if field.description else ""


def _one_field(field: FormField, name: str, given: Mapping[str, str]) -> str:
    shown = given.get(name)
    if shown is None and not given and not isinstance(field.default, UnsetType):
        is_text = isinstance(field.default, str) and field.kind != "choice"
        shown = str(field.default) if is_text else encode(field.default).decode()
    if field.kind == "boolean":
        checked = " checked" if shown in {"true", "on"} else ""
        return (
            f'<p class="box"><input type="checkbox" id="{name}" name="{name}" value="true"{checked}>'
            f'<label for="{name}">{escape(field.title)}</label></p>{_description(field)}'
        )
    mark = "" if field.required else ' <span class="hint">(optional)</span>'
    label = f'<label for="{name}">{escape(field.title)}{mark}</label>{_description(field)}'
    return f"<p>{label}{_control(field, name, shown or '', given)}</p>"


def _control(field: FormField, name: str, shown: str, given: Mapping[str, str]) -> str:
    names = f'id="{name}" name="{name}"{" required" if field.required else ""}{_limits(field)}'
    if field.kind == "choice":
        options = ['<option value=""></option>']
        for choice in field.choices:
            value = encode(choice.value).decode()
            selected = " selected" if value == shown else ""
            options.append(f'<option value="{escape(value)}"{selected}>{escape(choice.title)}</option>')
        return f"<select {names}>{''.join(options)}</select>"
    if field.kind == "file":
        return _file_control(field, name, given)
    if field.kind == "number":
        step = "1" if field.is_whole_number else "any"
        return f'<input type="number" step="{step}" inputmode="decimal" {names} value="{escape(shown)}">'
    if field.kind != "text":
        hint = "One per line." if _is_list_of_texts(field) else "As JSON."
        return f'<span class="hint">{hint}</span><textarea rows="4" {names}>{escape(shown)}</textarea>'
    if field.is_long_text:
        return f'<textarea rows="6" {names}>{escape(shown)}</textarea>'
    type_ = _INPUT_TYPES.get(field.format or "", "text")
    example = _EXAMPLES.get(field.format or "")
    hint = "" if example is None else f'<span class="hint">Such as {example}.</span>'
    return f'{hint}<input type="{type_}" {names} value="{escape(shown)}">'


def _file_control(field: FormField, name: str, given: Mapping[str, str]) -> str:
    kept = given.get(uploaded_field(name))
    if not kept:
        return f'<input type="file" id="{name}" name="{name}"{" required" if field.required else ""}>'
    value = _json(kept)
    title = value.get("name") if isinstance(value, dict) else ""
    return (
        f'<span class="hint">Uploaded: {escape(str(title))}. Choose another file to replace it.</span>'
        f'<input type="file" id="{name}" name="{name}">'
        f'<input type="hidden" name="{uploaded_field(name)}" value="{escape(kept)}">'
    )


def _limits(field: FormField) -> str:
    """What the browser checks, too."""
    if field.kind not in {"text", "number"}:
        return ""
    found = [
        f' {attribute}="{field.schema[key]}"'
        for key, attribute in _LIMITS.items()
        if isinstance(field.schema.get(key), int | float) and not isinstance(field.schema[key], bool)
    ]
    return "".join(found)
