"""What every role of a process shares."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from trunkline.bridge.batches import Batches
from trunkline.bridge.dialects import Dialects
from trunkline.bridge.partners import Partners
from trunkline.bridge.sides import Sides
from trunkline.bridge.tokens import Tokens
from trunkline.clock import Clock
from trunkline.services.commits import CommitLoop
from trunkline.services.directory import AgentDirectory
from trunkline.services.drift import Drifts
from trunkline.services.hooks import HookKey, Hooks
from trunkline.services.profile_folder import load_profiles
from trunkline.services.registry import Registry
from trunkline.services.routes import Routes
from trunkline.services.secrets import Secrets
from trunkline.services.vault import Vault, load_key
from trunkline.services.watch import Watchers
from trunkline.services.workflows import Workflows
from trunkline.settings import Settings
from trunkline.stores.base import Store
from trunkline.stores.blobs import BlobStore
from trunkline.system_clock import SystemClock
from trunkline.telemetry import names
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.traces import Traces
from trunkline.transports.base import Transport
from trunkline.transports.guard import AddressPolicy
from trunkline.wiring.blobs import open_blobs
from trunkline.wiring.moved import shut_if_moved
from trunkline.wiring.seams import Seams
from trunkline.wiring.store import open_store
from trunkline.wiring.traces import open_traces
from trunkline.wiring.transports import open_transports

log = structlog.stdlib.get_logger()


@dataclass(frozen=True, kw_only=True)
class Core:
    settings: Settings
    clock: Clock
    seams: Seams
    store: Store
    metrics: Metrics
    traces: Traces
    transport: Transport
    batches: Batches
    directory: AgentDirectory
    registry: Registry
    drifts: Drifts
    secrets: Secrets
    workflows: Workflows
    partners: Partners
    tokens: Tokens
    routes: Routes
    sides: Sides
    blobs: BlobStore | None
    hooks: Hooks
    watchers: Watchers = field(default_factory=Watchers)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def loop(self) -> CommitLoop:
        return CommitLoop(self.store, self.clock, self.metrics, gathers=self.settings.uses_kafka)


@asynccontextmanager
async def open_core(
    settings: Settings, clock: Clock | None, seams: Seams, *, alone: bool
) -> AsyncGenerator[Core]:
    """`alone`: this process is the whole system, so agents on its own machine are meant."""
    policy = _address_policy(settings, alone=alone)
    load_profiles(settings.profiles)
    async with (
        open_store(settings, clock=clock, upgrade=alone) as opened,
        open_transports(settings, policy) as transports,
        open_traces() as traces,
    ):
        store = await shut_if_moved(seams.store(opened))
        transport = seams.transport(transports)
        clock = clock or SystemClock()
        directory = AgentDirectory(store, clock)
        configured = settings.secret_key.get_secret_value() if settings.secret_key is not None else None
        key = load_key(configured, settings.key_file)
        metrics = Metrics()
        vault = Vault(key)
        drifts = Drifts(store, metrics)
        registry = Registry(store, vault, directory, drifts)
        tokens = Tokens(transport, clock)
        routes = Routes(store, clock)
        async with (
            Batches(transport) as batches,
            Dialects(transport, registry, clock, tokens) as dialects,
            Sides(
                partners := Partners(dialects, registry, tokens),
                routes,
                lambda book: Dialects(transport, book, clock, tokens),
                lambda found: Partners(found, registry, tokens),
            ) as sides,
        ):
            yield Core(
                settings=settings,
                clock=clock,
                seams=seams,
                store=store,
                metrics=metrics,
                traces=traces,
                transport=transport,
                batches=batches,
                directory=directory,
                registry=registry,
                drifts=drifts,
                secrets=Secrets(store, vault, clock),
                workflows=Workflows(store, directory),
                blobs=open_blobs(settings),
                partners=partners,
                tokens=tokens,
                routes=routes,
                sides=sides,
                hooks=Hooks(HookKey(key), store, metrics, public_url=settings.public_url),
            )


def _address_policy(settings: Settings, *, alone: bool) -> AddressPolicy:
    """What may be called beside public addresses; the log says so, for nobody should find it out by surprise."""
    listed = settings.allowed_networks
    policy = AddressPolicy(listed, allow_loopback=alone, allow_private=alone and not listed)
    beside = (*(("loopback",) if alone else ()), *(listed or (("private networks",) if alone else ())))
    if beside:
        log.info(
            names.ADDRESSES_ALLOWED, beside_public_ones=", ".join(beside), set_by="TRUNKLINE_ALLOWED_NETWORKS"
        )
    return policy
