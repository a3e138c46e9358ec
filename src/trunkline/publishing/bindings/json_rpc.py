"""
The JSON-RPC binding of A2A 0.3 and 1.0, at one address: the method's name decides the version.

    {"jsonrpc": "2.0", "id", "method": "SendMessage" | "message/send" | …, "params"}
    {"jsonrpc": "2.0", "id", "result"}  {"jsonrpc": "2.0", "id", "error": {"code", "message", "data"}}

Errors have the HTTP status 200, except for bodies that are too large and of another content type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from trunkline.api.bodies import decode_json, read_body
from trunkline.api.problems import MalformedBody, log_failure
from trunkline.errors import TrunklineError
from trunkline.jsontypes import Json, JsonObject, encode
from trunkline.publishing.bindings.caller_request import CallerRequest, Version
from trunkline.publishing.bindings.requests import (
    UNKNOWN,
    CallerRequests,
    OperationName,
    check_version,
    shown_version,
)
from trunkline.publishing.errors import A2AError, ErrorKind, a2a_error_of, invalid_params
from trunkline.publishing.incoming_exchanges import UnsentResponse, exchange_of
from trunkline.publishing.operations import Caller
from trunkline.publishing.publications import Publication
from trunkline.telemetry.metrics import Metrics

_CONTENT_TYPE = "application/json"


class Method(NamedTuple):
    version: Version
    operation: OperationName


METHODS: Mapping[str, Method] = {
    "SendMessage": Method("1.0", "send"),
    "SendStreamingMessage": Method("1.0", "stream"),
    "GetTask": Method("1.0", "get"),
    "ListTasks": Method("1.0", "list"),
    "CancelTask": Method("1.0", "cancel"),
    "SubscribeToTask": Method("1.0", "subscribe"),
    "CreateTaskPushNotificationConfig": Method("1.0", "create_push_config"),
    "GetTaskPushNotificationConfig": Method("1.0", "get_push_config"),
    "ListTaskPushNotificationConfigs": Method("1.0", "list_push_configs"),
    "DeleteTaskPushNotificationConfig": Method("1.0", "delete_push_config"),
    "GetExtendedAgentCard": Method("1.0", "extended_card"),
    "message/send": Method("0.3", "send"),
    "message/stream": Method("0.3", "stream"),
    "tasks/get": Method("0.3", "get"),
    "tasks/cancel": Method("0.3", "cancel"),
    "tasks/resubscribe": Method("0.3", "subscribe"),
    "tasks/pushNotificationConfig/set": Method("0.3", "create_push_config"),
    "tasks/pushNotificationConfig/get": Method("0.3", "get_push_config"),
    "tasks/pushNotificationConfig/list": Method("0.3", "list_push_configs"),
    "tasks/pushNotificationConfig/delete": Method("0.3", "delete_push_config"),
    "agent/getAuthenticatedExtendedCard": Method("0.3", "extended_card"),
}


class RpcCall(NamedTuple):
    id: Json
    name: str
    method: Method
    params: JsonObject


class JsonRpcBinding:
    def __init__(self, requests: CallerRequests, metrics: Metrics, max_body_bytes: int) -> None:
        self._requests = requests
        self._metrics = metrics
        self._max_body_bytes = max_body_bytes

    async def respond(self, request: Request, publication: Publication, caller: Caller) -> Response:
        request_id: Json = None
        name, version = UNKNOWN, shown_version(request)
        try:
            _check_content_type(request)
            body = await self._body(request)
            request_id = _id_of(body)
            called = _read(body)
            name, version = called.name, called.method.version
            check_version(request)
            asked = CallerRequest(request, publication, caller, called.params, called.method.version)
            response = await self._answer(called, asked)
            code = "ok"
        except A2AError as exc:
            response, code = _error(request_id, exc, version), str(exc.kind.code)
        except ClientDisconnect:
            # It has gone; the server drops the response.
            response, code = UnsentResponse(status_code=400), "disconnected"
        except Exception as exc:  # noqa: BLE001 - no layer outside answers in JSON-RPC; it is logged
            log_failure(request.scope, exc)
            error = A2AError(ErrorKind.INTERNAL_ERROR, "An unexpected error occurred.")
            response, code = _error(request_id, error, version), str(error.kind.code)
        self._metrics.a2a_requests.labels(name, version, "JSONRPC", code).inc()
        return response

    async def _body(self, request: Request) -> Json:
        try:
            body = await read_body(request, self._max_body_bytes)
            exchange_of(request).body = body
            return decode_json(body)
        except MalformedBody as exc:
            raise A2AError(ErrorKind.PARSE_ERROR, exc.message) from exc
        except TrunklineError as exc:
            raise a2a_error_of(exc) from exc

    async def _answer(self, called: RpcCall, asked: CallerRequest) -> Response:
        def respond(result: Json) -> JsonObject:
            return {"jsonrpc": "2.0", "id": called.id, "result": result}

        name = called.method.operation
        try:
            if name in {"stream", "subscribe"}:
                return await self._requests.open_stream(name, asked, respond)
            return _json(respond(await self._requests.answer(name, asked)))
        except TrunklineError as exc:
            error = a2a_error_of(exc)
            if error.kind is ErrorKind.INTERNAL_ERROR:
                log_failure(asked.http.scope, exc)
            raise error from exc


def _check_content_type(request: Request) -> None:
    given = request.headers.get("content-type", _CONTENT_TYPE).partition(";")[0].strip().lower()
    if given != _CONTENT_TYPE:
        raise A2AError(ErrorKind.CONTENT_TYPE_NOT_SUPPORTED, f"The content type must be {_CONTENT_TYPE}.")


def _id_of(body: Json) -> Json:
    """The id to respond with, also to an invalid request."""
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, str | int | float) and not isinstance(found, bool) else None


def _read(body: Json) -> RpcCall:
    if isinstance(body, list):
        raise _invalid("batches are not supported")
    if not isinstance(body, dict):
        raise _invalid("a request must be an object")
    if body.get("jsonrpc") != "2.0":
        raise _invalid('jsonrpc must be "2.0"')
    # Some clients leave it out and still expect a response. Its id is null then.
    if "id" in body and (body["id"] is None or body["id"] != _id_of(body)):
        raise _invalid("id must be a string or a number")
    name = body.get("method")
    if not isinstance(name, str) or not name:
        raise _invalid("method must be a string")
    method = METHODS.get(name)
    if method is None:
        raise A2AError(ErrorKind.METHOD_NOT_FOUND, f"Method not found: {name[:100]}")
    params = body.get("params", {})
    if not isinstance(params, dict):
        raise invalid_params("params must be an object")
    return RpcCall(body.get("id"), name, method, params)


def _invalid(message: str) -> A2AError:
    return A2AError(ErrorKind.INVALID_REQUEST, f"Invalid Request: {message}")


def _error(request_id: Json, error: A2AError, version: str) -> Response:
    fields = error.rpc_error()
    details = error.details()
    if details and version != "0.3":
        fields["data"] = details
    status = 200
    if error.kind is ErrorKind.TOO_LARGE:
        status = 413
    elif error.kind is ErrorKind.CONTENT_TYPE_NOT_SUPPORTED:
        status = 415
    return _json({"jsonrpc": "2.0", "id": request_id, "error": fields}, status)


def _json(content: JsonObject, status: int = 200) -> Response:
    return Response(encode(content), status, media_type=_CONTENT_TYPE)
