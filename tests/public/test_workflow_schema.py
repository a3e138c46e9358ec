"""The JSON Schema of the workflow language is public: editors point at it, so it changes only on purpose."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs

from trunkline.jsontypes import JsonObject
from trunkline.workflow import workflow_json_schema
from trunkline.workflow.document.parsing import read_document

ROOT = Path(__file__).parents[2]
CHECKED_IN = Path(__file__).with_name("workflow-schema.json")


def test_the_schema_is_as_checked_in() -> None:
    # To renew it: trunkline workflows schema > tests/public/workflow-schema.json
    assert json.loads(CHECKED_IN.read_text()) == workflow_json_schema()


def test_the_schema_is_valid_json_schema() -> None:
    assert jsonschema_rs.meta.is_valid(workflow_json_schema())


def test_every_workflow_that_is_shipped_fits_the_schema() -> None:
    validator = jsonschema_rs.validator_for(workflow_json_schema())
    files = [*(ROOT / "examples").rglob("*.yaml"), *(ROOT / "src").rglob("*.yaml")]
    definitions = [read_document(file.read_bytes(), file.name).value for file in files]
    workflows = [value for value in definitions if isinstance(value, dict) and "steps" in value]
    assert workflows
    assert [str(error) for value in workflows for error in validator.iter_errors(value)] == []


def test_the_schema_refuses_what_the_language_refuses() -> None:
    validator = jsonschema_rs.validator_for(workflow_json_schema())
    step: JsonObject = {"agent": "A"}
    assert validator.is_valid({"name": "x", "steps": {"a": step}})
    refused: list[JsonObject] = [
        {"steps": {"a": step}},
        {"name": "x", "steps": {}},
        {"name": "x", "steps": {"a-b": step}},
        {"name": "x", "steps": {"in": step}},
        {"name": "x", "steps": {"a": {}}},
        {"name": "x", "steps": {"a": {**step, "neds": []}}},
        {"name": "x", "steps": {"a": {**step, "timeout": 5}}},
        {"name": "x", "steps": {"a": {**step, "on_error": {"goto": "b", "x": 1}}}},
        {"name": "x", "steps": {"a": {**step, "retry": {"on": [42]}}}},
    ]
    assert [wrong for wrong in refused if validator.is_valid(wrong)] == []
