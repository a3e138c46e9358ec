"""
A process from its start to its end: `trunkline up` and `trunkline serve`.

`up` depends on no other process, so an error at startup ends it. A role depends on a database and a broker that can
start later, or recover: it waits, and says on stderr and at `/readyz` what it waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack

import structlog
import uvloop

from trunkline.api.middleware.startup import StartupApp
from trunkline.api.server import base_url, listen, serving
from trunkline.api.services import OK
from trunkline.errors import ConfigurationError, Unavailable, WrongSchema
from trunkline.serving import stop_signal, tune_garbage_collector
from trunkline.serving.tls import ServerTls
from trunkline.settings import Settings, is_loopback
from trunkline.telemetry import log_events
from trunkline.telemetry.logs import configure_logs
from trunkline.wiring.descriptors import connection_limits, raise_descriptor_limit
from trunkline.wiring.system import ALL_ROLES, Role, System, open_system

log = structlog.stdlib.get_logger()

_RETRY_PAUSE = 1.0


def run_up(settings: Settings) -> int:
    """Everything in one process, until SIGTERM or Ctrl-C; prints the base URL when it is ready to take work."""
    configure_logs(settings.log_level, settings.log_format)
    raise_descriptor_limit()
    uvloop.run(_up(settings))
    return 0


def run_roles(settings: Settings, roles: Collection[Role]) -> int:
    """These roles, until SIGTERM or Ctrl-C; prints the base URL when it is ready to take work."""
    configure_logs(settings.log_level, settings.log_format)
    raise_descriptor_limit()
    uvloop.run(_serve(settings, roles))
    return 0


def server_tls(settings: Settings) -> ServerTls | None:
    """None: plain HTTP. Raises `ConfigurationError`."""
    if settings.tls_cert is None:
        if settings.tls_key is not None:
            raise ConfigurationError(
                "TRUNKLINE_TLS_KEY is set, but TRUNKLINE_TLS_CERT is not.",
                fix="Set TRUNKLINE_TLS_CERT to the certificate's PEM file, or remove TRUNKLINE_TLS_KEY.",
            )
        return None
    return ServerTls(settings.tls_cert, settings.tls_key)


def scheme_of(tls: ServerTls | None) -> str:
    return "http" if tls is None else "https"


async def _up(settings: Settings) -> None:
    stop = stop_signal()
    tls, limits = server_tls(settings), connection_limits(settings)
    with listen(settings.host, settings.port) as listener:
        async with (
            open_system(settings, ALL_ROLES) as system,
            serving(system.app, listener, limits=limits, tls=tls),
        ):
            await _announce_and_wait(base_url(listener, scheme_of(tls)), system, stop)


async def _serve(settings: Settings, roles: Collection[Role]) -> None:
    stop = stop_signal()
    gate = StartupApp(shows_reasons=is_loopback(settings.host))
    tls, limits = server_tls(settings), connection_limits(settings)
    with listen(settings.host, settings.port) as listener:
        async with AsyncExitStack() as stack, serving(gate, listener, limits=limits, tls=tls):
            system = await _open_when_possible(stack, settings, roles, gate, stop)
            if system is None or not await _ready(system, gate, stop):
                return
            gate.switch_to(system.app)
            await _announce_and_wait(base_url(listener, scheme_of(tls)), system, stop)


async def _open_when_possible(
    stack: AsyncExitStack, settings: Settings, roles: Collection[Role], gate: StartupApp, stop: asyncio.Event
) -> System | None:
    """None: asked to stop before it was possible."""
    while not stop.is_set():
        try:
            return await stack.enter_async_context(open_system(settings, roles, alone=False))
        except (Unavailable, WrongSchema) as exc:
            _show_reasons(gate, {"store": exc.message}, exc.fix)
        await _pause(stop)
    return None


async def _ready(system: System, gate: StartupApp, stop: asyncio.Event) -> bool:
    """False: asked to stop before everything was there."""
    while not stop.is_set():
        dependencies = await system.probes.readiness()
        missing = {name: reason for name, reason in dependencies.items() if reason != OK}
        if not missing:
            return True
        _show_reasons(gate, missing, Unavailable.fix)
        await _pause(stop)
    return False


def _show_reasons(gate: StartupApp, missing: Mapping[str, str], fix: str) -> None:
    # Once for each change, not once a second.
    if gate.missing != missing:
        gate.missing = missing
        for dependency, reason in missing.items():
            log.error(log_events.WAITING_FOR_DEPENDENCY, dependency=dependency, reason=reason, fix=fix)


async def _pause(stop: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(_RETRY_PAUSE):
            await stop.wait()
    except TimeoutError:
        return


async def _announce_and_wait(url: str, system: System, stop: asyncio.Event) -> None:
    log.info(log_events.READY, url=url)
    print(url, flush=True)  # noqa: T201 - the one line on stdout that scripts wait for
    tune_garbage_collector()
    await stop.wait()
    log.info(log_events.STOPPING)
    system.stopping.set()
