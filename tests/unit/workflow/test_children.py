"""Child workflows: what a definition can contain, and which options only agent steps have."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
import yaml

from trunkline.errors import Finding, Invalid
from trunkline.workflow import child_workflows, definition_from_canonical, load_workflow, workflow_json_schema

SCHEMA = jsonschema_rs.validator_for(workflow_json_schema())


def text_of(step: str) -> str:
    return f"name: flow\nsteps:\n  a: {{agent: A}}\n  s: {step}\n"


def the_finding_in(step: str) -> Finding:
    with pytest.raises(Invalid) as caught:
        load_workflow(text_of(step))
    (finding,) = caught.value.findings
    return finding


@pytest.mark.parametrize(
    ("step", "child"),
    [
        ("{workflow: other}", ("other", None)),
        ("{workflow: other, version: 2}", ("other", 2)),
        ("{workflow: flow, version: 1}", ("flow", 1)),
        (
            "{workflow: other, needs: [a], when: input.ok, input: {x: 1}, retry: {}, deadline: 1h, on_error: continue}",
            ("other", None),
        ),
        (
            "{workflow: other, for_each: [1, 2]}",
            ("other", None),
        ),
    ],
)
def test_a_workflow_in_a_workflow_is_read_and_kept_as_it_was_meant(
    step: str, child: tuple[str, int | None]
) -> None:
    loaded = load_workflow(text_of(step))
    assert child_workflows(loaded.definition) == [child]
    assert definition_from_canonical(loaded.canonical) == loaded.definition
    assert load_workflow(loaded.canonical).canonical == loaded.canonical
    assert SCHEMA.is_valid(yaml.safe_load(text_of(step)))
    assert SCHEMA.is_valid(json.loads(loaded.canonical))


@pytest.mark.parametrize(
    ("step", "path", "message"),
    [
        ("{workflow: 5}", "steps.s.workflow", "'workflow' must be a string"),
        ("{workflow: other, agent: A}", "steps.s.agent", "a step has either 'agent' or 'workflow'"),
        ("{workflow: other, version: 0}", "steps.s.version", "'version' must be a whole number"),
        ("{agent: A, version: 1}", "steps.s.version", "applies only to a step with 'workflow'"),
        ("{workflow: other, timeout: 1s}", "steps.s.timeout", "use 'deadline'"),
        ("{workflow: other, reply_timeout: 1s}", "steps.s.reply_timeout", "in the steps of that workflow"),
        ("{workflow: other, delivery: at_most_once}", "steps.s.delivery", "in the steps of that workflow"),
        ("{workflow: other, context: none}", "steps.s.context", "in the steps of that workflow"),
    ],
)
def test_a_mistake_is_found_by_the_reader_and_by_the_schema(step: str, path: str, message: str) -> None:
    finding = the_finding_in(step)
    assert finding.path == path
    assert message in finding.message
    assert not SCHEMA.is_valid(yaml.safe_load(text_of(step)))


@pytest.mark.parametrize(
    ("step", "path", "message"),
    [
        ("{workflow: flow}", "steps.s.workflow", "cannot start itself: flow -> flow"),
        ("{agent: ''}", "steps.s.agent", "must be a string of 1 to 255 characters"),
        (
            "{workflow: other, input: {key: {$secret: token}}}",
            "steps.s.input.key.$secret",
            "a secret is only allowed in the input of a step that calls an agent",
        ),
    ],
)
def test_what_else_cannot_be(step: str, path: str, message: str) -> None:
    finding = the_finding_in(step)
    assert finding.path == path
    assert message in finding.message


def test_a_workflow_that_is_not_known_is_only_warned_of() -> None:
    text = text_of("{workflow: other, version: 2}")
    assert load_workflow(text).warnings == []
    (warning,) = load_workflow(text, known_workflows=[("other", None)]).warnings
    assert (warning.path, warning.line) == ("steps.s.workflow", 4)
    assert warning.message.startswith("unknown workflow 'other' with version 2; save it before the first run")


def test_a_program_that_knows_no_workflow_in_a_workflow_reads_a_step_of_no_agent() -> None:
    loaded = load_workflow(text_of("{workflow: other}"))
    assert json.loads(loaded.canonical)["steps"]["s"] == {"agent": "", "workflow": "other"}
