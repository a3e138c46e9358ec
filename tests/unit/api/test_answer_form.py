"""Forms of the answer page: from a JSON Schema to fields, and from what a browser sends to a value."""

from __future__ import annotations

import pytest

from trunkline.api.answer_page.form import ADD, MAX_FIELDS, MAX_ITEMS, REMOVE, STAY, SchemaFormPage, edited
from trunkline.api.answer_page.multipart import MAX_PARTS, SentFile, boundary_of, read_multipart
from trunkline.errors import Invalid
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
    assert 'id="f8-2" name="f8-2" value="1"' in html
    assert 'id="f8-2" name="f8-2" value=""' in SchemaFormPage(SCHEMA).html({"f1": "2"})


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
            "f7": "[1]", "f8-1": "Berlin",
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
    assert SchemaFormPage(SCHEMA).value({"f1": "", "f2": "", "f8-1": ""}) == {"sure": False}


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


LINES: JsonObject = {
    "type": "object",
    "properties": {
        "lines": {
            "type": "array",
            "title": "Lines",
            "items": {"type": "object", "properties": {"what": {"type": "string"}, "n": {"type": "integer"}}},
        },
        "speed": {"oneOf": [{"const": 1, "title": "Slow"}, {"const": 2, "title": "Fast"}]},
        "receipt": {"type": "object", "format": "file", "title": "Receipt"},
    },
    "required": ["lines"],
}


def test_items_are_added_to_a_list_and_removed_from_it_by_sending_the_form() -> None:
    given = edited({ADD: "f1", "f2": "1"})
    assert given is not None
    given = edited({**given, ADD: "f1", "f1-0-1": "first"})
    assert given is not None
    given.update({"f1-1-1": "second", "f1-1-2": "2"})
    given.pop(ADD)
    form = SchemaFormPage(LINES)
    assert 'name="f1-1-2"' in form.html(given)
    assert form.value(given) == {"lines": [{"what": "first"}, {"what": "second", "n": 2}], "speed": 1}
    assert edited(given) is None
    left = edited({**given, REMOVE: "f1-0"})
    assert left is not None
    assert form.value(left) == {"lines": [{"what": "second", "n": 2}], "speed": 1}


def test_enter_in_a_field_shows_the_form_again() -> None:
    assert edited({STAY: "1", "f2": "1"}) == {STAY: "1", "f2": "1"}


def test_a_list_has_a_limited_number_of_items() -> None:
    given = edited({ADD: "f1", "f1.count": str(MAX_ITEMS)})
    assert given is not None
    html = SchemaFormPage(LINES).html(given)
    assert html.count("Remove ") == MAX_ITEMS
    assert "Add to Lines" not in html
    assert SchemaFormPage(LINES).html({"f1.count": "9" * 400}).count("Remove ") == 0


@pytest.mark.parametrize("sent", ["", "f1", "f1-x", "f9-9999", "<script>"])
def test_an_item_that_is_not_there_is_not_removed(sent: str) -> None:
    given = {"f1.count": "1", "f1-0-1": "first", REMOVE: sent}
    left = edited(given)
    assert left is not None
    assert SchemaFormPage(LINES).value(left)["lines"] == [{"what": "first"}]


def test_choices_are_shown_by_their_titles() -> None:
    assert '<option value="2" selected>Fast</option>' in SchemaFormPage(LINES).html({"f2": "2"})


def test_an_uploaded_file_stays_when_the_form_is_shown_again() -> None:
    form = SchemaFormPage(LINES)
    assert form.has_files
    assert not SchemaFormPage(SCHEMA).has_files
    assert '<input type="file" id="f3" name="f3">' in form.html({})
    given = {"f3.uploaded": '{"name":"a<b.txt","blob":{}}'}
    assert "Uploaded: a&lt;b.txt." in form.html(given)
    assert form.value(given) == {"lines": [], "receipt": {"name": "a<b.txt", "blob": {}}}


def multipart(*parts: tuple[str, bytes]) -> bytes:
    return (
        b"".join(
            f"--b0\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n"
            for head, content in parts
        )
        + b"--b0--\r\n"
    )


def test_fields_and_files_of_a_form_are_read() -> None:
    file = 'name="f3"; filename="C:\\\\dir\\\\ä.txt"\r\nContent-Type: text/plain; charset=x'
    body = multipart(
        ('name="f1"', "ü\r\nx".encode()), (file, b"\x00\r\n--b\r\n"), ('name="f4"; filename=""', b"")
    )
    form = read_multipart(body, b"b0")
    assert form.fields == {"f1": "ü\r\nx"}
    assert form.files == [SentFile("f3", "ä.txt", "text/plain", b"\x00\r\n--b\r\n")]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--b0--\r\n"[:4],
        b"--b0\r\nno headers\r\n--b0--",
        b"--b0\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b0--",
        multipart(('name="a"', b"\xff")),
        multipart(*[('name="a"', b"x")] * (MAX_PARTS + 1)),
        multipart(('name="a"; x="' + "y" * 9_000 + '"', b"x")),
    ],
)
def test_a_form_that_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        read_multipart(body, b"b0")


@pytest.mark.parametrize(
    ("header", "boundary"),
    [
        ("multipart/form-data; boundary=b0", b"b0"),
        ('multipart/form-data; charset=utf-8; boundary="b 0"', b"b 0"),
        ("multipart/mixed; boundary=b0", None),
        ("application/x-www-form-urlencoded", None),
        ("", None),
    ],
)
def test_the_boundary_is_in_the_content_type(header: str, boundary: bytes | None) -> None:
    assert boundary_of(header) == boundary
