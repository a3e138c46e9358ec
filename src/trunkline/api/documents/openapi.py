"""The OpenAPI document, built from the operations and from the resources that they name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec
from pydantic.json_schema import models_json_schema

from trunkline import __version__
from trunkline.api import schemas
from trunkline.api.correlation_ids import HEADER
from trunkline.api.documents.json_schemas import component_schemas, reference_to, schema_of
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

Every error is an `application/problem+json` with a `fix`. Every list has the form `{items, next_cursor}`. A body is
parsed as JSON, whatever its content type is.

If other machines can reach the server, every operation needs an API key, except those with an empty `security`: they
need none, or have a token in their path. `x-trunkline-role` is the minimum role of the key.
"""
TAGS: list[Json] = [
    {"name": "agents", "description": "The agents that workflows can call."},
    {"name": "migration", "description": "Migrations of agents to another protocol or address."},
    {"name": "workflows", "description": "Workflow definitions, saved as immutable versions."},
    {"name": "schemas", "description": "Saved JSON Schemas for outputs of steps."},
    {
        "name": "triggers",
        "description": "Triggers, which start runs at certain times, or when something has happened.",
    },
    {"name": "subscriptions", "description": "Subscriptions, which report changes to other systems."},
    {"name": "runs", "description": "Executions of workflows: start, read, watch and control them."},
    {
        "name": "secrets",
        "description": "Named, encrypted values that step inputs refer to. Values are never returned.",
    },
    {"name": "keys", "description": "API keys, which authenticate clients of this API."},
    {
        "name": "events",
        "description": "Events of other systems and signals to runs, for steps that wait for them.",
    },
    {"name": "inbox", "description": "Steps that wait for a person."},
    {"name": "hooks", "description": "Push notifications from agents, and webhooks of triggers."},
    {"name": "dead letters", "description": "Messages that could not be read or applied."},
    {"name": "system", "description": "Health, metrics, the system state and the audit log."},
]
_CORRELATION_PARAMETER: JsonObject = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": (
        "An id for this request, which logs, requests to agents and the response carry: up to 128 "
        "visible ASCII characters. If it is missing or invalid, the server creates one."
    ),
    "schema": {"type": "string"},
}
_SECURITY_SCHEMES: JsonObject = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key. Create one with `trunkline keys create`.",
    },
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same API key."},
}
# The empty entry: on a loopback address, no key is needed.
_SECURITY: list[Json] = [{"bearer": []}, {"api_key": []}, {}]


_PROBLEMS = {
    400: "The body is malformed.",
    401: "The API key is missing, unknown, expired or revoked, or the signature of a webhook is refused.",
    403: "The role of the API key does not allow this operation.",
    404: "The resource does not exist.",
    409: "The current state does not allow this operation. `detail` gives the reason.",
    412: "`If-Match` does not match the current version.",
    413: "The body is too large.",
    422: "The request is invalid. `errors` lists the invalid values.",
    429: "Too many requests. `Retry-After` says when to try again.",
}
_SERVER_PROBLEM = "An internal error, or a dependency of the server is unavailable."
_CORRELATION_HEADER = {HEADER: "The correlation id of the request, from the caller or created by the server."}


def _operation(operation: Operation) -> JsonObject:
    role = ROLES[f"{operation.method} {operation.path}"]
    refusals = () if role is None else (401, 403, 429)
    parameters: list[Json] = [_parameter(each) for each in operation.parameters]
    responses: JsonObject = {
        **{str(status): _response(response) for status, response in operation.responses.items()},
        **{str(status): _problem(_PROBLEMS[status]) for status in (*refusals, *operation.problems)},
        "5XX": _problem(_SERVER_PROBLEM),
    }
    return {
        "tags": [operation.tag],
        "summary": operation.summary,
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
    """The schema of the workflow language. Its definitions become components, because references start at the root."""
    text = encode(workflow_json_schema()).replace(b'"#/$defs/', b'"#/components/schemas/Workflow-')
    schema = _object(decode(text))
    schema.pop("$schema")
    parts = _object(schema.pop("$defs"))
    return {WORKFLOW_DEFINITION: schema, **{f"Workflow-{name}": part for name, part in parts.items()}}


def _object(value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object in the OpenAPI document, found {type(value).__name__}")
    return cast("JsonObject", value)
