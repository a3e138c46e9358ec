"""
Examples of a workflow's input, as its schema has them, for the skill in its card.

    "examples" of the schema                             those
    otherwise, of the properties: "examples", "default",
    "const" or "enum", the first that is there           one object, if every required property has an example
"""

from __future__ import annotations

from trunkline.jsontypes import Json, JsonObject
from trunkline.publishing.run_inputs import only_required_text


def examples_of(schema: JsonObject | None) -> list[Json]:
    if schema is None:
        return []
    listed = schema.get("examples")
    if isinstance(listed, list):
        return listed
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return []
    found: JsonObject = {}
    for name, declared in properties.items():
        values = _examples(declared)
        if values:
            found[name] = values[0]
    if not found or any(name not in found for name in required if isinstance(name, str)):
        return []
    text = only_required_text(schema)
    if text is not None and found.keys() == {text}:
        # A text alone is this property.
        return _examples(properties[text])
    return [found]


def _examples(declared: Json) -> list[Json]:
    match declared:
        case {"examples": [_, *_] as listed}:
            return listed
        case {"default": value} | {"const": value} | {"enum": [value, *_]}:
            return [value]
        case _:
            return []
