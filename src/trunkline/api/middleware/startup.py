"""
The responses of a process that is starting: it is alive, and reports what it is waiting for.

When the process is ready, all requests go to its application.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.api.middleware.correlation import CorrelationMiddleware
from trunkline.api.problems import KINDS, problem
from trunkline.api.services import OK
from trunkline.errors import Unavailable
from trunkline.jsontypes import encode

_LIVENESS = frozenset({"/livez", "/health"})
_ALIVE = encode({"status": OK})


class StartupApp:
    """An ASGI application that answers until the real one is ready."""

    def __init__(self, *, shows_reasons: bool) -> None:
        # Without API keys, the response says what is missing. Otherwise, only the log does.
        self._shows_reasons = shows_reasons
        self._app: ASGIApp = CorrelationMiddleware(self._wait)
        self.missing: Mapping[str, str] = {}

    def switch_to(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def _wait(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        answer = (
            Response(_ALIVE, media_type="application/json")
            if scope["path"] in _LIVENESS
            else self._not_ready(request)
        )
        await answer(scope, receive, send)

    def _not_ready(self, request: Request) -> Response:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in sorted(self.missing.items()))
        return problem(
            request,
            KINDS[Unavailable],
            reasons if reasons and self._shows_reasons else "The process is still starting.",
            "Restore the dependency that this message or the log names. Trunkline then continues "
            "automatically.",
        )
