"""
The process and the system: liveness, readiness, metrics, the system state, the audit log, the caller's identity,
and the cache of outputs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trunkline.api.event_streams import JSON_LINES, AuditStream
from trunkline.api.middleware.auth import caller_of, role_of
from trunkline.api.paging import TextPageParameters, decode_cursor, page
from trunkline.api.parameters import Parameters, instant
from trunkline.api.problems import KINDS, problem
from trunkline.api.resources.common import page_of
from trunkline.api.resources.system import (
    AuditPage,
    CacheResource,
    CallerResource,
    ClearedCacheResource,
    Liveness,
    Readiness,
    SystemState,
    audit_entry,
    system_state,
)
from trunkline.api.routing import JSON, Operation, ResponseSpec, json_response, operation
from trunkline.api.services import OK, Probes, Services
from trunkline.errors import Unavailable
from trunkline.jsontypes import encode
from trunkline.services.operations.audit_log import BEGINNING
from trunkline.stores.port.operations import AuditFilter, AuditKind
from trunkline.system_clock import SystemClock

SYSTEM = "/api/v1/system"
AUDIT = "/api/v1/audit"
ME = "/api/v1/me"
CACHE = "/api/v1/cache"
METRICS_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_ALIVE = encode(Liveness(status=OK))


class AuditParameters(TextPageParameters, frozen=True, kw_only=True):
    who: (
        Annotated[str, Meta(description="Return only changes made with the API key of this name.")] | None
    ) = None
    kind: Annotated[AuditKind, Meta(description="Return only changes of this kind of resource.")] | None = (
        None
    )
    subject: (
        Annotated[str, Meta(description="Return only changes of this resource: an id or a name.")] | None
    ) = None


class ExportAuditParameters(Parameters, frozen=True, kw_only=True):
    who: (
        Annotated[str, Meta(description="Return only changes made with the API key of this name.")] | None
    ) = None
    kind: Annotated[AuditKind, Meta(description="Return only changes of this kind of resource.")] | None = (
        None
    )
    subject: (
        Annotated[str, Meta(description="Return only changes of this resource: an id or a name.")] | None
    ) = None
    since: (
        Annotated[datetime, Meta(tz=True, description="Return only entries written at or after this time.")]
        | None
    ) = None
    follow: Annotated[
        bool, Meta(description="`true` keeps the response open and sends new entries as they are written.")
    ] = False


class ClearCacheParameters(Parameters, frozen=True, kw_only=True):
    workflow: (
        Annotated[str, Meta(description="Delete only outputs of steps of the workflow with this name.")]
        | None
    ) = None
    agent: Annotated[str, Meta(description="Delete only outputs of steps that name this agent.")] | None = (
        None
    )


class ProbeRoutes:
    """The endpoints of every process, whatever its roles."""

    def __init__(self, probes: Probes) -> None:
        self._probes = probes

    async def livez(self, _request: Request) -> Response:
        """Check whether the process is running. Dependencies are not checked."""
        return Response(_ALIVE, media_type=JSON)

    async def readyz(self, request: Request) -> Response:
        """Check whether the process and its dependencies are ready for work."""
        dependencies = await self._probes.readiness()
        missing = {name: reason for name, reason in dependencies.items() if reason != OK}
        if missing:
            # Not logged as an error: this endpoint exists to be called while a dependency is unavailable.
            return problem(
                request,
                KINDS[Unavailable],
                "; ".join(f"{name}: {reason}" for name, reason in sorted(missing.items())),
                "Restore the dependencies that are listed. Trunkline then continues automatically.",
            )
        ready: Readiness = {
            "status": OK,
            "dependencies": dependencies,
            "warnings": self._probes.warnings(),
        }
        return json_response(ready)

    async def health(self, request: Request) -> Response:
        """Check liveness. An alias of `/livez` for probes that were configured for litecone."""
        return await self.livez(request)

    async def health_ready(self, request: Request) -> Response:
        """Check readiness. An alias of `/readyz` for probes that were configured for litecone."""
        return await self.readyz(request)

    async def metrics(self, _request: Request) -> Response:
        """Get the metrics in the Prometheus text format."""
        return Response(await self._probes.metrics(), headers={"Content-Type": METRICS_TEXT})


class SystemRoutes:
    def __init__(self, services: Services) -> None:
        self._services = services

    async def system(self, _request: Request) -> Response:
        """
        Get the state of the system: dependencies, processes, queues and warnings.

        The status is 200 even if the system is not ready. For load balancers, use `/readyz`. Counting stops at 10,000,
        so that the request stays fast. If Kafka does not respond within three seconds, each consumer group has a
        `detail` instead of its lag.
        """
        dependencies = await self._services.readiness()
        snapshot = await self._services.system_monitor.snapshot()
        state = system_state(snapshot, dependencies, self._services.warnings(), SystemClock().now())
        return json_response(state)

    async def audit(self, _request: Request, given: AuditParameters) -> Response:
        """
        List the audit log, newest entry first.

        An entry is written in the same transaction as the change. Starting a run creates no entry: see `started_by` of
        the run.
        """
        found = await self._services.audit.list(
            limit=given.limit + 1,
            before=decode_cursor(given.cursor),
            who=given.who,
            kind=given.kind,
            subject=given.subject,
        )
        entries, next_cursor = page(found, given.limit, lambda entry: entry.id)
        return json_response(page_of([audit_entry(entry) for entry in entries], next_cursor))

    async def export_audit(self, _request: Request, given: ExportAuditParameters) -> Response:
        """
        Export the audit log as JSON lines, oldest entry first.

        Each line is an entry as in the list. With `follow`, an empty line every 15 seconds shows that the connection is
        alive. To continue after an interruption, set `since` to one minute before the `at` of the last entry you have,
        and skip the ids that you know: entries of different processes can appear in another order than their times.
        """
        entries = self._services.audit.follow(
            instant(given.since) or BEGINNING,
            AuditFilter(who=given.who, kind=given.kind, subject=given.subject),
        )
        return AuditStream(self._services.stopping, entries, follow=given.follow)

    async def me(self, request: Request) -> Response:
        """Get the name and the role of the caller's API key."""
        caller: CallerResource = {"name": caller_of(request.scope), "role": role_of(request.scope)}
        return json_response(caller)


class CacheRoutes:
    def __init__(self, services: Services) -> None:
        self._cache = services.cached_outputs

    async def get(self, _request: Request) -> Response:
        """Get the size of the cache of outputs."""
        size = await self._cache.size()
        resource: CacheResource = {"outputs": size.outputs, "size_bytes": size.size_bytes}
        return json_response(resource)

    async def clear(self, _request: Request, given: ClearCacheParameters) -> Response:
        """
        Clear the cache of outputs. Steps with `cache` call their agents again.

        Outputs of completed steps do not change. Steps that are waiting for an equal step that is running still get
        its output.
        """
        cleared: ClearedCacheResource = {
            "cleared": await self._cache.clear(workflow=given.workflow, agent=given.agent)
        }
        return json_response(cleared)


def probe_operations(probes: Probes) -> list[Operation]:
    routes = ProbeRoutes(probes)
    return [
        operation(
            "GET /livez", routes.livez, name="livez", tag="system",
            responses={200: ResponseSpec("The process is running.", Liveness)},
        ),
        operation(
            "GET /readyz", routes.readyz, name="readyz", tag="system",
            responses={200: ResponseSpec("The process is ready for work.", Readiness)},
        ),
        operation(
            "GET /health", routes.health, name="health", tag="system",
            responses={200: ResponseSpec("The process lives.", Liveness)},
        ),
        operation(
            "GET /health/ready", routes.health_ready, name="health_ready", tag="system",
            responses={200: ResponseSpec("Work can be taken.", Readiness)},
        ),
        operation(
            "GET /metrics", routes.metrics, name="metrics", tag="system",
            responses={200: ResponseSpec("The metrics.", content={"text/plain": {"type": "string"}})},
        ),
    ]  # fmt: skip


def system_operations(services: Services) -> list[Operation]:
    routes = SystemRoutes(services)
    return [
        operation(
            f"GET {SYSTEM}", routes.system, name="get_system", tag="system",
            responses={200: ResponseSpec("The state of the system.", SystemState)},
        ),
        operation(
            f"GET {AUDIT}", routes.audit, AuditParameters, name="list_audit", tag="system",
            responses={200: ResponseSpec("A page of entries.", AuditPage)}, problems=(422,),
        ),
        operation(
            f"GET {AUDIT}/export", routes.export_audit, ExportAuditParameters, name="export_audit", tag="system",
            responses={200: ResponseSpec("The entries.", content={JSON_LINES: {"type": "string"}})},
            problems=(422,),
        ),
        operation(
            f"GET {ME}", routes.me, name="get_caller", tag="system",
            responses={200: ResponseSpec("The caller's identity.", CallerResource)},
        ),
    ]  # fmt: skip


def cache_operations(services: Services) -> list[Operation]:
    routes = CacheRoutes(services)
    return [
        operation(
            f"GET {CACHE}", routes.get, name="get_cache", tag="system",
            responses={200: ResponseSpec("The size of the cache.", CacheResource)},
        ),
        operation(
            f"DELETE {CACHE}", routes.clear, ClearCacheParameters, name="clear_cache", tag="system",
            responses={200: ResponseSpec("What was deleted.", ClearedCacheResource)}, problems=(422,),
        ),
    ]  # fmt: skip
