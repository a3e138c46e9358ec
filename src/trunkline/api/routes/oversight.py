"""The system itself: how it stands, who has changed what, and who is asking."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.middleware.auth import caller_of, role_of
from trunkline.api.operations import JSON, add_operation, answer, problems
from trunkline.api.oversight_views import audit_json, caller_json, system_json
from trunkline.api.paging import DEFAULT_LIMIT, Limit, TextCursor, decode_cursor, page
from trunkline.api.services import Services
from trunkline.stores.port.operations import AuditKind
from trunkline.system_clock import SystemClock

SYSTEM = "/api/v1/system"
AUDIT = "/api/v1/audit"
ME = "/api/v1/me"


class OversightRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services

    async def system(self) -> Response:
        """
        How the system stands: what it depends on, which processes live, how much waits.

        It answers also where it is not ready; whoever routes work by that asks `/readyz`. Counts end at 10,000, so the
        answer is as quick with a hundred thousand runs as with ten. Where Kafka does not answer, it comes within three
        seconds all the same, and says of each group of consumers why nobody knows how much waits.
        """
        dependencies = await self._services.readiness()
        sight = await self._services.system_monitor.snapshot()
        document = system_json(sight, dependencies, self._services.warnings(), SystemClock().now())
        return Response(document, media_type=JSON)

    async def audit(
        self,
        limit: Limit = DEFAULT_LIMIT,
        cursor: TextCursor = None,
        who: Annotated[str | None, Query(description="Only what the key of this name has changed.")] = None,
        kind: Annotated[AuditKind | None, Query(description="Only changes of this kind of thing.")] = None,
        subject: Annotated[str | None, Query(description="Only changes of this one.")] = None,
    ) -> Response:
        """
        Who has changed what, newest first.

        An entry is written in the transaction of the change. Starting a run is no entry: the run itself is.
        """
        found = await self._services.audit.list(
            limit=limit + 1, before=decode_cursor(cursor), who=who, kind=kind, subject=subject
        )
        entries, next_cursor = page(found, limit, lambda entry: entry.id)
        return Response(audit_json(entries, next_cursor), media_type=JSON)

    async def me(self, request: Request) -> Response:
        """Whose key this is, and what it may do."""
        return Response(caller_json(caller_of(request.scope), role_of(request.scope)), media_type=JSON)


def add_oversight_routes(app: FastAPI, services: Services) -> None:
    routes = OversightRoutes(services)
    add_operation(
        app, f"GET {SYSTEM}", routes.system, name="get_system", tag="system",
        responses={200: answer("SystemState", "How the system stands."), **problems()},
    )  # fmt: skip
    add_operation(
        app, f"GET {AUDIT}", routes.audit, name="list_audit", tag="system",
        responses={200: answer("AuditPage", "A page of changes."), **problems(422)},
    )  # fmt: skip
    add_operation(
        app, f"GET {ME}", routes.me, name="get_caller", tag="system",
        responses={200: answer("Caller", "Who is asking."), **problems()},
    )  # fmt: skip
