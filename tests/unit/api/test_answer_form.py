"""Forms of the answer page: from a JSON Schema to fields, and from what a browser sends to a value."""

from __future__ import annotations

import pytest

from trunkline.api.answer_page.form import MAX_FIELDS, SchemaFormPage
from trunkline.jsontypes import Json, JsonObject

SCHEMA: JsonObject = {
    "type": "object",
    "required": ["amount", "colour"],
    "properties": {
        "amount": {"type": "integer", "title": "Amount <b>", "description": "In EUR & cents"},
        "colour": {"enum": ["red", 2, None]},
        "sure": {"type": "boolean", "title": "Sure"},
        "day": {"type": ["null", "string"], "format": "date"},
        "essay": {"type": "string", "maxLength": 5000},
        "names": {"type": "array", "items": {"type": "string"}},
        "anything": {"type": "array"},
        "address": {
            "type": "object",
            "title": "Address",
            "properties": {"city": {"type": "string"}, "zip": {"type": "string", "default": "1"}},
        },
    },
}


def test_each_property_has_the_field_of_its_type() -> None:
    html = SchemaFormPage(SCHEMA).html({})
    assert 'type="number" step="1" inputmode="decimal" id="f1" name="f1" required' in html
    assert '<select id="f2" name="f2" required><option value=""></option>' in html
    assert 'type="checkbox" id="f3"' in html
    assert 'type="date" id="f4"' in html
    assert '<textarea rows="6" id="f5"' in html
    assert "<fieldset><legend>Address</legend>" in html
    # A default is only shown before anything was sent.
    assert 'id="f9" name="f9" value="1"' in html
    assert 'id="f9" name="f9" value=""' in SchemaFormPage(SCHEMA).html({"f1": "2"})


def test_texts_of_the_schema_are_escaped() -> None:
    html = SchemaFormPage(SCHEMA).html({"f1": '"><script>'})
    assert "Amount &lt;b&gt;" in html
    assert "In EUR &amp; cents" in html
    assert "<script>" not in html


def test_a_value_has_the_types_of_the_schema() -> None:
    form = SchemaFormPage(SCHEMA)
    value = form.value(
        {
            "f1": " 7 ", "f2": "2", "f3": "true", "f4": "2026-03-01", "f5": "a\r\nb", "f6": "x\r\n\r\ny",
            "f7": "[1]", "f8": "Berlin",
        }
    )  # fmt: skip
    assert value == {
        "amount": 7,
        "colour": 2,
        "sure": True,
        "day": "2026-03-01",
        "essay": "a\nb",
        "names": ["x", "y"],
        "anything": [1],
        "address": {"city": "Berlin"},
    }
    assert form.wrong == []


def test_what_is_left_empty_is_left_out() -> None:
    assert SchemaFormPage(SCHEMA).value({"f1": "", "f2": "", "f8": ""}) == {"sure": False}


@pytest.mark.parametrize(("text", "word"), [("seven", "number"), ("true", "number"), ("1" * 5_000, "number")])
def test_what_cannot_be_read_is_named(text: str, word: str) -> None:
    form = SchemaFormPage(SCHEMA)
    form.value({"f1": text})
    assert [(wrong.label, word in wrong.message) for wrong in form.wrong] == [("Amount <b>", True)]


def test_wrong_json_is_named() -> None:
    form = SchemaFormPage(SCHEMA)
    form.value({"f7": "[" * 100_000})
    assert [wrong.label for wrong in form.wrong] == ["anything"]


def test_the_number_of_fields_and_the_depth_are_limited() -> None:
    wide: dict[str, Json] = {f"p{number}": {"type": "string"} for number in range(MAX_FIELDS + 5)}
    form = SchemaFormPage({"type": "object", "properties": wide})
    assert form.html({}).count("<input") == MAX_FIELDS
    assert len(form.value({f"f{number + 1}": "x" for number in range(MAX_FIELDS + 5)})) == MAX_FIELDS
    deep: JsonObject = {"type": "object", "properties": {}}
    for _ in range(50):
        deep = {"type": "object", "properties": {"x": deep}}
    assert SchemaFormPage(deep).html({}).count("<textarea") == 1
