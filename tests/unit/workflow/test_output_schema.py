"""The schema that a step has for its output, as it is written and saved."""

from __future__ import annotations

import pytest

from trunkline.errors import Invalid
from trunkline.jsontypes import JsonObject, encode
from trunkline.workflow import compile_workflow, definition_from_canonical, load_workflow
from trunkline.workflow.output_schema import MAX_SCHEMA_BYTES

SCORE: JsonObject = {"type": "object", "required": ["score"]}


def workflow(**keys: object) -> bytes:
    return encode({"name": "w", "steps": {"s": {"agent": "A", **keys}}})


def findings(text: bytes, **known: object) -> list[str]:
    with pytest.raises(Invalid) as refused:
        load_workflow(text, known_schemas=dict(known))  # type: ignore[arg-type] - schemas by name
    return [f"{finding.path}: {finding.message}" for finding in refused.value.findings]


def test_a_schema_survives_being_stored() -> None:
    loaded = load_workflow(workflow(output_schema=SCORE, repair=2))
    step = definition_from_canonical(loaded.canonical).steps["s"]
    assert (step.output_schema, step.repair, step.max_repairs) == (SCORE, 2, 2)
    plan = compile_workflow(loaded.definition).plan("s")
    assert plan.output_schema is not None
    assert not plan.output_schema.accepts({})


def test_a_saved_schema_takes_the_place_of_its_reference() -> None:
    loaded = load_workflow(
        workflow(output_schema={"$ref": "schemas/review"}), known_schemas={"review": SCORE}
    )
    assert loaded.definition.steps["s"].output_schema == SCORE


def test_without_a_server_a_reference_stays_one() -> None:
    loaded = load_workflow(workflow(output_schema={"$ref": "schemas/review"}))
    assert loaded.definition.steps["s"].output_schema == {"$ref": "schemas/review"}
    assert compile_workflow(loaded.definition).plan("s").output_schema is None


def test_an_unknown_schema_is_an_error() -> None:
    (finding,) = findings(workflow(output_schema={"$ref": "schemas/revew"}), review=SCORE)
    assert finding.startswith("steps.s.output_schema.$ref: unknown schema 'revew'")
    assert "review" in finding


def test_a_reference_stands_alone() -> None:
    (finding,) = findings(workflow(output_schema={"$ref": "schemas/review", "type": "object"}), review=SCORE)
    assert "remove its other keys" in finding


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"output_schema": {"type": "objekt"}}, "the output schema is not valid JSON Schema"),
        ({"output_schema": "score"}, "'output_schema' must be a mapping"),
        ({"output_schema": {"const": "x" * MAX_SCHEMA_BYTES}}, "describe less of the output"),
        ({"output_schema": {"$ref": "https://example.com/x"}}, "the output schema"),
        ({"repair": 1}, "'repair' has no effect without 'output_schema'"),
        ({"output_schema": SCORE, "repair": 6}, "'repair' must be a whole number from 0 to 5"),
        ({"output_schema": SCORE, "repair": 1, "delivery": "at_most_once"}, "rules out"),
    ],
)
def test_what_is_wrong_is_reported(keys: JsonObject, words: str) -> None:
    (finding,) = findings(workflow(**keys))
    assert words in finding


@pytest.mark.parametrize("step", [{"workflow": "child"}, {"set": {"x": 1}}, {"sleep": "1s"}])
def test_only_a_step_with_an_agent_has_an_output_schema(step: JsonObject) -> None:
    text = encode({"name": "w", "steps": {"s": {**step, "output_schema": SCORE}}})
    (finding,) = findings(text)
    assert finding.startswith("steps.s.output_schema: 'output_schema'")


def test_corrections_are_off_where_an_agent_must_not_be_called_twice() -> None:
    loaded = load_workflow(workflow(output_schema=SCORE, delivery="at_most_once"))
    assert loaded.definition.steps["s"].max_repairs == 0
