"""The OpenAPI document: what the framework collects from the operations, and what it does not know."""

from __future__ import annotations

from typing import cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from trunkline import __version__
from trunkline.api import schemas
from trunkline.api.headers import HEADER
from trunkline.api.operations import WORKFLOW_DEFINITION, problems
from trunkline.api.roles import ROLES
from trunkline.api.schemas import Shape
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.stores.base import KeyRole
from trunkline.workflow import workflow_json_schema

DESCRIPTION = """\
Trunkline runs workflows whose steps are AI agents.

Every error is an `application/problem+json` with a `fix`. Every list is `{items, next_cursor}`. A body that
parses as JSON is JSON, whatever its content type says.

Where the server can be reached from other machines, every operation but `livez` and
the hooks of agents needs a key; `x-trunkline-role` is the
least role that may call it.
"""
TAGS = [
    {"name": "agents", "description": "The agents that workflows can call."},
    {"name": "migration", "description": "Agents that move to another protocol or address."},
    {"name": "workflows", "description": "Definitions, saved as immutable versions."},
    {"name": "runs", "description": "Workflows at work: start, read, watch, steer."},
    {"name": "secrets", "description": "What workflows send to agents, and nobody may read."},
    {"name": "inbox", "description": "What waits for a person."},
    {"name": "hooks", "description": "Where agents ring when a task has moved on."},
    {"name": "dead letters", "description": "Records that could not be read or applied."},
    {"name": "system", "description": "The process itself."},
]
# The framework's own shape of an invalid request, which is never answered.
_UNUSED = "HTTPValidationError"
_CORRELATION_PARAMETER: JsonObject = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": (
        "An id under which logs, agents and answers know this request: up to 128 visible ASCII characters. "
        "Left out, or anything else: one is made."
    ),
    "schema": {"type": "string"},
}
_SECURITY_SCHEMES: JsonObject = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key: `trunkline keys create`."},
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key."},
}
# The empty one: on a loopback address nobody needs a key.
_SECURITY: list[Json] = [{"bearer": []}, {"api_key": []}, {}]


def build_openapi(app: FastAPI) -> JsonObject:
    document = cast(
        "JsonObject",
        get_openapi(
            title="Trunkline", version=__version__, description=DESCRIPTION, routes=app.routes, tags=TAGS
        ),
    )
    document["components"] = {
        "schemas": {**_shapes(), **_workflow_schemas()},
        "securitySchemes": _SECURITY_SCHEMES,
    }
    document["security"] = _SECURITY
    for path, methods in _object(document["paths"]).items():
        for method, operation in _object(methods).items():
            _complete(_object(operation))
            _secure(_object(operation), ROLES[f"{method.upper()} {path}"])
    return document


def _secure(operation: JsonObject, role: KeyRole | None) -> None:
    if role is None:
        operation["security"] = []
        return
    operation["x-trunkline-role"] = role
    refusals = {str(status): response for status, response in problems(401, 403).items()}
    operation["responses"] = {**_object(refusals), **_object(operation["responses"])}


def _complete(operation: JsonObject) -> None:
    parameters = operation.setdefault("parameters", [])
    if not isinstance(parameters, list):
        raise TypeError("an operation's parameters are not a list")
    for parameter in parameters:
        parameter_ = _object(parameter)
        parameter_["schema"] = _without_null(_object(parameter_["schema"]))
    parameters.append(_CORRELATION_PARAMETER)
    responses = _object(operation["responses"])
    # Added by the framework wherever there is a parameter, also where any value of it is valid.
    if _UNUSED in str(responses.get("422")):
        del responses["422"]


def _without_null(schema: JsonObject) -> JsonObject:
    """A query or a header cannot be null, it can only be left out."""
    match schema:
        case {"anyOf": [dict(given), {"type": "null"}], **rest}:
            return {**rest, **given}
        case _:
            return schema


def _shapes() -> JsonObject:
    models = [
        model for model in vars(schemas).values() if isinstance(model, type) and issubclass(model, Shape)
    ]
    _, document = models_json_schema(
        [(model, "validation") for model in models if model is not Shape],
        ref_template="#/components/schemas/{model}",
    )
    return _object(cast("JsonObject", document)["$defs"])


def _workflow_schemas() -> JsonObject:
    """The language's own schema, its parts beside it: a reference starts at the document's root."""
    text = encode(workflow_json_schema()).replace(b'"#/$defs/', b'"#/components/schemas/Workflow-')
    schema = _object(decode(text))
    schema.pop("$schema")
    parts = _object(schema.pop("$defs"))
    return {WORKFLOW_DEFINITION: schema, **{f"Workflow-{name}": part for name, part in parts.items()}}


def _object(value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object in the OpenAPI document, found {type(value).__name__}")
    return cast("JsonObject", value)
