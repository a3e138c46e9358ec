"""What is wrong with a run's input, in words and in fields."""

from __future__ import annotations

import msgspec

from trunkline.workflow.input_schema import InputSchema

SCHEMA = InputSchema(
    {
        "type": "object",
        "properties": {"names": {"type": "object", "required": ["first"]}, "count": {"type": "integer"}},
    }
)


def test_a_missing_property_is_a_field() -> None:
    (finding,) = SCHEMA.check({"names": {}})
    assert (finding.path, finding.missing) == ("input.names", "first")
    assert finding.message == '"first" is a required property'


def test_what_is_wrong_otherwise_has_no_such_field() -> None:
    (finding,) = SCHEMA.check({"count": "many"})
    assert "missing" not in msgspec.to_builtins(finding)
