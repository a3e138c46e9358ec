"""Schemas and values that would cost time and memory without end: each is refused, or described in few words."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.workflow.bounded_schema import (
    MAX_SCHEMA_PARTS,
    BoundedSchema,
    SchemaTooComplex,
    ValueTooComplex,
)
from trunkline.workflow.input_schema import InputSchema

LINK: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}}, "required": ["a"]}
# A value can be one of two kinds of link, so a chain of n links can be read in 2^n ways.
RECURSIVE: JsonObject = {
    "$defs": {"node": {"anyOf": [LINK, {**LINK, "title": "another"}, {"type": "string"}]}},
    "$ref": "#/$defs/node",
}


def chain(length: int, end: Json) -> Json:
    value: Json = end
    for _ in range(length):
        value = {"a": value}
    return value


def doubling(levels: int) -> JsonObject:
    """Each part is two references to the next one."""
    parts: JsonObject = {
        f"d{level}": {
            "allOf": [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}", "title": ""}]
        }
        for level in range(levels)
    }
    return {"$defs": {**parts, f"d{levels}": {"type": "string"}}, "$ref": "#/$defs/d0"}


def test_a_chain_that_can_be_read_in_millions_of_ways_is_refused_without_details() -> None:
    (finding,) = InputSchema(RECURSIVE).check(chain(22, 1))
    assert (finding.path, finding.message) == (
        "input",
        "does not match the schema; it is too large to say where",
    )
    assert InputSchema(RECURSIVE).check(chain(22, "end")) == []


def test_a_short_chain_is_described() -> None:
    (finding,) = InputSchema(RECURSIVE).check(chain(3, 1))
    assert "is not valid under any of the schemas" in finding.message


def test_a_schema_that_doubles_at_each_level_is_refused() -> None:
    assert BoundedSchema(doubling(10)).is_valid("text")
    with pytest.raises(SchemaTooComplex, match=f"more than {MAX_SCHEMA_PARTS:,} parts"):
        BoundedSchema(doubling(14))


def test_a_schema_that_was_saved_before_the_limit_refuses_every_input() -> None:
    schema = InputSchema(doubling(40))
    (finding,) = schema.check("text")
    assert finding.message == schema.too_complex
    assert finding.message.startswith("the input schema is too complex: ")


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"d": {"$id": "https://d.example/", "$ref": "#"}}, "$ref": "#/$defs/d"},
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
    ],
)
def test_a_reference_that_cannot_be_followed_has_no_bound(schema: JsonObject) -> None:
    with pytest.raises(SchemaTooComplex, match="cannot be followed"):
        BoundedSchema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$id": "https://x.example/s", "$defs": {"a~b/c": {"type": "object"}}, "$ref": "#/$defs/a~0b~1c"},
        {"$defs": {"a": {"$anchor": "part", "type": "object"}}, "$ref": "#part"},
        {"$id": "https://x.example/s", "properties": {"x": {"$ref": "https://x.example/s"}}},
        {"allOf": [{"type": "object"}, {"type": "object"}], "prefixItems": [{"$ref": "#/allOf/0"}]},
    ],
)
def test_references_inside_the_schema_are_followed(schema: JsonObject) -> None:
    assert BoundedSchema(schema).is_valid({})


def test_a_value_with_too_many_nodes_for_its_schema_is_not_checked() -> None:
    wide: JsonObject = {"items": {"anyOf": [{"const": number} for number in range(9_000)]}}
    items: list[Json] = [-1] * 10_000
    with pytest.raises(ValueTooComplex):
        BoundedSchema(wide).is_valid(items)
    assert not BoundedSchema(wide).is_valid(items[:1_000])


def test_patterns_that_backtrack_are_matched_with_few_texts_only() -> None:
    schema = BoundedSchema({"items": {"pattern": "^(?=a)(a|a)*$"}})
    texts: list[Json] = ["aaaa"] * 10_000
    assert schema.is_valid(texts[:1_000])
    with pytest.raises(ValueTooComplex):
        schema.is_valid(texts)
    linear = BoundedSchema({"items": {"pattern": "^(a|a)*$"}})
    assert linear.is_valid(texts)


@pytest.mark.parametrize(
    "value",
    [list(range(100_000)), {"text": "x" * 5_000_000}, {str(n): n for n in range(100_000)}],
    ids=["items", "text", "members"],
)
def test_errors_of_a_large_value_are_not_described(value: Json) -> None:
    schema = BoundedSchema(
        {"items": {"type": "string"}, "additionalProperties": {"maxLength": 1, "type": "string"}}
    )
    assert not schema.is_valid(value)
    assert schema.errors(value, 20) is None
