"""
A zone over HTTP, as plain ASGI: no framework is between a call and its handler.

    POST /, /invocations    a call; the second is where AWS AgentCore sends them
    GET  /ping              whether work goes on, as AgentCore asks for it
    GET  /openrpc.json, /schemas/NAME.json

Every answer to a call is a JSON-RPC response. Browsers are turned away: a page must not be able to use the
place that it is looked at from.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, TypeAlias

from trunkline.zones.faults import OTHER, ZoneFault
from trunkline.zones.replies import NO_ID, Reply, refusal, with_fault

# As ASGI has them: what is in a message depends on its type.
Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

CALL_PATHS = frozenset({"/", "/invocations"})
_JSON = (b"content-type", b"application/json")


def path_of(scope: Scope) -> str:
    """The path below the place where the zone is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")) or "/"


def headers_of(scope: Scope) -> Mapping[bytes, bytes]:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return dict(headers)


def refused_unread(
    scope: Scope, headers: Mapping[bytes, bytes], reads: bool, most_bytes: int
) -> Reply | None:
    """Why a call is refused before its body is looked at; `reads`: there is a document under this path."""
    path, method = path_of(scope), scope["method"]
    if path not in CALL_PATHS:
        if not reads:
            return refusal(HTTPStatus.NOT_FOUND, "There is nothing at this address. Calls go to POST /.")
        return _wrong_method("GET")
    if method != "POST":
        return _wrong_method("POST")
    if b"origin" in headers:
        fault = ZoneFault(OTHER, "Browsers may not call a zone.", {"reason": "browser"})
        return Reply(with_fault(NO_ID, fault), HTTPStatus.FORBIDDEN)
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > most_bytes:
        return too_large(most_bytes)
    return None


def too_large(most_bytes: int) -> Reply:
    return refusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request has at most {most_bytes} bytes. Send less of it."
    )


async def read_body(receive: Receive, most_bytes: int) -> bytes | Reply | None:
    """The body, or the refusal of one that is too large; None when the caller has gone."""
    message = await receive()
    chunk: bytes = message.get("body", b"")
    if message["type"] == "http.request" and not message.get("more_body", False):
        return chunk if len(chunk) <= most_bytes else too_large(most_bytes)
    chunks: list[bytes] = []
    size = 0
    while message["type"] == "http.request":
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > most_bytes:
            return too_large(most_bytes)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)
        message = await receive()
    return None


async def send_reply(send: Send, reply: Reply) -> None:
    length = (b"content-length", b"%d" % len(reply.body))
    headers = [_JSON, length, *reply.headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def _wrong_method(allowed: str) -> Reply:
    reply = refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"This address takes {allowed} only.")
    return Reply(reply.body, reply.status, ((b"allow", allowed.encode()),))
