"""Forms on the command line: which questions a schema becomes, and which values the answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.form_prompts import FieldError, FormPrompts, Prompter
from trunkline.jsontypes import Json, JsonObject

ADDRESS: JsonObject = {
    "type": "object",
    "title": "Address",
    "required": ["street"],
    "properties": {"street": {"type": "string"}, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}},
}


class Person(Prompter):
    """Types these lines, and keeps what was shown."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.shown: list[str] = []

    def say(self, text: str, depth: int = 0) -> None:
        self.shown.append("  " * depth + text)

    def ask(self, label: str, depth: int = 0) -> str:
        self.shown.append("  " * depth + label)
        if not self.lines:
            raise CliError("The answer was not sent, because the input has ended", exit_code=Exit.USAGE)
        return self.lines.pop(0)


def uploaded(path: str) -> JsonObject:
    if path == "missing":
        raise CliError("Cannot read missing: No such file")
    return {"name": path, "blob": {}}


def filled(schema: JsonObject, *lines: str) -> tuple[Json, list[str]]:
    person = Person(*lines)
    value = FormPrompts(schema, person, uploaded).fill_in()
    assert person.lines == []
    return value, person.shown


def form(required: Sequence[str] = (), **properties: Json) -> JsonObject:
    return {"type": "object", "required": list(required), "properties": properties}


def test_titles_descriptions_and_defaults_are_shown() -> None:
    amount: JsonObject = {
        "type": "number",
        "title": "Amount in EUR",
        "description": "With VAT.",
        "default": 20,
    }
    value, shown = filled(form(["amount"], amount=amount), "")
    assert (value, shown) == ({"amount": 20}, ["With VAT.", "Amount in EUR [20]"])


def test_optional_values_that_are_not_entered_are_left_out() -> None:
    kinds: JsonObject = {
        "text": {"type": "string"},
        "number": {"type": "integer"},
        "yes": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "string"}},
        "group": ADDRESS,
        "choice": {"enum": ["a", "b"]},
    }
    assert filled({"type": "object", "properties": kinds}, "", "", "", "", "", "")[0] == {}


@pytest.mark.parametrize(
    ("schema", "wrong", "why", "right", "value"),
    [
        ({"type": "number", "maximum": 5}, "7", "maximum of 5", "4.5", 4.5),
        ({"type": "integer"}, "many", "must be a number", "3", 3),
        ({"type": "integer"}, "1.5", 'is not of type "integer"', "2", 2),
        ({"type": "string", "format": "date"}, "tomorrow", 'is not a "date"', "2026-03-01", "2026-03-01"),
        ({"type": "string", "minLength": 3}, "ab", "shorter than 3", "abc", "abc"),
        ({"type": "boolean"}, "perhaps", "Enter y or n", "Yes", True),
        ({"type": "object"}, "{", "must be JSON", '{"a": [1]}', {"a": [1]}),
        (
            {"type": "object", "format": "file"},
            "missing",
            "No such file",
            "a.txt",
            {"name": "a.txt", "blob": {}},
        ),
        ({"type": "string"}, "", "is required", "x", "x"),
    ],
)
def test_a_wrong_value_is_explained_and_asked_for_again(
    schema: JsonObject, wrong: str, why: str, right: str, value: Json
) -> None:
    found, shown = filled(form(["it"], it=schema), wrong, right)
    assert found == {"it": value}
    assert [line for line in shown if line.startswith("! ") and why in line]


def test_choices_are_numbered_and_have_their_titles() -> None:
    titled: JsonObject = {
        "title": "Speed",
        "oneOf": [{"const": 1, "title": "Slow"}, {"const": 2, "title": "Fast"}],
    }
    value, shown = filled(form(["speed"], speed=titled), "3", "2")
    assert value == {"speed": 2}
    assert shown[:3] == ["  1) Slow", "  2) Fast", "Speed"]
    assert filled(form(["speed"], speed=titled), "Slow")[0] == {"speed": 1}


def test_an_optional_choice_can_be_left_out_and_a_default_is_taken() -> None:
    schema = form(a={"enum": ["x", "y"]}, b={"enum": ["x", "y"], "default": "y"})
    assert filled(schema, "", "")[0] == {"b": "y"}


def test_nested_objects_and_lists_are_asked_for_one_by_one() -> None:
    schema = form(["address"], address=ADDRESS, lines={"type": "array", "items": ADDRESS, "maxItems": 2})
    value, shown = filled(schema, "Main St", "1234", "12345", "y", "First", "", "y", "Second", "54321")
    assert value == {
        "address": {"street": "Main St", "zip": "12345"},
        "lines": [{"street": "First"}, {"street": "Second", "zip": "54321"}],
    }
    assert "Address:" in shown


def test_a_list_has_at_least_the_number_of_items_that_the_schema_says() -> None:
    schema = form(["tags"], tags={"type": "array", "items": {"type": "string"}, "minItems": 2})
    assert filled(schema, "a", "b", "n")[0] == {"tags": ["a", "b"]}


def test_a_reference_is_followed_and_a_recursive_schema_ends_as_json() -> None:
    node: JsonObject = {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}
    schema: JsonObject = {**form(["root"], root={"$ref": "#/$defs/node"}), "$defs": {"node": node}}
    value, _ = filled(schema, *["y"] * 5, '{"child": {}}')
    assert isinstance(value, dict)
    assert str(value).count("child") == 7


def test_long_text_has_several_lines() -> None:
    schema = form(["text"], text={"type": "string", "maxLength": 2000})
    assert filled(schema, "One", "Two", "")[0] == {"text": "One\nTwo"}


def test_what_only_the_form_as_a_whole_can_say_is_asked_for_again() -> None:
    schema: JsonObject = {
        **form(a={"type": "string"}, b={"type": "string"}),
        "dependentRequired": {"a": ["b"]},
    }
    value, shown = filled(schema, "x", "", "x", "y")
    assert value == {"a": "x", "b": "y"}
    assert [line for line in shown if line.startswith("! The form: ")]


def test_what_the_server_refuses_is_asked_for_again_and_the_rest_is_kept() -> None:
    person = Person("1", "2", "3")
    prompts = FormPrompts(form(["a", "b"], a={"type": "integer"}, b={"type": "integer"}), person, uploaded)
    assert prompts.fill_in() == {"a": 1, "b": 2}
    assert prompts.correct([FieldError("b", "is taken")]) == {"a": 1, "b": 3}
    assert "! b: is taken" in person.shown
