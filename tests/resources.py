"""Answers of the REST interface, held to the schemas of their resources."""

from __future__ import annotations

from functools import cache
from typing import TypeVar, cast

import jsonschema_rs

from trunkline.api.documents.json_schemas import component_schemas, reference_to
from trunkline.api.resources.agents.migration import MigrationStateResource
from trunkline.jsontypes import Json, JsonObject, decode

T = TypeVar("T")

# Schemas refer to it by its name: a type cannot be either this or any object.
_NAMED = MigrationStateResource


@cache
def _validator(resource: type) -> jsonschema_rs.Draft202012Validator:
    schemas: JsonObject = {**component_schemas([resource, _NAMED]), "JsonValue": {}}
    schema: JsonObject = {**reference_to(resource), "components": {"schemas": schemas}}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def as_resource(resource: type[T], value: Json) -> T:
    """`value`, which has all fields that the resource must have, and none that it does not know."""
    _validator(resource).validate(value)
    return cast("T", value)


def read_resource(resource: type[T], body: bytes) -> T:
    return as_resource(resource, decode(body))
