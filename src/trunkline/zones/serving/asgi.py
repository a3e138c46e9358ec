"""
A zone over HTTP, as plain ASGI: no framework is between a call and its handler.

    POST /, /invocations    a call; the second is where AWS AgentCore sends them
    GET  /ping              whether work goes on, as AgentCore asks for it
    GET  /openrpc.json, /schemas/NAME.json

Every answer to a call is a JSON-RPC response. Browsers are turned away: a page must not be able to call what only
the machine that it is looked at from can reach.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from http import HTTPStatus
from pathlib import Path
from traceback import format_tb
from typing import Any, Protocol, TypeAlias

import structlog

from trunkline.errors import TrunklineError
from trunkline.jsontypes import encode
from trunkline.telemetry import log_events
from trunkline.zones.access.client_certificates import client_names
from trunkline.zones.access.control import AuthenticatedCaller, PresentedCredentials
from trunkline.zones.access.policy import ZoneCaller
from trunkline.zones.errors import INTERNAL_ERROR, OTHER, ZoneFault
from trunkline.zones.jsonrpc import NO_ID, ZoneReply, invalid_request_reply, with_fault

log = structlog.stdlib.get_logger(__name__)

# As ASGI has them: what is in a message depends on its type.
Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

CALL_PATHS = frozenset({"/", "/invocations"})
_PING = "/ping"
_READING = frozenset({"GET", "HEAD"})
_JSON = (b"content-type", b"application/json")


class ServedZone(Protocol):
    """A zone, as far as HTTP needs it."""

    max_body_bytes: int

    @property
    def is_running(self) -> bool: ...
    @property
    def is_busy(self) -> bool: ...
    def running(self, data: str | Path | None = None) -> AbstractAsyncContextManager[None]: ...
    def authenticate(self, presented: PresentedCredentials) -> AuthenticatedCaller | ZoneReply: ...
    def check_body(self, authenticated: AuthenticatedCaller, body: bytes) -> ZoneReply | None: ...
    async def answer(self, body: bytes, caller: ZoneCaller) -> ZoneReply: ...
    def document(self, path: str) -> bytes | None: ...


class ZoneApplication:
    def __init__(self, zone: ServedZone) -> None:
        self._zone = zone
        self._health = _HealthStatus()
        self._starting = asyncio.Lock()
        # Where the server around us does not say when it starts and stops, e.g. when we are mounted in another
        # application: then the first call starts the zone, and the end of the process ends it.
        self._unended = AsyncExitStack()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                reply = await self._reply_in_any_case(scope, receive)
                if reply is not None:
                    await _send_reply(send, reply)
            case "lifespan":
                await self._lifespan(receive, send)
            case _:
                await send({"type": "websocket.close", "code": 1000})

    async def _reply_in_any_case(self, scope: Scope, receive: Receive) -> ZoneReply | None:
        try:
            return await self._reply(scope, receive)
        # The outermost layer: the server's own answer would be no JSON-RPC.
        except Exception as exc:  # noqa: BLE001
            # Without the error's own words unless they are ours: a token may be in them.
            reason = exc.message if isinstance(exc, TrunklineError) else type(exc).__name__
            log.error(log_events.ZONE_FAILED, reason=reason, traceback="".join(format_tb(exc.__traceback__)))
            return ZoneReply(with_fault(NO_ID, ZoneFault(INTERNAL_ERROR)), HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _reply(self, scope: Scope, receive: Receive) -> ZoneReply | None:
        """None: the caller has gone before it has said what it wants."""
        path: str = scope["path"].removeprefix(scope.get("root_path", "")) or "/"
        if path not in CALL_PATHS:
            return self._document(path, scope["method"])
        refused = _refused_unread(scope["method"], scope["headers"])
        if refused is not None:
            return refused
        if not self._zone.is_running:
            await self._start()
        presented = _presented_credentials(scope)
        authenticated = self._zone.authenticate(presented)
        if isinstance(authenticated, ZoneReply):
            return authenticated
        most = self._zone.max_body_bytes
        if presented.size is not None and presented.size > most:
            return _too_large(most)
        body = await _read_body(receive, min(most, authenticated.max_bytes or most))
        if not isinstance(body, bytes):
            return body
        return self._zone.check_body(authenticated, body) or await self._zone.answer(
            body, authenticated.caller
        )

    def _document(self, path: str, method: str) -> ZoneReply:
        text = self._health.text(self._zone.is_busy) if path == _PING else self._zone.document(path)
        if text is None:
            return invalid_request_reply(
                HTTPStatus.NOT_FOUND, "Nothing is served at this path. Send calls to POST /."
            )
        return ZoneReply(text) if method in _READING else _wrong_method("GET")

    async def _start(self) -> None:
        async with self._starting:
            if not self._zone.is_running:
                await self._unended.enter_async_context(self._zone.running())

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            async with self._zone.running():
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except TrunklineError as exc:
            await send({"type": "lifespan.startup.failed", "message": f"{exc.message} {exc.fix}"})
        else:
            await send({"type": "lifespan.shutdown.complete"})


class _HealthStatus:
    """As AgentCore wants to know it: a session that is busy is not taken for idle, and not ended."""

    def __init__(self) -> None:
        self._was_busy = False
        self._since = int(time.time())

    def text(self, is_busy: bool) -> bytes:
        if is_busy != self._was_busy:
            self._was_busy, self._since = is_busy, int(time.time())
        return encode({"status": "HealthyBusy" if is_busy else "Healthy", "time_of_last_update": self._since})


def _refused_unread(method: str, headers: Headers) -> ZoneReply | None:
    """Why a call is rejected regardless of its caller."""
    if method != "POST":
        return _wrong_method("POST")
    for name, _ in headers:
        if name == b"origin":
            fault = ZoneFault(OTHER, "Browsers may not call a zone.", {"reason": "browser"})
            return ZoneReply(with_fault(NO_ID, fault), HTTPStatus.FORBIDDEN)
    return None


def _presented_credentials(scope: Scope) -> PresentedCredentials:
    certificate = client_names(scope) if "tls" in scope.get("extensions", ()) else None
    authorizations: list[bytes] = []
    size = None
    headers: Headers = scope["headers"]
    for name, value in headers:
        if name == b"authorization":
            authorizations.append(value)
        elif name == b"content-length":
            # The server has seen to it that it is a number.
            size = int(value)
    return PresentedCredentials(authorizations=authorizations, certificate=certificate, size=size)


async def _read_body(receive: Receive, most_bytes: int) -> bytes | ZoneReply | None:
    """The body, or the refusal of one that is too large; None when the caller has gone."""
    chunks: list[bytes] = []
    size = 0
    while (message := await receive())["type"] == "http.request":
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > most_bytes:
            return _too_large(most_bytes)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)
    return None


async def _send_reply(send: Send, reply: ZoneReply) -> None:
    length = (b"content-length", b"%d" % len(reply.body))
    headers = [_JSON, length, *reply.headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def _too_large(most_bytes: int) -> ZoneReply:
    return invalid_request_reply(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"A request can have at most {most_bytes} bytes. Send a smaller one.",
    )


def _wrong_method(allowed: str) -> ZoneReply:
    reply = invalid_request_reply(HTTPStatus.METHOD_NOT_ALLOWED, f"This path accepts {allowed} only.")
    return ZoneReply(reply.body, reply.status, ((b"allow", allowed.encode()),))
