"""References to secrets: where a definition can contain them, and that nothing else is taken for one."""

from __future__ import annotations

from textwrap import dedent

import jsonschema_rs
import pytest

from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json, encode
from trunkline.workflow import compile_workflow, load_workflow, workflow_json_schema


def secrets_of(step_input: Json) -> dict[str, str]:
    text = encode({"name": "w", "steps": {"s": {"agent": "A", "input": step_input}}})
    return compile_workflow(load_workflow(text).definition).steps["s"].secrets


def findings_in(text: str) -> list[Finding]:
    with pytest.raises(Invalid) as caught:
        load_workflow(dedent(text))
    return list(caught.value.findings)


@pytest.mark.parametrize(
    ("step_input", "places"),
    [
        ({"bot_token": {"$secret": "slack-bot"}}, {"/bot_token": "slack-bot"}),
        ({"$secret": "whole"}, {"": "whole"}),
        ({"a": [1, {"b": {"$secret": "x.1"}}]}, {"/a/1/b": "x.1"}),
        ([{"$secret": "a"}, {"$secret": "a"}], {"/0": "a", "/1": "a"}),
        ({"a/b": {"$secret": "n"}, "c~d": {"$secret": "m"}}, {"/a~1b": "n", "/c~0d": "m"}),
        ({"~1": {"$secret": "n"}, "": {"$secret": "m"}}, {"/~01": "n", "/": "m"}),
        ({"0": {"$secret": "n"}}, {"/0": "n"}),
        ({"text": "${ input.text }", "t": {"$secret": "n"}}, {"/t": "n"}),
    ],
)
def test_a_literal_secret_is_found_at_its_place(step_input: Json, places: dict[str, str]) -> None:
    assert secrets_of(step_input) == places


@pytest.mark.parametrize(
    "step_input",
    [
        "${ {'$secret': 'slack-bot'} }",
        {"token": "${ {'$secret': 'slack-bot'} }"},
        {"token": "${ input }"},
        {"token": '{"$secret": "slack-bot"}'},
        {"token": "$secret", "secret": "slack-bot"},
        ["$secret", "slack-bot"],
    ],
)
def test_what_an_expression_yields_is_data_whatever_it_looks_like(step_input: Json) -> None:
    assert secrets_of(step_input) == {}


def test_a_step_without_an_input_has_no_secrets() -> None:
    workflow = compile_workflow(load_workflow("{name: w, steps: {s: {agent: A}}}").definition)
    assert workflow.steps["s"].secrets == {}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{$secret: a, more: 1}", "must be the only key"),
        ("{$secret: 5}", "the name of a secret, as a string"),
        ("{$secret: {name: a}}", "the name of a secret, as a string"),
        ("{$secret: null}", "the name of a secret, as a string"),
        ('{$secret: "${ input.name }"}', "cannot be an expression"),
        ('{$secret: "a-${ input.name }"}', "cannot be an expression"),
        ('{$secret: ""}', "invalid secret name"),
        ("{$secret: a b}", "invalid secret name"),
        ('{$secret: "-a"}', "invalid secret name"),
        ("{$secret: a/b}", "invalid secret name"),
        ('{$secret: "a\\n"}', "invalid secret name"),
        (f"{{$secret: {'a' * 101}}}", "invalid secret name"),
    ],
)
def test_a_secret_of_the_wrong_shape_is_a_finding_at_its_place(written: str, message: str) -> None:
    (finding,) = findings_in(f"""\
        name: w
        steps:
          s:
            agent: A
            input:
              list: [{written}]
        """)
    assert message in finding.message
    assert (finding.path, finding.line) == ("steps.s.input.list[0].$secret", 6)


def test_a_run_cannot_return_a_secret() -> None:
    (finding,) = findings_in("{name: w, steps: {s: {agent: A}}, output: {t: {$secret: a}}}")
    assert finding.path == "output.t.$secret"
    assert "only allowed in the input of a step" in finding.message


def test_the_schema_takes_a_secret_anywhere_in_an_input() -> None:
    validator = jsonschema_rs.validator_for(workflow_json_schema())

    def is_valid(step_input: Json) -> bool:
        return validator.is_valid({"name": "w", "steps": {"s": {"agent": "A", "input": step_input}}})

    assert is_valid({"a": [{"b": {"$secret": "slack-bot"}}], "n": 1, "t": "${ input.x }"})
    assert is_valid({"$secret": "slack-bot"})
    assert is_valid("text")
    refused: list[Json] = [{"$secret": 5}, {"$secret": "a b"}, {"$secret": "a", "x": 1}]
    for wrong in refused:
        assert not is_valid({"a": [wrong]})


def test_a_definition_with_a_secret_comes_back_as_it_was_saved() -> None:
    text = encode({"name": "w", "steps": {"s": {"agent": "A", "input": {"t": {"$secret": "a"}}}}})
    loaded = load_workflow(text)
    assert b'{"$secret":"a"}' in loaded.canonical
    assert load_workflow(loaded.canonical).canonical == loaded.canonical
