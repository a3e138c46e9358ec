"""
How operations are put on the application and described for OpenAPI.

Handlers answer with ready responses. Shapes are named here, not imported: building the models of `schemas` would
make every start slower for the sake of a document that is seldom asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import request_response

from trunkline.api.headers import HEADER
from trunkline.api.problems import PROBLEM_JSON

Documentation = dict[str, object]
Responses = dict[int | str, Documentation]

JSON = "application/json"

_CORRELATION: Documentation = {
    HEADER: {
        "description": "The request's correlation id: the caller's own, or one made by the server.",
        "schema": {"type": "string"},
    }
}
ETAG: Documentation = {
    "ETag": {"description": "The version of what was answered, for `If-Match`.", "schema": {"type": "string"}}
}
LOCATION: Documentation = {"Location": {"description": "Where it can be read.", "schema": {"type": "string"}}}

_PROBLEMS: dict[int | str, str] = {
    400: "The body is not well-formed.",
    401: "A key is needed, and none that is in use was sent.",
    403: "The key's role does not allow it.",
    404: "There is no such thing.",
    409: "The present state does not allow it; `detail` gives the reason.",
    412: "`If-Match` names another version than the present one.",
    413: "The body is too large.",
    422: "The request is not valid; `errors` say where.",
    "5XX": "The server failed, or something it depends on is away.",
}


def problems(*statuses: int) -> Responses:
    """The problems that an operation can answer with; every one can fail."""
    return {
        status: {
            "description": _PROBLEMS[status],
            "content": {PROBLEM_JSON: {"schema": ref("Problem")}},
            "headers": _CORRELATION,
        }
        for status in (*statuses, "5XX")
    }


def answer(
    shape: str | None,
    description: str,
    *,
    headers: Mapping[str, object] | None = None,
    content: Mapping[str, object] | None = None,
) -> Documentation:
    """One answer of an operation; `content` adds media types beside the shape's JSON."""
    documentation: Documentation = {
        "description": description,
        "headers": {**_CORRELATION, **(headers or {})},
    }
    given = {} if shape is None else {JSON: {"schema": ref(shape)}}
    if shape is not None or content is not None:
        documentation["content"] = {**given, **(content or {})}
    return documentation


def body(
    schema: Mapping[str, object], *, required: bool = True, media_types: tuple[str, ...] = (JSON,)
) -> Documentation:
    """The request body of an operation that reads it by itself."""
    return {
        "requestBody": {"required": required, "content": {kind: {"schema": schema} for kind in media_types}}
    }


def ref(shape: str) -> dict[str, object]:
    """One of `schemas`, by its name."""
    return {"$ref": f"#/components/schemas/{shape}"}


class ReadyRoute(APIRoute):
    """
    A route whose handler reads the request by itself.

    The framework's own way through dependencies and validation costs as much as all the rest of a hot answer.
    """

    def __init__(self, path: str, endpoint: Callable[..., Awaitable[Response]], **options: object) -> None:
        super().__init__(path, endpoint, **options)  # pyright: ignore[reportArgumentType] # passed on as they came
        self.app = request_response(endpoint)


def add_operation(
    app: FastAPI,
    call: str,
    endpoint: Callable[..., Awaitable[Response]],
    *,
    name: str,
    tag: str,
    responses: Responses,
    extra: Documentation | None = None,
    ready: bool = False,
) -> None:
    """Puts one operation on the application; `call` is like `GET /livez`."""
    method, _, path = call.partition(" ")
    app.router.add_api_route(
        path,
        endpoint,
        methods=[method],
        operation_id=name,
        name=name,
        tags=[tag],
        responses=responses,
        response_model=None,
        response_class=Response,
        # The first answer that is not a problem is the one that the framework takes for its own.
        status_code=min(status for status in responses if isinstance(status, int)),
        openapi_extra=extra,
        route_class_override=ReadyRoute if ready else None,
    )
