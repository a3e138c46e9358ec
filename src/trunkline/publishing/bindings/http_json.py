"""
The HTTP+JSON binding of A2A 1.0, below a publication's address, with an optional `/{tenant}` before each path.

    POST /message:send   POST /message:stream   GET /tasks   GET /tasks/{id}   POST /tasks/{id}:cancel
    GET or POST /tasks/{id}:subscribe           GET /extendedAgentCard
    POST or GET /tasks/{id}/pushNotificationConfigs               GET or DELETE …/pushNotificationConfigs/{id}

Errors are {"error": {"code": HTTP status, "status", "message", "details"}}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from trunkline.api.bodies import decode_json, read_body
from trunkline.api.problems import MalformedBody, log_failure
from trunkline.errors import TrunklineError
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.publishing.bindings.caller_request import CallerRequest
from trunkline.publishing.bindings.requests import (
    UNKNOWN,
    CallerRequests,
    OperationName,
    check_version,
)
from trunkline.publishing.errors import A2AError, ErrorKind, HttpStatuses, a2a_error_of, invalid_params
from trunkline.publishing.grpc_binding.asgi_calls import BINDING
from trunkline.publishing.incoming_exchanges import UnsentResponse, exchange_of
from trunkline.publishing.operations import Caller
from trunkline.publishing.publications import Publication
from trunkline.telemetry.metrics import Metrics

_CONTENT_TYPE = "application/json"
_ACCEPTED = frozenset({_CONTENT_TYPE, "application/a2a+json"})
_TASK = r"/tasks/(?P<id>[^/:]+)"
_CONFIGS = r"/tasks/(?P<taskId>[^/:]+)/pushNotificationConfigs"
_CONFIG = rf"{_CONFIGS}/(?P<id>[^/]+)"


class _Route(NamedTuple):
    methods: tuple[str, ...]
    pattern: re.Pattern[str]
    operation: OperationName
    # As JSON-RPC calls it, for the metrics.
    name: str


def _route(methods: str, path: str, operation: OperationName, name: str) -> _Route:
    return _Route(tuple(methods.split()), re.compile(rf"(?:/[^/:]+)?{path}/?"), operation, name)


ROUTES = (
    _route("POST", "/message:send", "send", "SendMessage"),
    _route("POST", "/message:stream", "stream", "SendStreamingMessage"),
    _route("GET", "/tasks", "list", "ListTasks"),
    _route("GET", _TASK, "get", "GetTask"),
    _route("POST", f"{_TASK}:cancel", "cancel", "CancelTask"),
    _route("GET POST", f"{_TASK}:subscribe", "subscribe", "SubscribeToTask"),
    _route("GET", "/extendedAgentCard", "extended_card", "GetExtendedAgentCard"),
    _route("POST", _CONFIGS, "create_push_config", "CreateTaskPushNotificationConfig"),
    _route("GET", _CONFIGS, "list_push_configs", "ListTaskPushNotificationConfigs"),
    _route("GET", _CONFIG, "get_push_config", "GetTaskPushNotificationConfig"),
    _route("DELETE", _CONFIG, "delete_push_config", "DeleteTaskPushNotificationConfig"),
)


class HttpJsonBinding:
    def __init__(
        self, requests: CallerRequests, metrics: Metrics, max_body_bytes: int, statuses: HttpStatuses
    ) -> None:
        self._requests = requests
        self._metrics = metrics
        self._max_body_bytes = max_body_bytes
        self._statuses: HttpStatuses = statuses

    async def respond(
        self, request: Request, publication: Publication, caller: Caller, path: str
    ) -> Response:
        """`path`: what follows the publication's address."""
        name, code = UNKNOWN, "ok"
        binding: str = request.scope.get(BINDING, "HTTP+JSON")
        try:
            route, match = _find(request.method, path)
            name = route.name
            check_version(request)
            params = await self._params(request)
            params |= match.groupdict()
            asked = CallerRequest(request, publication, caller, params, "1.0")
            response = await self._answer(route, asked)
        except A2AError as exc:
            response, code = self._error(exc), str(exc.kind.code)
        except ClientDisconnect:
            # It has gone; the server drops the response.
            response, code = UnsentResponse(status_code=400), "disconnected"
        except Exception as exc:  # noqa: BLE001 - no layer outside answers in this form; it is logged
            log_failure(request.scope, exc)
            error = A2AError(ErrorKind.INTERNAL_ERROR, "An unexpected error occurred.")
            response, code = self._error(error), str(error.kind.code)
        self._metrics.a2a_requests.labels(name, "1.0", binding, code).inc()
        return response

    async def _answer(self, route: _Route, asked: CallerRequest) -> Response:
        try:
            if route.operation in {"stream", "subscribe"}:
                return await self._requests.open_stream(route.operation, asked, _as_it_is)
            return _json(await self._requests.answer(route.operation, asked) or {})
        except TrunklineError as exc:
            error = a2a_error_of(exc)
            if error.kind is ErrorKind.INTERNAL_ERROR:
                log_failure(asked.http.scope, exc)
            raise error from exc

    def _error(self, error: A2AError) -> Response:
        status = error.kind.status_over_http(self._statuses)
        fields: JsonObject = {
            "code": status,
            "status": error.kind.rpc_status,
            "message": error.message,
            "details": error.details(),
        }
        return _json({"error": fields}, status)

    async def _params(self, request: Request) -> JsonObject:
        if request.method != "POST":
            return _query(request.query_params)
        try:
            body = await read_body(request, self._max_body_bytes)
            exchange_of(request).body = body
            if not body.strip():
                return {}
            _check_content_type(request)
            params = decode_json(body)
        except MalformedBody as exc:
            raise A2AError(ErrorKind.PARSE_ERROR, exc.message) from exc
        except TrunklineError as exc:
            raise a2a_error_of(exc) from exc
        if not isinstance(params, dict):
            raise invalid_params("The body must be an object.")
        return params


def _find(method: str, path: str) -> tuple[_Route, re.Match[str]]:
    for route in ROUTES:
        match = route.pattern.fullmatch(path)
        if match is not None and method in route.methods:
            return route, match
    raise A2AError(ErrorKind.METHOD_NOT_FOUND, f"Unknown operation: {method} {path[:200]}")


def _check_content_type(request: Request) -> None:
    given = request.headers.get("content-type", _CONTENT_TYPE).partition(";")[0].strip().lower()
    if given not in _ACCEPTED:
        raise A2AError(ErrorKind.CONTENT_TYPE_NOT_SUPPORTED, f"The content type must be {_CONTENT_TYPE}.")


def _query(given: Mapping[str, str]) -> JsonObject:
    """Numbers and truth values as JSON has them."""
    params: JsonObject = {}
    for name, value in given.items():
        if name in {"historyLength", "pageSize", "history_length", "page_size"}:
            params[name] = int(value) if re.fullmatch(r"-?[0-9]{1,9}", value) else value
        elif name in {"includeArtifacts", "include_artifacts"}:
            params[name] = {"true": True, "false": False}.get(value.lower(), value)
        else:
            params[name] = value
    return params


def _as_it_is(event: JsonObject) -> JsonObject:
    return event


def _json(content: Json, status: int = 200) -> Response:
    return Response(encode(content), status, media_type=_CONTENT_TYPE)
