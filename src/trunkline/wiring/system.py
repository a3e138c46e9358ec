"""
A process of the system, from its start to its stop, without its HTTP server.

It has what runs next to the commit loops, and the order in which everything ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from trunkline.api.services import Probes, RequestLimits, Services
from trunkline.clock import Clock
from trunkline.services.messaging.start_commands import StartCommandConsumer
from trunkline.services.operations.process_heartbeat import ProcessHeartbeat
from trunkline.services.security.api_keys import ApiKeyLookup, keys_for_listener
from trunkline.settings import Settings, is_loopback
from trunkline.wiring.event_sources import SourceConsumers
from trunkline.wiring.interceptors import Interceptors
from trunkline.wiring.messaging import MemoryMessaging, Messaging
from trunkline.wiring.probes import MetricsPage, ReadinessProbe
from trunkline.wiring.process_context import ProcessContext, open_process_context
from trunkline.wiring.roles import ALL_ROLES, BridgeRole, ProcessRoles, Role
from trunkline.wiring.services import api_services, system_monitor
from trunkline.wiring.stores import ExportedStore

if TYPE_CHECKING:
    from trunkline.publishing.grpc_binding.server import GrpcPort


@dataclass(frozen=True, kw_only=True)
class System:
    """A process of the system, without its HTTP server."""

    app: ASGIApp
    # Where it has the API.
    services: Services | None
    probes: Probes
    stopping: asyncio.Event

    @property
    def api(self) -> Services:
        if self.services is None:
            raise LookupError("This process has no API.")
        return self.services


@asynccontextmanager
async def open_system(
    settings: Settings,
    roles: Collection[Role] = ALL_ROLES,
    *,
    alone: bool = True,
    clock: Clock | None = None,
    interceptors: Interceptors | None = None,
    messaging_of: Callable[[ProcessContext], Messaging] | None = None,
) -> AsyncGenerator[System]:
    """
    Runs everything but the HTTP server while the block runs. At its end calls under way may end first.

    `alone`: this process is the whole system (`trunkline up`). `messaging_of` replaces the broker of the settings.
    """
    interceptors = interceptors or Interceptors()
    async with AsyncExitStack() as stack:
        context = await stack.enter_async_context(
            open_process_context(settings, clock, interceptors, alone=alone)
        )
        messaging = _messaging(context, stack) if messaging_of is None else messaging_of(context)
        sources = SourceConsumers(context, stack)
        process_roles = ProcessRoles(context, messaging, sources, roles)
        await process_roles.connect()
        keys = await keys_for_listener(
            settings.host,
            needed=settings.require_keys or not is_loopback(settings.host),
            store=context.store,
            clock=context.clock,
            metrics=context.metrics,
        )
        probes = Probes(
            readiness=ReadinessProbe(context.store, process_roles.loops, messaging),
            metrics=MetricsPage(context.store, context.metrics),
            warnings=lambda: [*messaging.warnings(), *sources.warnings()],
            keys=keys,
            limits=RequestLimits(
                max_body_bytes=settings.max_body_bytes,
                max_body_memory=settings.max_body_memory,
                max_requests_per_key=settings.max_requests_per_key,
                max_rate_per_key=settings.max_rate_per_key,
                max_requests_per_address=settings.max_requests_per_address,
                max_rate_per_address=settings.max_rate_per_address,
            ),
            names=_public_names(settings) if keys is None else None,
            stopping=context.stopping,
        )
        services = None
        if process_roles.intake is not None and process_roles.event_intake is not None:
            services = api_services(
                context,
                process_roles.intake,
                process_roles.event_intake,
                probes,
                system_monitor(context, messaging, sources, process_roles.process, alone=alone),
            )
        grpc = _grpc_port(settings, services)
        async with _working(process_roles, services), _recording_key_uses(context, keys):
            # The work goes on from here, while the HTTP application is still being built.
            app = await asyncio.to_thread(_create_app, services, probes, context)
            async with nullcontext() if grpc is None else grpc.serving(app):
                yield System(app=app, services=services, probes=probes, stopping=context.stopping)


def _grpc_port(settings: Settings, services: Services | None) -> GrpcPort | None:
    """None: no calls over gRPC. Raises `ConfigurationError`."""
    if settings.grpc_port is None or services is None:
        return None
    from trunkline.publishing.grpc_binding.server import CertificateFiles, GrpcPort  # noqa: PLC0415 - an extra

    own = settings.host if is_loopback(settings.host) else "localhost"
    certificate = settings.tls_cert
    return GrpcPort(
        settings.host,
        settings.grpc_port,
        api_host=f"[{own}]:{settings.port}" if ":" in own else f"{own}:{settings.port}",
        max_body_bytes=settings.max_body_bytes,
        tls=None if certificate is None else CertificateFiles(certificate, settings.tls_key or certificate),
    )


def _public_names(settings: Settings) -> frozenset[str]:
    return frozenset({urlsplit(settings.public_url).hostname or ""} if settings.public_url else ())


@asynccontextmanager
async def _working(process_roles: ProcessRoles, services: Services | None) -> AsyncGenerator[None]:
    context = process_roles.context
    if isinstance(context.store, ExportedStore):
        async with _reading(process_roles):
            yield
        return
    source = None if services is None else await process_roles.messaging.command_source()
    async with _running(process_roles), asyncio.TaskGroup() as group:
        if services is not None and source is not None:
            commands = StartCommandConsumer(
                source, services.runs, context.store, context.metrics, context.traces, context.changes
            )
            group.create_task(commands.run(context.stopping))
        try:
            yield
        finally:
            context.stopping.set()


def _messaging(context: ProcessContext, stack: AsyncExitStack) -> Messaging:
    if not context.settings.uses_kafka:
        return MemoryMessaging(context.interceptors)
    from trunkline.wiring.kafka_messaging import KafkaMessaging  # noqa: PLC0415 - the library is an extra

    return KafkaMessaging(context, stack)


@asynccontextmanager
async def _running(process_roles: ProcessRoles) -> AsyncGenerator[None]:
    context, bridge = process_roles.context, process_roles.bridge
    if bridge is not None:
        await bridge.begin()
    # In the order of the end: the work, then what carried its messages, then the lease on what was claimed.
    async with (
        _present(process_roles),
        _beating(bridge),
        nullcontext() if bridge is None else bridge.watching(),
        nullcontext() if bridge is None else bridge.callbacks.running(),
        process_roles.messaging.publishing(),
        process_roles.sources.leaving(),
        context.store.listen(process_roles.on_notification),
        asyncio.TaskGroup() as group,
    ):
        for loop in process_roles.loops:
            group.create_task(loop.run())
        group.create_task(context.watchers.close_at(context.stopping))
        if process_roles.executor is not None:
            group.create_task(process_roles.executor.retention.run(context.stopping))
            group.create_task(process_roles.executor.bulk_jobs.run(context.stopping))
        try:
            yield
        finally:
            context.stopping.set()
            if bridge is not None:
                await bridge.drain()
            for loop in process_roles.loops:
                loop.stop()


@asynccontextmanager
async def _reading(process_roles: ProcessRoles) -> AsyncGenerator[None]:
    """Of an exported store: nothing runs, and new work is refused."""
    if process_roles.intake is not None:
        process_roles.intake.refuse_all(process_roles.context.store.transaction)
    if process_roles.event_intake is not None:
        process_roles.event_intake.refuse_all(process_roles.context.store.transaction)
    async with asyncio.TaskGroup() as group:
        group.create_task(process_roles.context.watchers.close_at(process_roles.context.stopping))
        try:
            yield
        finally:
            process_roles.context.stopping.set()


@asynccontextmanager
async def _present(process_roles: ProcessRoles) -> AsyncGenerator[None]:
    context = process_roles.context
    # If one process owns the store, no other process can read it.
    if not context.settings.uses_postgres:
        yield
        return
    async with asyncio.TaskGroup() as group:
        presence = group.create_task(_heartbeat(process_roles).run())
        try:
            yield
        finally:
            presence.cancel()


def _heartbeat(process_roles: ProcessRoles) -> ProcessHeartbeat:
    on_seen = None if process_roles.executor is None else process_roles.wake_share.see
    return ProcessHeartbeat(process_roles.context.store, process_roles.process, on_seen=on_seen)


@asynccontextmanager
async def _beating(bridge: BridgeRole | None) -> AsyncGenerator[None]:
    if bridge is None or bridge.heartbeat is None:
        yield
        return
    async with asyncio.TaskGroup() as group:
        heartbeat = group.create_task(bridge.heartbeat.run())
        try:
            yield
        finally:
            heartbeat.cancel()


@asynccontextmanager
async def _recording_key_uses(context: ProcessContext, keys: ApiKeyLookup | None) -> AsyncGenerator[None]:
    if keys is None or isinstance(context.store, ExportedStore):
        yield
        return
    async with asyncio.TaskGroup() as group:
        recording = group.create_task(keys.record_uses())
        try:
            yield
        finally:
            recording.cancel()


def _create_app(services: Services | None, probes: Probes, context: ProcessContext) -> ASGIApp:
    # Half of the time that a start takes; a process that is killed soon after its start should not spend all its
    # life on it.
    from trunkline.api.app import create_app, create_probe_app  # noqa: PLC0415
    from trunkline.publishing.app import PublishingApp  # noqa: PLC0415
    from trunkline.publishing.cards.pages import GrpcAddress  # noqa: PLC0415

    if services is None:
        return create_probe_app(probes)
    published = PublishingApp(
        services,
        context.store,
        context.metrics,
        public_url=context.settings.public_url,
        clock=context.clock,
        max_wire_bytes=context.settings.max_wire_bytes,
        http_statuses=context.settings.a2a_http_statuses,
        grpc=GrpcAddress(context.settings.grpc_port, context.settings.grpc_public_address),
    )
    return create_app(services, published)
