"""Paths that cannot exist are errors, and paths that may be missing are warnings: nothing that can work is refused."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.workflow import compile_workflow, load_workflow
from trunkline.workflow.types.shapes import SchemaShape, ShapeReader

CLOSED: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "zip": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
OPEN: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Checked(NamedTuple):
    errors: list[Finding]
    warnings: list[Finding]


def checked(definition: JsonObject) -> Checked:
    try:
        loaded = load_workflow(encode({"name": "w", **definition}))
    except Invalid as refused:
        return Checked([*refused.findings], [])
    return Checked([], loaded.warnings)


def reading(schema: Json, expression: str, **step: Json) -> Checked:
    """A step that reads the run's input."""
    return checked({"input": schema, "steps": {"a": {"agent": "A", "input": f"${{ {expression} }}", **step}}})


def test_a_misspelled_key_is_found_at_its_line_and_column() -> None:
    text = """name: w
input: {type: object, properties: {city: {type: string}}, additionalProperties: false}
steps:
  a: {agent: A, input: {to: "${ input.cty }"}}
"""
    with pytest.raises(Invalid) as refused:
        load_workflow(text)
    (finding,) = refused.value.findings
    assert finding.message == "input cannot have 'cty'; it has city; did you mean 'city'?"
    assert (finding.path, finding.line, finding.column) == ("steps.a.input.to", 4, 33)


def test_a_key_that_may_be_missing_is_a_warning_at_its_place() -> None:
    text = "name: w\ninput: {properties: {city: {}}}\nsteps: {a: {agent: A, input: '${ input.city }'}}\n"
    (warning,) = load_workflow(text).warnings
    assert warning.message == "input.city may be missing; test it first: has(input.city)"
    assert (warning.path, warning.line, warning.column) == ("steps.a.input", 3, 34)


@pytest.mark.parametrize(
    "definition",
    [
        {"a": {"agent": "A", "output_schema": CLOSED}, "b": {"agent": "B", "input": "${ steps.a.output.data.cty }"}},
        {"a": {"set": {"city": 1}}, "b": {"set": {"x": "${ steps.a.output.cty }"}}},
        {"a": {"set": {"city": 1}}, "b": {"set": {"x": "${ steps.a.outptu }"}}},
        {
            "a": {"set": {"place": {"city": 1}}},
            "b": {"set": {"y": "${ steps.a.output.place }"}},
            "c": {"set": {"x": "${ steps.b.output.y.cty }"}},
        },
        {"a": {"ask": {"title": "T", "form": CLOSED}}, "b": {"set": {"x": "${ steps.a.output.data.cty + '' }"}}},
        {"a": {"wait_for": {"signal": "go"}}, "b": {"set": {"x": "${ steps.a.output.cty }"}}},
        {"a": {"steps": {"inner": {"set": {"city": 1}}}}, "b": {"set": {"x": "${ steps.a.output.cty }"}}},
        {"a": {"set": {"city": 1}}, "b": {"steps": {"inner": {"set": {"x": "${ steps.a.output.cty }"}}}}},
        {"a": {"for_each": [{"city": 1}], "set": {"x": "${ item.cty }"}}},
        {"a": {"for_each": [1], "set": {"city": 1}}, "b": {"set": {"x": "${ steps.a.output[0].cty }"}}},
        {"a": {"for_each": [1], "set": {"city": 1}}, "b": {"set": {"x": "${ steps.a.output.city }"}}},
        {"a": {"agent": "A", "output_schema": CLOSED, "repeat": {"until": "steps.a.output.data.cty == ''"}}},
        {
            "a": {
                "switch": [
                    {"when": "input.x", "steps": {"b": {"set": {"x": 1}}}},
                    {"else": True, "steps": {"b": {"set": {"y": 1}}}},
                ]
            },
            "c": {"set": {"x": "${ steps.a.output.z }"}},
        },
        {"a": {"set": {"city": 1}}, "b": {"agent": "B", "needs": ["a"], "when": "steps.a.output.cty == 1"}},
    ],
)  # fmt: skip
def test_a_path_that_no_value_has_is_an_error_in_every_place(definition: JsonObject) -> None:
    found = checked({"steps": definition})
    assert len(found.errors) == 1
    assert "cannot have" in found.errors[0].message


ONE: JsonObject = {"type": "object", "properties": {"x": {}}, "required": ["x"]}
LINKED: JsonObject = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["next"]}
OLD_DRAFT = "http://json-schema.org/draft-07/schema#"
POSSIBLE: list[tuple[Json, str]] = [
    ({}, "input.x.y"),
    (True, "input.x"),
    ({"type": "object"}, "input.x.y"),
    ({"type": "object", "additionalProperties": ONE}, "input.y.x"),
    ({"type": "object", "additionalProperties": True, "properties": {"a": {}}}, "input.x"),
    ({"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False}, "input.x1"),
    ({"properties": {"a": {}}, "unevaluatedProperties": False, "allOf": [ONE]}, "input.x"),
    ({"anyOf": [CLOSED, ONE]}, "input.x"),
    ({"oneOf": [{"type": "string"}, {"type": "object"}]}, "input.x"),
    ({"allOf": [OPEN, {"properties": {"x": {}}}]}, "input.x"),
    ({"$ref": "#/$defs/a", "$defs": {"a": ONE}}, "input.x"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "input.x"),
    ({"$defs": {"n": LINKED}, "$ref": "#/$defs/n"}, "input.next.next.next"),
    ({"type": ["object", "null"], "properties": {"x": {}}, "required": ["x"]}, "input.x"),
    ({"type": ["object", "array"], "items": {"properties": {"x": {}}, "required": ["x"]}}, "input[3].x"),
    ({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "object"}}, "input[1].x"),
    ({"$schema": OLD_DRAFT, "type": "array", "items": [{"type": "string"}, {"type": "object"}]}, "input[1].x"),
    ({"if": {"required": ["a"]}, "then": {"properties": {"x": {}}}}, "input.x"),
    ({"not": {"required": ["x"]}}, "input.x"),
    (CLOSED, "has(input.cty) ? input.cty : 'none'"),
    (CLOSED, "'cty' in input ? input.cty : ''"),
    (CLOSED, "input.city == '' || input.cty == ''"),
    (CLOSED, "['a'].filter(x, input.cty == x)"),
    (CLOSED, "has(input.cty)"),
    (CLOSED, "input[input.city]"),
    (CLOSED, "input['city']"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expression"), POSSIBLE)
def test_nothing_that_can_work_is_an_error(schema: Json, expression: str) -> None:
    if schema is True:
        schema = {"properties": {"x": True}}
    assert reading(schema, expression).errors == []


@pytest.mark.parametrize(
    ("schema", "expression"),
    [
        (CLOSED, "input.zip"),
        (OPEN, "input.zip"),
        ({"type": ["object", "null"], "properties": {"x": {}}, "required": ["x"]}, "input.cty"),
        ({"anyOf": [CLOSED, {"type": "string"}]}, "input.city"),
        (CLOSED, "input.city == '' || input.cty == ''"),
    ],
)
def test_what_may_be_missing_is_a_warning(schema: Json, expression: str) -> None:
    found = reading(schema, expression)
    assert (len(found.errors), len(found.warnings)) == (0, 1)


@pytest.mark.parametrize(
    "expression",
    [
        "has(input.zip) ? input.zip : ''",
        "has(input.zip) && input.zip == ''",
        "'zip' in input ? input.zip : ''",
        "input.city",
        "input.zip != null ? input.zip : ''",
    ],
)
def test_a_path_that_is_tested_is_no_warning(expression: str) -> None:
    assert reading(CLOSED, expression) == ([], [])


def test_the_condition_of_a_step_tests_for_its_input() -> None:
    assert reading(CLOSED, "input.zip", when="has(input.zip)") == ([], [])


def test_an_output_of_an_agent_may_have_other_keys_than_its_data() -> None:
    steps: JsonObject = {
        "a": {"agent": "A", "output_schema": CLOSED},
        "b": {"agent": "B", "input": ["${ steps.a.output.text }", "${ steps.a.output.city }"]},
    }
    assert checked({"steps": steps}) == ([], [])


def test_an_outcome_that_a_person_can_give_has_no_known_shape() -> None:
    steps: JsonObject = {
        "a": {"agent": "A", "output_schema": CLOSED, "delivery": "at_most_once", "repair": 0},
        "b": {"agent": "B", "input": "${ steps.a.output.data.cty }"},
    }
    assert checked({"steps": steps}) == ([], [])


def test_the_output_of_a_child_workflow_is_known_if_the_workflow_is() -> None:
    child = compile_workflow(load_workflow("{name: c, steps: {a: {set: {n: 1}}}}").definition)
    text = "{name: w, steps: {c: {workflow: c}, d: {set: {x: '${ steps.c.output.m }'}}}}"
    assert load_workflow(text).warnings == []
    with pytest.raises(Invalid, match=r"steps\.c\.output cannot have 'm'; it has n"):
        load_workflow(text, children={("c", None): child})


def test_a_chain_of_steps_is_checked_at_any_length() -> None:
    steps: JsonObject = {"s0": {"set": {"v": {"city": 1}}}}
    for number in range(1, 400):
        steps[f"s{number}"] = {"set": {"v": f"${{ steps.s{number - 1}.output.v }}"}}
    backwards = dict(reversed(steps.items()))
    last = "${ steps.s399.output.v.cty }"
    assert len(checked({"steps": {**steps, "last": {"set": {"x": last}}}}).errors) == 1
    assert checked({"steps": {**backwards, "last": {"set": {"x": last}}}}).warnings == []


def test_an_expression_over_a_schema_that_branches_without_end_is_cheap() -> None:
    defs: JsonObject = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(18)
    }
    root: JsonObject = {"$defs": {**defs, "d18": {"type": "object"}}, "$ref": "#/$defs/d0"}
    reader = ShapeReader(max_visits=1_000)
    assert reader.member(SchemaShape(root, root), "x").presence == "unknown"
    assert reader.visits_left >= -1_000


def test_ten_thousand_steps_with_schemas_are_checked() -> None:
    steps: JsonObject = {"s0": {"agent": "A", "output_schema": CLOSED}}
    for number in range(1, 10_000):
        steps[f"s{number}"] = {
            "agent": "A",
            "output_schema": CLOSED,
            "input": {"to": f"${{ steps.s{number - 1}.output.data.city }}"},
        }
    assert checked({"steps": steps}) == ([], [])
    steps["s1"] = {"agent": "A", "input": "${ steps.s0.output.data.cty }"}
    assert len(checked({"steps": steps}).errors) == 1
