"""
The operations of A2A over gRPC. Each call is a request of the HTTP+JSON binding, and its response a message again.

    service lf.a2a.v1.A2AService: SendMessage, SendStreamingMessage, GetTask, ListTasks, CancelTask, SubscribeToTask, …

One port serves all publications: the `tenant` of a request names one, as cards say, such as `workflows/tides`. Keys,
versions and extensions are metadata with the names of the HTTP headers.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from typing import NamedTuple, NoReturn
from urllib.parse import unquote, urlencode

from starlette.types import ASGIApp

from trunkline.api.app import PUBLISHED
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.publishing.grpc_binding.asgi_calls import InnerRequest, answered
from trunkline.publishing.grpc_binding.libraries import (
    Libraries,
    MessageClass,
    MethodDescriptor,
    ProtoMessage,
    ServicerContext,
)
from trunkline.sse import SseParser

BINDING_NAME = "GRPC"
_TASK = "/tasks/{id}"
_CONFIGS = "/tasks/{taskId}/pushNotificationConfigs"
# By their names in gRPC; in braces, fields of the request.
PATHS: Mapping[str, tuple[str, str]] = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", _TASK),
    "ListTasks": ("GET", "/tasks"),
    "CancelTask": ("POST", f"{_TASK}:cancel"),
    "SubscribeToTask": ("GET", f"{_TASK}:subscribe"),
    "CreateTaskPushNotificationConfig": ("POST", _CONFIGS),
    "GetTaskPushNotificationConfig": ("GET", f"{_CONFIGS}/{{id}}"),
    "ListTaskPushNotificationConfigs": ("GET", _CONFIGS),
    "DeleteTaskPushNotificationConfig": ("DELETE", f"{_CONFIGS}/{{id}}"),
    "GetExtendedAgentCard": ("GET", "/extendedAgentCard"),
}
_TENANT = re.compile(r"(?:workflows|agents)/[^/]{1,255}")
_IN_BRACES = re.compile(r"\{(\w+)\}")
_PASSED_ON = frozenset(
    {
        "authorization",
        "a2a-version",
        "a2a-extensions",
        "x-a2a-extensions",
        "x-correlation-id",
        "traceparent",
        "tracestate",
    }
)
_DETAILS = "grpc-status-details-bin"
# Of responses that come from before the binding: keys, limits, what is not published.
_CODES = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_PEER = re.compile(r"(?:ipv4|ipv6):(.+):([0-9]+)")
_MAX_EVENT_BYTES = 256 * 1024 * 1024


class _Refused(Exception):
    def __init__(self, code: str, message: str, details: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


class _Call(NamedTuple):
    verb: str
    path: str
    output: MessageClass


class A2AService:
    def __init__(self, app: ASGIApp, libraries: Libraries, *, host: str, scheme: str) -> None:
        """`host`: of the API, as a request to it names it."""
        self._app = app
        self._libraries = libraries
        self._host = host
        self._scheme = scheme

    def handler(self) -> object:
        """For the server."""
        service = self._libraries.service
        handlers = {method.name: self._handler_of(method) for method in service.methods}
        return self._libraries.grpc.method_handlers_generic_handler(service.full_name, handlers)

    def _handler_of(self, method: MethodDescriptor) -> object:
        libraries = self._libraries
        call = _Call(*PATHS[method.name], libraries.message_class(method.output_type))

        async def unary(request: ProtoMessage, context: ServicerContext) -> ProtoMessage:
            try:
                return await self._answer(call, request, context)
            except _Refused as exc:
                await self._abort(exc, context)

        async def stream(request: ProtoMessage, context: ServicerContext) -> AsyncGenerator[ProtoMessage]:
            try:
                async for message in self._events(call, request, context):
                    yield message
            except _Refused as exc:
                await self._abort(exc, context)

        read = libraries.message_class(method.input_type).FromString
        if method.server_streaming:
            return libraries.grpc.unary_stream_rpc_method_handler(stream, read, _written)
        return libraries.grpc.unary_unary_rpc_method_handler(unary, read, _written)

    async def _answer(self, call: _Call, request: ProtoMessage, context: ServicerContext) -> ProtoMessage:
        async with answered(self._app, self._request(call, request, context)) as response:
            body = await response.body()
        if response.status >= 400:
            raise _refusal(response.status, body)
        return self._message(call, body)

    async def _events(
        self, call: _Call, request: ProtoMessage, context: ServicerContext
    ) -> AsyncGenerator[ProtoMessage]:
        parser = SseParser(max_line_bytes=_MAX_EVENT_BYTES, max_event_bytes=_MAX_EVENT_BYTES)
        async with answered(self._app, self._request(call, request, context)) as response:
            if response.status >= 400:
                raise _refusal(response.status, await response.body())
            async for piece in response.pieces:
                for event in parser.feed(piece):
                    yield self._message(call, event.data)

    def _message(self, call: _Call, content: bytes | str) -> ProtoMessage:
        fields = decode(content)
        return self._libraries.parse(fields if isinstance(fields, dict) else {}, call.output)

    def _request(self, call: _Call, request: ProtoMessage, context: ServicerContext) -> InnerRequest:
        fields = self._libraries.json.MessageToDict(request)
        tenant = fields.pop("tenant", None)
        if not isinstance(tenant, str) or _TENANT.fullmatch(tenant) is None:
            raise _Refused(
                "INVALID_ARGUMENT",
                "tenant must name a publication, as its agent card does, such as workflows/NAME.",
            )
        path = _IN_BRACES.sub(lambda match: _taken(fields, match[1]), call.path)
        is_read = call.verb != "POST"
        return InnerRequest(
            method=call.verb,
            path=f"{PUBLISHED}{tenant}{path}",
            query=urlencode({name: _in_query(value) for name, value in fields.items()}) if is_read else "",
            headers=self._headers(context),
            body=b"" if is_read else encode(fields),
            client=_address(context.peer()),
            scheme=self._scheme,
            binding=BINDING_NAME,
        )

    def _headers(self, context: ServicerContext) -> dict[str, str]:
        given = {
            name: value
            for name, value in context.invocation_metadata() or ()
            if name in _PASSED_ON and isinstance(value, str)
        }
        return {**given, "host": self._host, "content-type": "application/json"}

    async def _abort(self, refused: _Refused, context: ServicerContext) -> NoReturn:
        code = self._libraries.grpc.StatusCode[refused.code]
        trailing: tuple[tuple[str, str | bytes], ...] = ()
        if isinstance(refused.details, list) and refused.details:
            number, _ = _number_of(code)
            status: JsonObject = {"code": number, "message": refused.message, "details": refused.details}
            message = self._libraries.parse(status, self._libraries.status)
            trailing = ((_DETAILS, message.SerializeToString()),)
        await context.abort(code, refused.message, trailing)


def _number_of(code: object) -> tuple[int, str]:
    """Of a status: its number, and its name."""
    value: tuple[int, str] = getattr(code, "value")  # noqa: B009 - an enumeration of an untyped library
    return value


def _written(message: ProtoMessage) -> bytes:
    return message.SerializeToString()


def _taken(fields: JsonObject, name: str) -> str:
    """A field that is a part of the path."""
    value = fields.pop(name, None)
    if not isinstance(value, str) or not value or "/" in value:
        raise _Refused("INVALID_ARGUMENT", f"{name} is required, and must not contain a slash.")
    return value


def _in_query(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _address(peer: str) -> tuple[str, int] | None:
    match = _PEER.fullmatch(unquote(peer))
    return None if match is None else (match[1].strip("[]"), int(match[2]))


def _refusal(status: int, body: bytes) -> _Refused:
    """The error of the HTTP+JSON binding, or a problem of the API."""
    found = decode(body) if body else None
    fields = found if isinstance(found, dict) else {}
    error = fields.get("error")
    if isinstance(error, dict):
        return _Refused(str(error.get("status")), str(error.get("message")), error.get("details"))
    code = _CODES.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
    return _Refused(code, str(fields.get("detail", "The request cannot be processed.")))
