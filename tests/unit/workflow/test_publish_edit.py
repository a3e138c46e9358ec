"""The text of a workflow, published and unpublished: nothing else in it changes."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json
from trunkline.workflow.document.parsing import read_document
from trunkline.workflow.document.yaml_writer import with_publish

STEPS = "# The one step.\nsteps:\n  look_up: {agent: A}  # by text\n"


@pytest.mark.parametrize(
    "before",
    [
        f"name: tides\n{STEPS}",
        f"name: tides\n{STEPS}publish: true\n",
        f"name: tides\npublish: {{name: Tide service}}\n{STEPS}",
        f"name: tides\npublish:\n  name: Tide service\n\n  skills:\n    - {{id: a}}\n{STEPS}",
        f"name: tides\npublish:\n{STEPS}",
    ],
)
def test_the_rest_of_a_text_stays_as_it_was_written(before: str) -> None:
    assert with_publish(before, None) == f"name: tides\n{STEPS}"
    assert with_publish(before, True) == f"name: tides\n{STEPS}publish: true\n"
    options: Json = {"name": "Tïde", "streaming": False}
    assert read_document(with_publish(before, options), "").value == {
        "name": "tides",
        "steps": {"look_up": {"agent": "A"}},
        "publish": options,
    }


@pytest.mark.parametrize(
    "before",
    [
        '{"name": "tides", "publish": {"name": "x"}, "steps": {"a": {"agent": "A"}}}',
        '"publish": {name: x}\nname: tides\nsteps: {a: {agent: A}}\n',
        "{name: tides, publish: true, steps: {a: {agent: A}}}",
        "name: tides\ndescription: |\n  x\npublish: true\nsteps: {a: {agent: A}}",
    ],
)
def test_a_text_in_any_form_gets_the_value(before: str) -> None:
    values: list[Json] = [None, True, {"name": "y"}]
    for value in values:
        expected = read_document(before, "").value
        assert isinstance(expected, dict)
        expected = {key: inner for key, inner in expected.items() if key != "publish"}
        expected |= {} if value is None else {"publish": value}
        assert read_document(with_publish(before, value), "").value == expected
