"""The OpenAPI document, built from the operations and from the resources that they name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec
from pydantic.json_schema import models_json_schema

from trunkline import __version__
from trunkline.api import schemas
from trunkline.api.documents.json_schemas import component_schemas, reference_to, schema_of
from trunkline.api.headers import HEADER
from trunkline.api.parameters import Parameter
from trunkline.api.problems import PROBLEM_JSON
from trunkline.api.resources.common import Problem
from trunkline.api.resources.workflows import WORKFLOW_DEFINITION
from trunkline.api.roles import ROLES
from trunkline.api.routing import JSON, Body, Operation, ResponseSpec
from trunkline.api.schemas import Shape
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.workflow import workflow_json_schema

DESCRIPTION = """\
Trunkline runs workflows whose steps are AI agents.

Every error is an `application/problem+json` with a `fix`. Every list is `{items, next_cursor}`. A body that
parses as JSON is JSON, whatever its content type says.

Where the server can be reached from other machines, every operation but `livez` and
the hooks of agents needs a key; `x-trunkline-role` is the
least role that may call it.
"""
TAGS: list[Json] = [
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


_PROBLEMS = {
    400: "The body is not well-formed.",
    401: "A key is needed, and none that is in use was sent.",
    403: "The key's role does not allow it.",
    404: "There is no such thing.",
    409: "The present state does not allow it; `detail` gives the reason.",
    412: "`If-Match` names another version than the present one.",
    413: "The body is too large.",
    422: "The request is not valid; `errors` say where.",
}
_SERVER_PROBLEM = "The server failed, or something it depends on is away."
_CORRELATION_HEADER = {HEADER: "The request's correlation id: the caller's own, or one made by the server."}


def _operation(operation: Operation) -> JsonObject:
    role = ROLES[f"{operation.method} {operation.path}"]
    refusals = () if role is None else (401, 403)
    parameters: list[Json] = [_parameter(each) for each in operation.parameters]
    responses: JsonObject = {
        **{str(status): _response(response) for status, response in operation.responses.items()},
        **{str(status): _problem(_PROBLEMS[status]) for status in (*refusals, *operation.problems)},
        "5XX": _problem(_SERVER_PROBLEM),
    }
    return {
        "tags": [operation.tag],
        "summary": operation.name.replace("_", " ").title(),
        "description": operation.description,
        "operationId": operation.name,
        "parameters": [*parameters, _CORRELATION_PARAMETER],
        **({} if operation.body is None else {"requestBody": _body(operation.body)}),
        "responses": responses,
        **({"security": []} if role is None else {"x-trunkline-role": role}),
    }


def _parameter(parameter: Parameter) -> JsonObject:
    schema = schema_of(parameter.type)
    description = schema.pop("description", "")
    if parameter.default is not msgspec.NODEFAULT and parameter.default is not None:
        schema["default"] = cast("Json", parameter.default)
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": description,
        "schema": schema,
    }


def _body(body: Body) -> JsonObject:
    schema = reference_to(body.form) if isinstance(body.form, type) else body.form
    return {
        "required": body.required,
        "content": {media_type: {"schema": schema} for media_type in body.media_types},
    }


def _response(response: ResponseSpec) -> JsonObject:
    content: JsonObject = {name: {"schema": schema} for name, schema in response.content.items()}
    if response.resource is not None:
        content = {JSON: {"schema": reference_to(response.resource)}, **content}
    described: JsonObject = {"description": response.description, "headers": _headers(response.headers)}
    return {**described, "content": content} if content else described


def _problem(description: str) -> JsonObject:
    return {
        "description": description,
        "content": {PROBLEM_JSON: {"schema": reference_to(Problem)}},
        "headers": _headers({}),
    }


def _headers(descriptions: Mapping[str, str]) -> JsonObject:
    return {
        name: {"description": description, "schema": {"type": "string"}}
        for name, description in {**_CORRELATION_HEADER, **descriptions}.items()
    }


def _resources(operations: Iterable[Operation]) -> JsonObject:
    named = [response.resource for each in operations for response in each.responses.values()]
    named += [each.body.form for each in operations if each.body and isinstance(each.body.form, type)]
    return component_schemas([Problem, *(each for each in named if each is not None)])


def build_openapi(operations: Sequence[Operation]) -> JsonObject:
    paths: dict[str, JsonObject] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Trunkline", "description": DESCRIPTION, "version": __version__},
        "paths": {**paths},
        "tags": TAGS,
        "components": {
            "schemas": {**_shapes(), **_resources(operations), **_workflow_schemas()},
            "securitySchemes": _SECURITY_SCHEMES,
        },
        "security": _SECURITY,
    }


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
