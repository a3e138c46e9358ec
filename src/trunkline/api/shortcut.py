"""
Starting a run, past the framework.

The framework's router and middleware cost more than all the rest of this one operation, so it is recognised and
answered before them. The application has the same operation, for its description and for every other method.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.api.problems import problem_of, unexpected
from trunkline.errors import TrunklineError

_PREFIX = "/api/v1/workflows/"
_SUFFIX = "/execute"


class Shortcut:
    """Wraps an ASGI application; calls of `execute` do not reach it."""

    def __init__(self, app: ASGIApp, execute: Callable[[Request], Awaitable[Response]]) -> None:
        self._app = app
        self._execute = execute

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        workflow = _workflow_to_execute(scope)
        if workflow is None:
            await self._app(scope, receive, send)
            return
        scope["path_params"] = {"workflow": workflow}
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._execute(request)
        except TrunklineError as error:
            return problem_of(request, error)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - nobody outside of here would answer; it is logged
            return unexpected(request, error)


def _workflow_to_execute(scope: Scope) -> str | None:
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    path: str = scope["path"]
    if not (path.startswith(_PREFIX) and path.endswith(_SUFFIX)):
        return None
    workflow = path[len(_PREFIX) : -len(_SUFFIX)]
    return workflow if workflow and "/" not in workflow else None
