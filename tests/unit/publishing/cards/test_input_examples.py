"""Examples for the skill of a workflow, from its input schema."""

from __future__ import annotations

import pytest

from trunkline.jsontypes import Json, JsonObject
from trunkline.publishing.cards.input_examples import examples_of


def schema(required: list[Json], **properties: Json) -> JsonObject:
    return {"type": "object", "required": required, "properties": properties}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, []),
        ({}, []),
        ({"examples": ["a", {"b": 1}]}, ["a", {"b": 1}]),
        (schema(["city"], city={"type": "string", "examples": ["Rome", "Oslo"]}), ["Rome", "Oslo"]),
        (schema(["city"], city={"type": "string"}, days={"default": 3}), []),
        (
            schema(["city"], city={"type": "string", "enum": ["Rome"]}, days={"default": 3}, note={}),
            [{"city": "Rome", "days": 3}],
        ),
        (schema(["n"], n={"type": "integer", "const": 1}), [{"n": 1}]),
        (schema(["n"], n={"examples": []}), []),
        ({"required": "n", "properties": []}, []),
    ],
)
def test_examples_come_from_the_schema(given: JsonObject | None, expected: list[Json]) -> None:
    assert examples_of(given) == expected
