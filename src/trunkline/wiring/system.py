"""
The composition root: settings become objects.

The one module that names a backend.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import structlog
import uvloop
from starlette.types import ASGIApp

from trunkline.api.server import base_url, listen, serving
from trunkline.api.services import OK, Limits, Services
from trunkline.bridge.calls import Calls
from trunkline.bridge.dialects import Dialects
from trunkline.bridge.health import HealthCheck
from trunkline.bridge.invoke import AgentInvoker
from trunkline.bridge.partners import Partners
from trunkline.bridge.transports.base import Transport
from trunkline.bridge.transports.guard import AddressPolicy
from trunkline.bridge.transports.https import HttpTransport
from trunkline.bridge.worker import Answers, Claims
from trunkline.brokers.base import Broker
from trunkline.brokers.memory import MemoryBroker
from trunkline.clock import Clock, SystemClock
from trunkline.errors import Unavailable
from trunkline.executor.driver import Driver
from trunkline.executor.inbox import take_results
from trunkline.executor.retention import Retention
from trunkline.executor.states import RunStates
from trunkline.executor.timers import Timers
from trunkline.ids import new_id
from trunkline.machine.state import RUN_STATUSES
from trunkline.services.commits import CommitLoop
from trunkline.services.directory import AgentDirectory
from trunkline.services.intake import Intake
from trunkline.services.keys import door_keys
from trunkline.services.registry import Registry
from trunkline.services.runs import Runs
from trunkline.services.vault import Vault, load_key
from trunkline.services.watch import Watchers
from trunkline.services.workflows import Workflows
from trunkline.settings import Settings, is_loopback
from trunkline.stores.base import Store, Transaction
from trunkline.stores.sqlite import open_sqlite
from trunkline.telemetry import names
from trunkline.telemetry.logs import configure_logs
from trunkline.telemetry.metrics import Metrics

log = structlog.stdlib.get_logger()


@dataclass(frozen=True, kw_only=True)
class Seams:
    """Where something can be put between two parts: the crash tests end the process there."""

    store: Callable[[Store], Store] = lambda store: store
    broker: Callable[[Broker[Transaction]], Broker[Transaction]] = lambda broker: broker
    transport: Callable[[Transport], Transport] = lambda transport: transport


@dataclass(frozen=True, kw_only=True)
class Embedded:
    """The whole system in one process."""

    app: ASGIApp
    services: Services


@asynccontextmanager
async def open_embedded(
    settings: Settings, *, clock: Clock | None = None, seams: Seams | None = None
) -> AsyncGenerator[Embedded]:
    """Runs everything but the HTTP server while the block runs. At its end calls under way may end first."""
    clock = clock or SystemClock()
    seams = seams or Seams()
    async with AsyncExitStack() as stack:
        store = seams.store(await stack.enter_async_context(open_sqlite(settings.sqlite_path, clock=clock)))
        policy = AddressPolicy(settings.allowed_networks, allow_loopback=True)
        transport = seams.transport(
            await stack.enter_async_context(HttpTransport(policy, max_answer_bytes=settings.max_answer_bytes))
        )
        metrics = Metrics()
        watchers = Watchers()
        stopping = asyncio.Event()
        # A new owner for each start: claims of an earlier one belong to a process that is gone.
        owner = new_id()

        directory = AgentDirectory(store, clock)
        configured = settings.secret_key.get_secret_value() if settings.secret_key is not None else None
        registry = Registry(store, Vault(load_key(configured, settings.key_file)), directory)
        workflows = Workflows(store, directory)

        commits = CommitLoop(store, clock, metrics)
        memory: MemoryBroker[Transaction] = MemoryBroker()
        broker = seams.broker(memory)
        partners = Partners(Dialects(transport, registry, clock), registry)
        calls = Calls(AgentInvoker(transport, partners, directory, clock, metrics))
        calls.on_finish(commits.ring)
        metrics.calls_in_flight.set_function(lambda: calls.in_flight)
        intake = Intake(commits)
        timers = Timers()
        driver = Driver(broker, RunStates(workflows), timers, watchers, metrics)
        claims = Claims(broker, calls, owner, stopping)
        commits.carry([intake, Answers(broker, calls, owner), timers, driver, claims])
        memory.deliver_results_to(take_results)
        memory.deliver_tasks_to(claims.take_tasks)

        services = Services(
            registry=registry,
            workflows=workflows,
            runs=Runs(store, workflows, intake, watchers, clock, metrics),
            check_health=HealthCheck(transport, partners, clock),
            readiness=_Readiness(store, commits),
            metrics=_Rendering(store, metrics),
            keys=await door_keys(
                settings.host,
                needed=settings.require_keys or not is_loopback(settings.host),
                store=store,
                clock=clock,
                metrics=metrics,
            ),
            limits=Limits(max_body_bytes=settings.max_body_bytes),
            stopping=stopping,
        )
        async with store.transaction() as tx:
            await claims.reclaim(tx)
        claims.committed()
        async with asyncio.TaskGroup() as group:
            group.create_task(commits.run())
            group.create_task(watchers.close_at(stopping))
            group.create_task(Retention(store, settings.retention).run(stopping))
            try:
                # The work goes on from here, while the door is still being built.
                app = await asyncio.to_thread(_create_app, services)
                yield Embedded(app=app, services=services)
            finally:
                stopping.set()
                abandoned = await calls.drain(settings.stop_timeout.total_seconds())
                if abandoned:
                    log.warning(names.CALLS_ABANDONED, calls=abandoned)
                commits.stop()


def _create_app(services: Services) -> ASGIApp:
    # Half of the time that a start takes; a process that is killed soon after its start should not spend all its
    # life on it.
    from trunkline.api.app import create_app  # noqa: PLC0415

    return create_app(services)


class _Readiness:
    def __init__(self, store: Store, commits: CommitLoop) -> None:
        self._store = store
        self._commits = commits

    async def __call__(self) -> Mapping[str, str]:
        try:
            await self._store.check()
        except Unavailable as exc:
            return {"store": exc.message}
        return {"store": self._commits.trouble or OK}


class _Rendering:
    """The metrics with the backlog as it is now."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics

    async def __call__(self) -> bytes:
        backlog = await self._store.backlog()
        queues = {
            "inbox": backlog.inbox,
            "timers": backlog.timers,
            "tasks_queued": backlog.queued_tasks,
            "tasks_claimed": backlog.claimed_tasks,
            "tasks_remote": backlog.remote_tasks,
        }
        # A status that no run has is 0, not what it was when the last one had it.
        runs = {status: backlog.runs_by_status.get(status, 0) for status in RUN_STATUSES}
        self._metrics.show_backlog(runs, queues, backlog.without_wake_reason)
        return self._metrics.render()


def run_embedded(settings: Settings) -> int:
    """Runs everything until SIGTERM or Ctrl-C; prints the base URL when it is ready to take work."""
    configure_logs(settings.log_level, settings.log_format)
    uvloop.run(_serve_embedded(settings))
    return 0


def _calm_collector() -> None:
    # What is loaded by now stays for good, and what a run makes is freed without the collector: looking through
    # all of it again and again took a sixth of the time. No collection before it: it would find next to nothing,
    # and hold up for 40 ms whoever has waited for the start.
    gc.freeze()
    gc.set_threshold(20_000, 25, 50)


async def _serve_embedded(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with listen(settings.host, settings.port) as listener:
        async with open_embedded(settings) as system, serving(system.app, listener):
            url = base_url(listener)
            log.info(names.READY, url=url)
            print(url, flush=True)  # noqa: T201 - the one line on stdout that scripts wait for
            _calm_collector()
            await stop.wait()
            log.info(names.STOPPING)
            system.services.stopping.set()
