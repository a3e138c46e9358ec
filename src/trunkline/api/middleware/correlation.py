"""
The outermost layer of the API: every request has a correlation id, and every response carries it.

Plain ASGI, around the whole application, so that the responses of other middleware pass through it, too.
"""

from __future__ import annotations

import time

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trunkline.api.headers import RAW_HEADER, SCOPE_KEY, choose_correlation_id
from trunkline.api.problems import log_failure, redacted_path
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger(__name__)


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
                message["headers"] = [*message["headers"], (RAW_HEADER, correlation_id.encode("ascii"))]
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
