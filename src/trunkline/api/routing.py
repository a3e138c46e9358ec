"""
Routes: each is an operation with its parameters, its body, its responses and the function that answers it.

The router finds the operation, reads its parameters, and turns every error into a problem. An operation also contains
its OpenAPI description.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trunkline.api.parameters import ENCODED_SLASH, PLACEHOLDER, P, Parameter, ParameterReader, routed_path
from trunkline.api.problems import method_not_allowed, problem_of, unexpected, unknown_route
from trunkline.errors import TrunklineError
from trunkline.jsontypes import JsonObject, encode

JSON = "application/json"


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """`content`: a resource, or JSON values with stored JSON texts (`msgspec.Raw`) in them."""
    return Response(encode(content), status, headers, media_type=JSON)


# Response headers, with their descriptions.
ETAG = {"ETag": "The version of the resource, for `If-Match`."}
LOCATION = {"Location": "The address of the resource."}


@dataclass(frozen=True)
class ResponseSpec:
    """A response in OpenAPI, other than a problem."""

    description: str
    # The type of its JSON; None if it has none.
    resource: type | None = None
    # Schemas by media type, besides the JSON of `resource`.
    content: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    # Descriptions by name.
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Body:
    """The request body of an operation."""

    # A type whose schema describes it, or the schema itself.
    form: type | JsonObject
    required: bool = True
    media_types: tuple[str, ...] = (JSON,)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method at one path, and its OpenAPI description."""

    method: str
    path: str
    name: str
    tag: str
    description: str
    parameters: Sequence[Parameter]
    body: Body | None
    responses: Mapping[int, ResponseSpec]
    # The statuses of its problems, besides those that every operation has.
    problems: tuple[int, ...]
    respond: Callable[[Request], Awaitable[Response]]

    @property
    def summary(self) -> str:
        """The first sentence of the description."""
        first_line, _, _ = self.description.partition("\n")
        return first_line.partition(". ")[0].rstrip(".")


@overload
def operation(
    call: str,
    endpoint: Callable[[Request], Awaitable[Response]],
    parameters: None = None,
    *,
    name: str,
    tag: str,
    responses: Mapping[int, ResponseSpec],
    problems: tuple[int, ...] = (),
    body: Body | None = None,
) -> Operation: ...


@overload
def operation(
    call: str,
    endpoint: Callable[[Request, P], Awaitable[Response]],
    parameters: type[P],
    *,
    name: str,
    tag: str,
    responses: Mapping[int, ResponseSpec],
    problems: tuple[int, ...] = (),
    body: Body | None = None,
) -> Operation: ...


def operation(
    call: str,
    endpoint: Callable[..., Awaitable[Response]],
    parameters: type[P] | None = None,
    *,
    name: str,
    tag: str,
    responses: Mapping[int, ResponseSpec],
    problems: tuple[int, ...] = (),
    body: Body | None = None,
) -> Operation:
    """`call` has the form `GET /livez`. The endpoint's docstring is the description, its first sentence the summary."""
    method, _, path = call.partition(" ")
    reader = None if parameters is None else ParameterReader(parameters, path)
    return Operation(
        method=method,
        path=path,
        name=name,
        tag=tag,
        description=inspect.getdoc(endpoint) or "",
        parameters=() if reader is None else reader.parameters,
        body=body,
        responses=responses,
        problems=problems,
        respond=endpoint if reader is None else lambda request: endpoint(request, reader.read(request)),
    )


_Candidate = tuple[re.Pattern[str], Operation]


class OperationRouter:
    """
    Finds the operation of a request; other paths and methods are answered with a problem.

    Candidates are the operations with the request's method, number of segments and last segment, then those whose last
    segment is a parameter. Starlette's router tries every route in turn, which costs more than the rest of a short
    answer.
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._all = [(_pattern(each.path), each) for each in operations]
        # By method and number of segments; the first ones also by the last segment, which is not a parameter.
        self._named: dict[tuple[str, int, str], list[_Candidate]] = {}
        self._others: dict[tuple[str, int], list[_Candidate]] = {}
        for candidate in self._all:
            method, path = candidate[1].method, candidate[1].path
            segments, last = path.count("/"), path.rpartition("/")[2]
            if PLACEHOLDER.fullmatch(last):
                self._others.setdefault((method, segments), []).append(candidate)
            else:
                self._named.setdefault((method, segments, last), []).append(candidate)
        for (method, segments, _), named in self._named.items():
            named.extend(self._others.get((method, segments), ()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            # The server supports neither WebSockets nor lifespan events.
            return
        method: str = scope["method"]
        path = routed_path(scope)
        segments = path.count("/")
        candidates = self._named.get((method, segments, path[path.rfind("/") + 1 :]))
        for pattern, each in self._others.get((method, segments), ()) if candidates is None else candidates:
            if (match := pattern.fullmatch(path)) is not None:
                scope["path_params"] = {
                    name: value.replace(ENCODED_SLASH, "/") for name, value in match.groupdict().items()
                }
                response = await _respond(each, Request(scope, receive))
                await response(scope, receive, send)
                return
        await self._refusal(Request(scope))(scope, receive, send)

    def _refusal(self, request: Request) -> Response:
        path = routed_path(request.scope)
        matching = [each for pattern, each in self._all if pattern.fullmatch(path)]
        # In `/runs/bulk`, `bulk` is not the id of a run.
        methods = {each.method for each in matching if each.path == path} or {
            each.method for each in matching
        }
        return method_not_allowed(request, methods) if methods else unknown_route(request)


def _pattern(path: str) -> re.Pattern[str]:
    # Every second part is the name of a placeholder.
    parts = enumerate(PLACEHOLDER.split(path))
    return re.compile(
        "".join(f"(?P<{part}>[^/]+)" if position % 2 else re.escape(part) for position, part in parts)
    )


async def _respond(operation: Operation, request: Request) -> Response:
    try:
        return await operation.respond(request)
    except TrunklineError as error:
        return problem_of(request, error)
    except ClientDisconnect:
        # It has gone; the server drops the answer.
        return Response(status_code=400)
    except Exception as error:  # noqa: BLE001 - no layer outside answers it; it is logged
        return unexpected(request, error)
