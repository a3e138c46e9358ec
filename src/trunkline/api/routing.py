"""
The one kind of route: an operation with its parameters, its body, its answers and the function that answers it.

Starlette's router finds the operation. This module reads the parameters, turns every error into a problem, and keeps
what OpenAPI says about the operation.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.api.parameters import P, Parameter, ParameterReader
from trunkline.api.problems import method_not_allowed, problem_of, unexpected, unknown_route
from trunkline.errors import TrunklineError
from trunkline.jsontypes import JsonObject, encode

JSON = "application/json"


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """`content`: a resource, or JSON values with stored JSON texts (`msgspec.Raw`) in them."""
    return Response(encode(content), status, headers, media_type=JSON)


# Headers of answers, with what they say.
ETAG = {"ETag": "The version of what was answered, for `If-Match`."}
LOCATION = {"Location": "Where it can be read."}


@dataclass(frozen=True)
class Answer:
    """An answer of an operation that is not a problem."""

    description: str
    # Of its JSON; None: it has none.
    resource: type | None = None
    # Schemas by media type, besides the JSON of `resource`.
    content: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    # Descriptions by name.
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Body:
    """What an operation reads as its body."""

    # A type whose schema describes it, or the schema itself.
    form: type | JsonObject
    required: bool = True
    media_types: tuple[str, ...] = (JSON,)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method at one path, and what OpenAPI says about it."""

    method: str
    path: str
    name: str
    tag: str
    description: str
    parameters: Sequence[Parameter]
    body: Body | None
    answers: Mapping[int, Answer]
    # The statuses of its problems, besides those that every operation has.
    problems: tuple[int, ...]
    respond: Callable[[Request], Awaitable[Response]]


@overload
def operation(
    call: str,
    endpoint: Callable[[Request], Awaitable[Response]],
    parameters: None = None,
    *,
    name: str,
    tag: str,
    answers: Mapping[int, Answer],
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
    answers: Mapping[int, Answer],
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
    answers: Mapping[int, Answer],
    problems: tuple[int, ...] = (),
    body: Body | None = None,
) -> Operation:
    """`call` is like `GET /livez`; the endpoint's docstring is the description."""
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
        answers=answers,
        problems=problems,
        respond=endpoint if reader is None else lambda request: endpoint(request, reader.read(request)),
    )


class OperationRoute(Route):
    """Lets Starlette's router find one operation."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(operation.path, _unused, methods=[operation.method], name=operation.name)
        # Starlette would add HEAD to every GET.
        self.methods = {operation.method}
        self.operation = operation

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if scope["method"] == self.operation.method:
            response = await self._respond(request)
        else:
            response = method_not_allowed(request, _methods_at(scope))
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        try:
            return await self.operation.respond(request)
        except TrunklineError as error:
            return problem_of(request, error)
        except ClientDisconnect:
            # It has gone; the server drops the answer.
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - no layer outside answers it; it is logged
            return unexpected(request, error)


async def _unused(request: Request) -> Response:
    """Starlette's route wants an endpoint; `OperationRoute.handle` calls the operation's own."""
    raise NotImplementedError


def _methods_at(scope: Scope) -> list[str]:
    """The methods that the requested path has operations for."""
    router: Router = scope["router"]
    matching = (route for route in router.routes if route.matches(scope)[0] is not Match.NONE)
    return sorted(
        {method for route in matching if isinstance(route, Route) for method in route.methods or ()}
    )


async def _unknown_route(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await unknown_route(Request(scope))(scope, receive, send)


def build_router(operations: Iterable[Operation]) -> ASGIApp:
    return Router(
        [OperationRoute(each) for each in operations], redirect_slashes=False, default=_unknown_route
    )
