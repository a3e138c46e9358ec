"""
The outermost layer of the API: every request has a correlation id, and every response carries it.

Plain ASGI, around the whole application, so that the responses of other middleware pass through it, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trunkline.api.correlation_ids import RAW_HEADER, SCOPE_KEY, choose_correlation_id
from trunkline.api.problems import log_failure, redacted_path
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger(__name__)

# Answers hold what agents wrote: no browser guesses at their type, and no cache keeps them.
_SAFE_DEFAULTS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


class CorrelationMiddleware:
    """Wraps an ASGI application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        correlation_id = choose_correlation_id(scope["headers"])
        scope[SCOPE_KEY] = correlation_id
        status = 0
        began = time.perf_counter()

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_defaults(message["headers"], correlation_id)
            await send(message)

        try:
            await self._app(scope, receive, send_marked)
        except Exception as error:  # noqa: BLE001 - the outermost layer; the server would only log it once more
            log_failure(scope, error)
        log.debug(
            log_events.HTTP_REQUEST,
            method=scope["method"],
            path=redacted_path(scope["path"]),
            status=status,
            duration_ms=round((time.perf_counter() - began) * 1000, 3),
            correlation_id=correlation_id,
        )


def _with_defaults(headers: Iterable[tuple[bytes, bytes]], correlation_id: str) -> list[tuple[bytes, bytes]]:
    """What an answer says of itself stays: the files of the web UI may be cached."""
    complete = [*headers, (RAW_HEADER, correlation_id.encode("ascii"))]
    given = {name.lower() for name, _ in complete}
    complete += [(name, value) for name, value in _SAFE_DEFAULTS if name not in given]
    return complete
