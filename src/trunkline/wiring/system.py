"""
A process of the system: its roles, each with its parts of a commit loop.

Where messages are handed over in the publisher's transaction all roles share one loop. Otherwise the API shares the
executor's, so that a run's first decision is in the commit that accepts it, and the bridge has its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Literal
from urllib.parse import urlsplit

import structlog
from starlette.types import ASGIApp

from trunkline import __version__
from trunkline.api.services import Limits, Probes, Services
from trunkline.bridge.activity import ActivityRecorder
from trunkline.bridge.agents.inspection import AgentHealthCheck, CardViewer
from trunkline.bridge.breaker import BreakerObserver
from trunkline.bridge.calls.active_calls import ActiveCalls
from trunkline.bridge.calls.agent_call import AgentCaller
from trunkline.bridge.calls.attachments import Attachments
from trunkline.bridge.calls.client import AgentClient, CallLimits
from trunkline.bridge.calls.detached import AgentTestCaller, DetachedCaller
from trunkline.bridge.commit_parts import AnswerWriter, TaskClaimer
from trunkline.bridge.heartbeat import Heartbeat
from trunkline.bridge.migration.rollback import RollbackWatch
from trunkline.bridge.migration.shadow_calls import ShadowCalls
from trunkline.clock import Clock
from trunkline.executor.children import Children
from trunkline.executor.driver import Driver
from trunkline.executor.retention import Retention
from trunkline.executor.states import RunStates
from trunkline.executor.timers import Timers
from trunkline.id_generation import new_id
from trunkline.services.activity import Activities
from trunkline.services.audit import Audit
from trunkline.services.checks import Checks
from trunkline.services.commands import Commands
from trunkline.services.commits import CommitLoop, Part
from trunkline.services.dead_letters import DeadLetters
from trunkline.services.inbox import Inbox
from trunkline.services.intake import Intake
from trunkline.services.keys import door_keys
from trunkline.services.migration import Migrations
from trunkline.services.migration_plan import MigrationPlan
from trunkline.services.oversight import Oversight, Setup
from trunkline.services.presence import PROCESS_NAME, Presence
from trunkline.services.runs import Runs
from trunkline.services.trials import AgentTestCalls
from trunkline.settings import Settings, is_loopback
from trunkline.stores.base import InboxFilled, Notice, RunsChanged, TasksRung
from trunkline.stores.port.operations import Process
from trunkline.telemetry import names
from trunkline.wiring.checks import AgentChecks
from trunkline.wiring.core import Core, open_core
from trunkline.wiring.moved import MovedStore
from trunkline.wiring.probes import Readiness, Rendering
from trunkline.wiring.seams import Seams
from trunkline.wiring.wires import MemoryWires, Wires

log = structlog.stdlib.get_logger()

Role = Literal["api", "executor", "bridge"]
ALL_ROLES: frozenset[Role] = frozenset({"api", "executor", "bridge"})


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


class _Bridge:
    """The bridge's parts, and how it starts and stops."""

    def __init__(self, core: Core, wires: Wires, loop: CommitLoop) -> None:
        # A new owner for each start: claims of an earlier one belong to a process that is gone.
        self._owner = new_id()
        self._core = core
        self._loop = loop
        shared = core.settings.uses_postgres
        self.heartbeat = Heartbeat(core.store, self._owner, core.seams.pace.lease) if shared else None
        client = _agent_client(core)
        attachments = Attachments(core.blobs, core.settings.max_inline_bytes)
        self._calls = calls = ActiveCalls(
            AgentCaller(client, core.agent_routes, core.directory, core.clock, core.metrics, attachments)
        )
        calls.on_update(loop.ring)
        core.hooks.on_ring(loop.ring)
        core.metrics.calls_in_flight.set_function(lambda: calls.in_flight)
        # Where everything is in one process, there is nobody else for the tasks of a pool.
        pools = (core.settings.pool,) if core.settings.uses_kafka else None
        self.claims = TaskClaimer(
            wires.broker, calls, self._owner, core.stopping, pools=pools, heartbeat=self.heartbeat
        )
        beside = DetachedCaller(client, core.clock)
        self._shadow = ShadowCalls(beside, core.agent_routes, core.store, core.clock, core.metrics)
        self._side_watch = RollbackWatch(
            core.routing, core.store, _migrations(core).roll_back_if, core.metrics
        )
        self.answers = AnswerWriter(
            wires.broker,
            calls,
            self._owner,
            ActivityRecorder(self._owner),
            BreakerObserver(core.metrics),
            self._side_watch,
            self._shadow,
        )

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """What goes on beside the calls ends with the block, after the last turn."""
        await self._side_watch.begin()
        try:
            yield
        finally:
            await self._shadow.close()
            await self._side_watch.close()

    async def begin(self) -> None:
        if self.heartbeat is not None:
            await self.heartbeat.beat()
            return
        async with self._core.store.transaction() as tx:
            await self.claims.reclaim(tx)
        self.claims.committed()

    async def drain(self) -> None:
        until = monotonic() + self._core.settings.stop_timeout.total_seconds()
        with suppress(TimeoutError):
            async with asyncio.timeout(until - monotonic()):
                # A turn that had begun may have claimed something; the next one claims nothing more.
                await self._loop.turned()
        abandoned = await self._calls.drain(max(until - monotonic(), 0))
        if abandoned:
            log.warning(names.CALLS_ABANDONED, calls=abandoned)


class _Executor:
    def __init__(self, core: Core, wires: Wires) -> None:
        timers = Timers()
        driver = Driver(
            wires.broker,
            RunStates(core.workflows),
            Children(core.workflows, core.metrics),
            timers,
            core.watchers,
            core.metrics,
            traces=core.traces,
            events_topic=core.settings.events_topic if core.settings.uses_kafka else "",
            reply_timeout=core.settings.reply_timeout or None,
        )
        self.parts: list[Part] = [timers, driver]
        self.retention = Retention(
            core.store, core.settings.retention, core.blobs, keep_audit=core.settings.audit_retention
        )


class _Assembly:
    """The roles of one process, put together."""

    def __init__(self, core: Core, wires: Wires, roles: Collection[Role]) -> None:
        self.core = core
        self.wires = wires
        self.front = core.loop()
        self._back = self.front if wires.broker.hands_over_in_transaction else core.loop()
        self.intake = Intake(self.front) if "api" in roles else None
        self.executor = _Executor(core, wires) if "executor" in roles else None
        self.bridge = _Bridge(core, wires, self._back) if "bridge" in roles else None
        self.loops: list[CommitLoop] = []
        self.process = Process(
            id=new_id(),
            name=PROCESS_NAME,
            roles=tuple(sorted(roles)),
            pool=core.settings.pool,
            version=__version__,
            started_at=core.clock.now(),
        )

    async def connect(self) -> None:
        """Gives the loops their parts, in the order in which one's output is the next one's input."""
        received: list[Part] = [] if self.intake is None else [self.intake]
        decisions: list[Part] = []
        if self.executor is not None:
            received += await self.wires.parts_of_executor(self.front)
            decisions = self.executor.parts
        tasks: list[Part] = []
        claims: list[Part] = []
        if self.bridge is not None:
            tasks = [*await self.wires.parts_of_bridge(self.bridge.claims.take_tasks, self._back)]
            tasks.append(self.bridge.answers)
            claims = [self.bridge.claims]
        last = await self.wires.last_parts()
        if self._back is self.front:
            self._carry(self.front, [*received, *tasks, *decisions, *claims], last)
        else:
            self._carry(self.front, [*received, *decisions], last)
            self._carry(self._back, [*tasks, *claims], last)

    def _carry(self, loop: CommitLoop, parts: Sequence[Part], last: Sequence[Part]) -> None:
        if parts:
            loop.carry([*parts, *last])
            self.loops.append(loop)

    def hear(self, notice: Notice) -> None:
        match notice:
            case InboxFilled():
                # Perhaps a run that was begun, which has not moved yet.
                self.core.watchers.ring_all()
                if self.executor is not None:
                    self.front.ring()
            case TasksRung():
                if self.bridge is not None:
                    self._back.ring()
            case RunsChanged(run_ids, ended):
                self.core.watchers.ring(run_ids, ended)


@asynccontextmanager
async def open_system(
    settings: Settings,
    roles: Collection[Role] = ALL_ROLES,
    *,
    alone: bool = True,
    clock: Clock | None = None,
    seams: Seams | None = None,
) -> AsyncGenerator[System]:
    """
    Runs everything but the HTTP server while the block runs. At its end calls under way may end first.

    `alone`: this process is the whole system (`trunkline up`).
    """
    seams = seams or Seams()
    async with AsyncExitStack() as stack:
        core = await stack.enter_async_context(open_core(settings, clock, seams, alone=alone))
        wires = _wires(core, stack)
        assembly = _Assembly(core, wires, roles)
        await assembly.connect()
        keys = await door_keys(
            settings.host,
            needed=settings.require_keys or not is_loopback(settings.host),
            store=core.store,
            clock=core.clock,
            metrics=core.metrics,
        )
        probes = Probes(
            readiness=Readiness(core.store, assembly.loops, wires),
            metrics=Rendering(core.store, core.metrics),
            warnings=wires.warnings,
            keys=keys,
            names=_public_names(settings) if keys is None else None,
            stopping=core.stopping,
        )
        services = None
        if assembly.intake is not None:
            services = _services(
                core, assembly.intake, probes, _oversight(core, wires, assembly.process, alone=alone)
            )
        async with _working(assembly, services):
            # The work goes on from here, while the door is still being built.
            app = await asyncio.to_thread(_create_app, services, probes)
            yield System(app=app, services=services, probes=probes, stopping=core.stopping)


def _public_names(settings: Settings) -> frozenset[str]:
    return frozenset({urlsplit(settings.public_url).hostname or ""} if settings.public_url else ())


@asynccontextmanager
async def _working(assembly: _Assembly, services: Services | None) -> AsyncGenerator[None]:
    core = assembly.core
    if isinstance(core.store, MovedStore):
        async with _reading(assembly):
            yield
        return
    source = None if services is None else await assembly.wires.source_of_commands()
    async with _running(assembly), asyncio.TaskGroup() as group:
        if services is not None and source is not None:
            commands = Commands(source, services.runs, core.store, core.metrics, core.traces)
            group.create_task(commands.run(core.stopping))
        try:
            yield
        finally:
            core.stopping.set()


def _wires(core: Core, stack: AsyncExitStack) -> Wires:
    if not core.settings.uses_kafka:
        return MemoryWires(core.seams)
    from trunkline.wiring.kafka import KafkaWires  # noqa: PLC0415 - the library is an extra

    return KafkaWires(core, stack)


def _agent_client(core: Core) -> AgentClient:
    return AgentClient(
        core.transport,
        core.batches,
        core.clock,
        core.metrics,
        manners=CallLimits(
            max_stream_seconds=core.settings.line_timeout.total_seconds(),
            max_answer_bytes=core.settings.max_answer_bytes,
            max_wire_bytes=core.settings.max_wire_bytes,
        ),
        traces=core.traces,
        pushes=core.hooks,
        secrets=core.secrets,
    )


def _migrations(core: Core) -> Migrations:
    check = AgentChecks(core.transport, core.agent_resolver, core.tokens, core.store, core.clock)

    return Migrations(core.store, core.directory, core.routing, core.drifts, check, core.metrics)


def _oversight(core: Core, wires: Wires, process: Process, *, alone: bool) -> Oversight:
    setup = Setup(
        mode="embedded" if alone and not core.settings.uses_kafka else "distributed",
        store="postgresql" if core.settings.uses_postgres else "sqlite",
        broker="kafka" if core.settings.uses_kafka else "memory",
    )
    return Oversight(core.store, core.clock, process, setup, wires.lags_of)


def _services(core: Core, intake: Intake, probes: Probes, oversight: Oversight) -> Services:
    return Services(
        registry=core.registry,
        secrets=core.secrets,
        workflows=core.workflows,
        runs=Runs(core.store, core.workflows, intake, core.watchers, core.clock, core.metrics, core.routing),
        blobs=core.blobs,
        inbox=Inbox(core.store, core.workflows),
        hooks=core.hooks,
        traces=core.traces,
        dead_letters=DeadLetters(core.store, can_replay=core.settings.uses_kafka),
        checks=Checks(
            core.store,
            core.registry,
            core.drifts,
            AgentChecks(core.transport, core.agent_resolver, core.tokens, core.store, core.clock),
        ),
        activities=Activities(core.store, core.registry, core.clock),
        trials=AgentTestCalls(
            core.registry,
            AgentTestCaller(DetachedCaller(_agent_client(core), core.clock), core.agent_routes, core.clock),
        ),
        look_at_card=CardViewer(core.transport, core.agent_resolver, core.tokens, core.clock),
        migrations=_migrations(core),
        migration_plan=MigrationPlan(core.store),
        oversight=oversight,
        audit=Audit(core.store),
        check_health=AgentHealthCheck(
            core.transport, core.agent_resolver, core.clock, core.settings.stdio_commands
        ),
        refresh_dialect=core.agent_resolver.refresh,
        readiness=probes.readiness,
        metrics=probes.metrics,
        warnings=probes.warnings,
        keys=probes.keys,
        names=probes.names,
        limits=Limits(max_body_bytes=core.settings.max_body_bytes),
        topics=core.settings.topics,
        ui_folder=core.settings.ui_folder,
        stopping=core.stopping,
    )


@asynccontextmanager
async def _running(assembly: _Assembly) -> AsyncGenerator[None]:
    core, bridge = assembly.core, assembly.bridge
    if bridge is not None:
        await bridge.begin()
    # In the order of the end: the work, then what carried its messages, then the lease on what was claimed.
    async with (
        _present(assembly),
        _beating(bridge),
        nullcontext() if bridge is None else bridge.watching(),
        assembly.wires.carrying(),
        core.store.listen(assembly.hear),
        asyncio.TaskGroup() as group,
    ):
        for loop in assembly.loops:
            group.create_task(loop.run())
        group.create_task(core.watchers.close_at(core.stopping))
        if assembly.executor is not None:
            group.create_task(assembly.executor.retention.run(core.stopping))
        try:
            yield
        finally:
            core.stopping.set()
            if bridge is not None:
                await bridge.drain()
            for loop in assembly.loops:
                loop.stop()


@asynccontextmanager
async def _reading(assembly: _Assembly) -> AsyncGenerator[None]:
    """Nothing runs where everything has moved away."""
    if assembly.intake is not None:
        assembly.intake.refuse_all(assembly.core.store.transaction)
    async with asyncio.TaskGroup() as group:
        group.create_task(assembly.core.watchers.close_at(assembly.core.stopping))
        try:
            yield
        finally:
            assembly.core.stopping.set()


@asynccontextmanager
async def _present(assembly: _Assembly) -> AsyncGenerator[None]:
    core = assembly.core
    # Where one process owns the store, nobody else could look.
    if not core.settings.uses_postgres:
        yield
        return
    async with asyncio.TaskGroup() as group:
        presence = group.create_task(Presence(core.store, assembly.process).run())
        try:
            yield
        finally:
            presence.cancel()


@asynccontextmanager
async def _beating(bridge: _Bridge | None) -> AsyncGenerator[None]:
    if bridge is None or bridge.heartbeat is None:
        yield
        return
    async with asyncio.TaskGroup() as group:
        beats = group.create_task(bridge.heartbeat.run())
        try:
            yield
        finally:
            beats.cancel()


def _create_app(services: Services | None, probes: Probes) -> ASGIApp:
    # Half of the time that a start takes; a process that is killed soon after its start should not spend all its
    # life on it.
    from trunkline.api.app import create_app, create_probe_app  # noqa: PLC0415

    return create_probe_app(probes) if services is None else create_app(services)
