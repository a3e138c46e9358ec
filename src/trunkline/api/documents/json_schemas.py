"""The JSON Schemas of the resources, made by msgspec from their declarations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import cast

import msgspec

from trunkline.jsontypes import Json, JsonObject, decode, encode

_REFERENCES = "#/components/schemas/"
_SUFFIX = "Resource"
# A class variable: what the types of the fields cannot say.
_ADDITION = "SCHEMA"
_NAMED = re.compile(rb'"%s(\w+?)%s"' % (_REFERENCES.encode(), _SUFFIX.encode()))


def schema_name(type_: type) -> str:
    """The name of a resource's schema."""
    return type_.__name__.removesuffix(_SUFFIX)


def reference_to(type_: type) -> JsonObject:
    return {"$ref": f"{_REFERENCES}{schema_name(type_)}"}


def schema_of(type_: object) -> JsonObject:
    """The schema of a type that is not a resource, such as the type of a parameter."""
    return _spelled(cast("JsonObject", msgspec.json.schema(type_)))


def component_schemas(types: Iterable[type]) -> JsonObject:
    """The schemas of `types` and of all that they are made of, by name."""
    unique = list(dict.fromkeys(types))
    _, components = msgspec.json.schema_components(unique, ref_template=f"{_REFERENCES}{{name}}")
    text = _NAMED.sub(rb'"%s\1"' % _REFERENCES.encode(), encode(components))
    schemas = cast("JsonObject", decode(text))
    additions = {schema_name(type_): cast("JsonObject", getattr(type_, _ADDITION, {})) for type_ in unique}
    named = {name.removesuffix(_SUFFIX): _object(schema) for name, schema in schemas.items()}
    return {name: _component(name, schema, additions.get(name, {})) for name, schema in named.items()}


def _component(name: str, schema: JsonObject, addition: JsonObject) -> JsonObject:
    spelled = _spelled(schema)
    if not spelled.get("required"):
        spelled.pop("required", None)
    if "properties" in spelled:
        # An answer has these fields and no others; a body with others is refused.
        spelled["additionalProperties"] = False
    return _without_required_defaults({**spelled, "title": name, **addition})


def _without_required_defaults(schema: JsonObject) -> JsonObject:
    """An addition may require a field that has a default in Python, so that a service can say what is missing."""
    properties, required = schema.get("properties"), schema.get("required")
    if isinstance(properties, dict) and isinstance(required, list):
        for name in required:
            _object(properties[str(name)]).pop("default", None)
    return schema


def _spelled(schema: JsonObject) -> JsonObject:
    """With the type of enumerated texts, which generators of clients rely on."""
    spelled: JsonObject = {name: _spelled_value(value) for name, value in schema.items()}
    values = spelled.get("enum")
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        spelled["type"] = "string"
    return spelled


def _spelled_value(value: Json) -> Json:
    if isinstance(value, dict):
        return _spelled(value)
    return [_spelled_value(each) for each in value] if isinstance(value, list) else value


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError("msgspec described a resource with something that is not an object")
    return value
