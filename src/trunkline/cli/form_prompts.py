"""
Asks a person in a terminal for the values of a form, field by field.

Each value is checked by the field's own schema, and asked for again until it is right. What only the form as a whole
or the server can say is shown at the fields that it concerns, and these are asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET, DecodeError, UnsetType
from msgspec.structs import replace

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.rendering.output import harmless

if TYPE_CHECKING:
    from trunkline import jsontypes
    from trunkline.jsontypes import Json, JsonObject
    from trunkline.workflow import input_schema
    from trunkline.workflow.actions import form_fields
    from trunkline.workflow.actions.form_fields import FormField
else:
    form_fields = lazy_module("trunkline.workflow.actions.form_fields")
    input_schema = lazy_module("trunkline.workflow.input_schema")
    jsontypes = lazy_module("trunkline.jsontypes")

_YES = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_EXAMPLES = {"date": "2026-03-01", "date-time": "2026-03-01T09:00:00Z", "time": "09:00:00Z"}
MAX_ITEMS = 1_000
_INDENT = "  "


class Prompter:
    """Lines to and from the person."""

    def say(self, text: str, depth: int = 0) -> None:
        print(_INDENT * depth + harmless(text))  # noqa: T201 - a dialog, not output

    def ask(self, label: str, depth: int = 0) -> str:
        """Raises `CliError` when the person closes the input."""
        try:
            return input(f"{_INDENT * depth}{harmless(label)}: ")
        except EOFError as exc:
            print()  # noqa: T201 - as above
            raise CliError(
                "The answer was not sent, because the input has ended", exit_code=Exit.USAGE
            ) from exc

    def choose(self, label: str, titles: Sequence[str], depth: int = 0, default: int | None = None) -> int:
        """One of several, by its number or its title."""
        for number, title in enumerate(titles, start=1):
            self.say(f"{number}) {title}", depth + 1)
        mark = "" if default is None else f" [{titles[default]}]"
        while True:
            text = self.ask(f"{label}{mark}", depth).strip()
            if not text and default is not None:
                return default
            if text in titles:
                return titles.index(text)
            if text.isdecimal() and len(text) < 5 and 1 <= int(text) <= len(titles):
                return int(text) - 1
            self.say(f"! Enter a number from 1 to {len(titles)}, or the text of a choice.", depth)


class FieldError(NamedTuple):
    # The dotted path of the value inside the form; empty: the form as a whole.
    path: str
    message: str


class FormPrompts:
    def __init__(
        self,
        schema: JsonObject,
        prompter: Prompter,
        upload: Callable[[str], JsonObject],
    ) -> None:
        """`upload`: what a file becomes, by its path; it raises `CliError`."""
        self._form = form_fields.form_of_schema(schema)
        self._checked = input_schema.InputSchema(schema, "data", formats=True)
        self._prompter = prompter
        self._upload = upload
        self._value: Json = None

    def fill_in(self) -> Json:
        """All fields, until the form as a whole is right."""
        self._value = self._required(self._form)
        while errors := self._errors():
            self.correct(errors)
        return self._value

    def correct(self, errors: Sequence[FieldError]) -> Json:
        """Shows what is wrong, and asks again for the fields that it concerns."""
        names = {error.path.split(".")[0].partition("[")[0] for error in errors}
        for error in errors:
            self._prompter.say(f"! {error.path or 'The form'}: {error.message}")
        if self._form.kind == "group" and isinstance(self._value, dict):
            known = {field.name for field in self._form.fields}
            self._value = {**self._value, **self._group(self._form, names & known or known)}
        else:
            self._value = self._required(self._form)
        return self._value

    def _errors(self) -> list[FieldError]:
        return [
            FieldError(error.path.removeprefix("data").removeprefix("."), error.message)
            for error in self._checked.check(self._value)
        ]

    def _required(self, field: FormField) -> Json:
        value = self._ask(field)
        return None if isinstance(value, UnsetType) else value

    def _ask(self, field: FormField) -> Json | UnsetType:
        """UNSET: it is left out."""
        depth = max(field.depth - 1, 0)
        match field.kind:
            case "group":
                return self._ask_group(field, depth)
            case "list":
                return self._ask_list(field, depth)
            case _:
                return self._ask_value(field, depth)

    def _ask_group(self, field: FormField, depth: int) -> Json | UnsetType:
        if field.depth > 0:
            self._prompter.say(f"{field.title}:", depth)
            self._describe(field, depth + 1)
            if not field.required and not self._confirm(f"Fill in {field.title}?", depth, default=False):
                return UNSET
        return self._group(field, {each.name for each in field.fields})

    def _group(self, field: FormField, names: Collection[str]) -> JsonObject:
        found: JsonObject = {}
        for each in field.fields:
            value = self._ask(each) if each.name in names else UNSET
            if not isinstance(value, UnsetType):
                found[each.name] = value
        return found

    def _ask_list(self, field: FormField, depth: int) -> Json | UnsetType:
        least, most = _bound(field, "minItems", 0), min(_bound(field, "maxItems", MAX_ITEMS), MAX_ITEMS)
        self._prompter.say(f"{field.title}{_optional(field)}:", depth)
        self._describe(field, depth + 1)
        found: list[Json] = []
        while len(found) < most:
            another = "Add another one?" if found else f"Add to {field.title}?"
            if len(found) >= least and not self._confirm(another, depth + 1, default=False):
                break
            item = replace(field.item, name=f"{field.title} {len(found) + 1}")
            found.append(self._required(item))
        return found if found or field.required else UNSET

    def _ask_value(self, field: FormField, depth: int) -> Json | UnsetType:
        self._describe(field, depth)
        check = input_schema.InputSchema(field.standalone_schema, "value", formats=True)
        while True:
            try:
                value = self._read(field, depth)
            except ValueError as exc:
                self._prompter.say(f"! {exc}", depth)
                continue
            if isinstance(value, UnsetType):
                if not field.required:
                    return UNSET
                self._prompter.say(f"! {field.title} is required.", depth)
                continue
            errors = check.check(value)
            if not errors:
                return value
            for error in errors:
                self._prompter.say(f"! {error.message}", depth)

    def _read(self, field: FormField, depth: int) -> Json | UnsetType:
        """One attempt; raises `ValueError`."""
        if field.kind == "choice":
            return self._read_choice(field, depth)
        if field.kind == "boolean":
            default = field.default if isinstance(field.default, bool) else None
            return self._read_boolean(field, depth, default)
        text = self._read_text(field, depth)
        if not text:
            return field.default
        return self._value_of(field, text)

    def _value_of(self, field: FormField, text: str) -> Json:
        match field.kind:
            case "text":
                return text
            case "number":
                value = _json(text.strip(), f"{field.title} must be a number.")
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise ValueError(f"{field.title} must be a number.")  # noqa: TRY004 - a wrong value
                return value
            case "file":
                try:
                    return self._upload(text)
                except CliError as exc:
                    raise ValueError(str(exc)) from exc
            case _:
                return _json(text, f"{field.title} must be JSON, such as {{}} or [].")

    def _read_text(self, field: FormField, depth: int) -> str:
        label = f"{field.title}{_hint(field)}{_optional(field)}"
        if not isinstance(field.default, UnsetType):
            shown = (
                field.default if isinstance(field.default, str) else jsontypes.encode(field.default).decode()
            )
            label = f"{label} [{shown}]"
        if not field.is_long_text:
            return self._prompter.ask(label, depth)
        self._prompter.say(f"{label} (an empty line ends it)", depth)
        lines: list[str] = []
        while line := self._prompter.ask("", depth):
            lines.append(line)
        return "\n".join(lines)

    def _read_choice(self, field: FormField, depth: int) -> Json | UnsetType:
        values = [choice.value for choice in field.choices]
        titles = [choice.title for choice in field.choices]
        default = next((place for place, value in enumerate(values) if value == field.default), None)
        if not field.required and default is None:
            titles.append("(leave it out)")
            default = len(values)
        chosen = self._prompter.choose(field.title, titles, depth, default)
        return values[chosen] if chosen < len(values) else UNSET

    def _read_boolean(self, field: FormField, depth: int, default: bool | None) -> Json | UnsetType:
        choices = {True: "[Y/n]", False: "[y/N]", None: "[y/n]"}[default]
        text = self._prompter.ask(f"{field.title} {choices}{_optional(field)}", depth).strip().lower()
        if not text:
            return UNSET if default is None else default
        if text not in _YES:
            raise ValueError("Enter y or n.")
        return _YES[text]

    def _confirm(self, question: str, depth: int, *, default: bool) -> bool:
        while True:
            text = self._prompter.ask(f"{question} [{'Y/n' if default else 'y/N'}]", depth).strip().lower()
            if not text:
                return default
            if text in _YES:
                return _YES[text]
            self._prompter.say("! Enter y or n.", depth)

    def _describe(self, field: FormField, depth: int) -> None:
        if field.description:
            self._prompter.say(field.description, depth)


def _hint(field: FormField) -> str:
    if field.kind == "file":
        return " (path of a file)"
    example = _EXAMPLES.get(field.format or "")
    if example is not None:
        return f" (such as {example})"
    return " (JSON)" if field.kind == "json" else ""


def _optional(field: FormField) -> str:
    return "" if field.required else " (optional)"


def _bound(field: FormField, key: str, default: int) -> int:
    value = field.schema.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def _json(text: str, message: str) -> Json:
    try:
        return jsontypes.decode(text.encode())
    except (DecodeError, ValueError, RecursionError) as exc:
        raise ValueError(message) from exc
