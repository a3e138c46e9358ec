"""Labels of a workflow: what a definition can contain, and their values for a run."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
import yaml

from trunkline.errors import Finding, Invalid
from trunkline.jsontypes import Json
from trunkline.workflow import (
    MAX_LABELS,
    check_label_count,
    compile_workflow,
    definition_from_canonical,
    load_workflow,
    parse_label,
    workflow_json_schema,
)

SCHEMA = jsonschema_rs.validator_for(workflow_json_schema())


def text_of(labels: str) -> str:
    return f"name: flow\nsteps: {{a: {{agent: A}}}}\nlabels: {labels}\n"


def findings_in(labels: str) -> list[Finding]:
    with pytest.raises(Invalid) as caught:
        load_workflow(text_of(labels))
    return list(caught.value.findings)


def labels_of(labels: str, run_input: Json) -> dict[str, str]:
    workflow = compile_workflow(load_workflow(text_of(labels)).definition)
    run: Json = {"id": "r-1", "correlation_id": "c-1", "message": None}
    return workflow.evaluate_labels({"input": run_input, "run": run}.__getitem__)


def test_labels_are_read_and_kept_as_they_were_meant() -> None:
    text = text_of("{team: billing, app/customer.name: '${ input.customer }', run-1_x: '${ run.id }'}")
    loaded = load_workflow(text)
    assert definition_from_canonical(loaded.canonical) == loaded.definition
    assert load_workflow(loaded.canonical).canonical == loaded.canonical
    assert SCHEMA.is_valid(yaml.safe_load(text))
    assert SCHEMA.is_valid(json.loads(loaded.canonical))


def test_a_workflow_without_labels_is_stored_as_before() -> None:
    assert b"labels" not in load_workflow("name: flow\nsteps: {a: {agent: A}}\n").canonical
    assert b"labels" not in load_workflow(text_of("{}")).canonical


def test_expressions_read_the_input_and_the_run() -> None:
    labels = (
        "{a: '${ input.n }', b: 'no ${ input.n }', c: '${ input.ok }', d: '${ run.correlation_id }', e: x}"
    )
    assert labels_of(labels, {"n": 3, "ok": True}) == {
        "a": "3", "b": "no 3", "c": "true", "d": "c-1", "e": "x",
    }  # fmt: skip


def test_a_label_whose_value_is_null_is_left_out() -> None:
    assert labels_of("{a: '${ input.a }', b: x}", {"a": None}) == {"b": "x"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "input has no key 'a'"),
        ({"a": ["x"]}, "must be a string, but it is a list"),
        ({"a": ""}, "1 to 255 characters, but it has 0"),
        ({"a": "x" * 256}, "1 to 255 characters, but it has 256"),
        ({"a": "x\ny"}, "control characters"),
    ],
)
def test_a_value_that_cannot_be_a_label_is_refused_with_its_place(value: Json, message: str) -> None:
    with pytest.raises(Invalid) as caught:
        labels_of("{a: '${ input.a }'}", value)
    (finding,) = caught.value.findings
    assert finding.path == "labels.a"
    assert message in finding.message
    assert "The labels of workflow flow have no usable value" in caught.value.message


@pytest.mark.parametrize(
    ("labels", "message", "column"),
    [
        ("{'a b': x}", "invalid label key 'a b'", 10),
        ("{'': x}", "invalid label key ''", 10),
        ("{a: ''}", "1 to 255 characters", 13),
        ("{a: [x]}", "must be a string, but it is a list", 13),
        ("{a: 3}", "must be a string, but it is 3", 13),
        ("{a: '${ steps.a.output }'}", "a label cannot read 'steps.a'", 17),
        ("{a: '${ item }'}", "item", 17),
        ("{a: '${ input. }'}", "", None),
        ("[a]", "'labels' must be a mapping", 9),
    ],
)
def test_a_wrong_label_is_reported_at_its_line_and_column(
    labels: str, message: str, column: int | None
) -> None:
    (finding, *_) = findings_in(labels)
    assert message in finding.message
    assert finding.line == 3
    assert column is None or finding.column == column


def test_a_workflow_can_have_only_so_many_labels() -> None:
    most = ", ".join(f"k{number}: x" for number in range(MAX_LABELS))
    assert len(load_workflow(text_of(f"{{{most}}}")).definition.labels) == MAX_LABELS
    (finding,) = findings_in(f"{{{most}, one-more: x}}")
    assert finding.message == "'labels' has 21 labels, more than 20; remove some"
    assert not SCHEMA.is_valid(yaml.safe_load(text_of(f"{{{most}, one-more: x}}")))


def test_a_run_can_have_only_so_many_labels() -> None:
    check_label_count({str(number): "x" for number in range(MAX_LABELS)})
    with pytest.raises(Invalid, match="A run can have 20 labels, but these are 21"):
        check_label_count({str(number): "x" for number in range(MAX_LABELS + 1)})


def test_a_label_is_written_with_a_colon_and_its_value_can_have_more_of_them() -> None:
    assert parse_label("url:http://x:1") == ("url", "http://x:1")
    for wrong in ("customer", "customer:", ":acme", "a b:c", "a:" + "x" * 256, "a:\x00"):
        with pytest.raises(ValueError, match="label"):
            parse_label(wrong)
