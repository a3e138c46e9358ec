"""
The door of a process that is not ready yet: it lives, and says what it waits for.

Once the process is ready everything goes to its application.
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

_ALIVE = encode({"status": OK})


class StartupApp:
    """An ASGI application that stands in for another until that is there."""

    def __init__(self, *, tells_why: bool) -> None:
        # Whoever may come in without a key may know what is missing; others have the log.
        self._tells_why = tells_why
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
            if scope["path"] == "/livez"
            else self._not_ready(request)
        )
        await answer(scope, receive, send)

    def _not_ready(self, request: Request) -> Response:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in sorted(self.missing.items()))
        return problem(
            request,
            KINDS[Unavailable],
            reasons if reasons and self._tells_why else "The process is starting.",
            "Bring back what is named, here or in the log; Trunkline goes on by itself as soon as it answers.",
        )
