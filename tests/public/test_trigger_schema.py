"""The JSON Schema of trigger files: editors point at it, so it accepts what the server accepts."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema_rs
import pytest

from trunkline.api.resources.automation.trigger_schema import trigger_json_schema
from trunkline.jsontypes import JsonObject
from trunkline.triggers.validate import SOURCES, TRIGGER_KEYS
from trunkline.workflow.document.parsing import read_document

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
SCHEMA = jsonschema_rs.validator_for(trigger_json_schema())
GOOD: JsonObject = {"name": "a", "workflow": "w", "schedule": {"every": "1h"}}


def test_it_is_valid_and_knows_every_key() -> None:
    schema = trigger_json_schema()
    assert jsonschema_rs.meta.is_valid(schema)
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert properties.keys() == {*TRIGGER_KEYS}
    assert schema["oneOf"] == [{"required": [source]} for source in SOURCES]


def test_every_trigger_of_the_guides_fits() -> None:
    pages = [page.read_text() for page in GUIDES.glob("*.md")]
    blocks = [block for page in pages for block in re.findall(r"```yaml[^\n]*\n(.*?)```", page, re.DOTALL)]
    triggers = [block for block in blocks if block.startswith("kind: trigger")]
    assert len(triggers) > 3
    for block in triggers:
        assert [str(error) for error in SCHEMA.iter_errors(read_document(block, "guide").value)] == []


@pytest.mark.parametrize(
    "change",
    [
        {"shedule": {"every": "1h"}},
        {"schedule": {"evry": "1h"}},
        {"event": {"type": "x"}},
        {"name": "a b"},
        {"priority": 1_001},
        {"concurrency": {}},
        {"concurrency": {"limit": 1, "on_limit": "wait"}},
        {"schedule": {"every": "1h", "overlap": "maybe"}},
    ],
)
def test_it_marks_mistakes(change: JsonObject) -> None:
    assert SCHEMA.is_valid(GOOD)
    assert not SCHEMA.is_valid({**GOOD, **change})
