"""What every role of a process shares."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from trunkline.bridge.dialects import Dialects
from trunkline.bridge.partners import Partners
from trunkline.bridge.tokens import Tokens
from trunkline.bridge.transports.base import Transport
from trunkline.bridge.transports.guard import AddressPolicy
from trunkline.bridge.transports.https import HttpTransport
from trunkline.clock import Clock, SystemClock
from trunkline.services.commits import CommitLoop
from trunkline.services.directory import AgentDirectory
from trunkline.services.hooks import HookKey, Hooks
from trunkline.services.registry import Registry
from trunkline.services.vault import Vault, load_key
from trunkline.services.watch import Watchers
from trunkline.services.workflows import Workflows
from trunkline.settings import Settings
from trunkline.stores.base import Store
from trunkline.stores.blobs import BlobStore
from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.traces import Traces
from trunkline.wiring.blobs import open_blobs
from trunkline.wiring.moved import shut_if_moved
from trunkline.wiring.seams import Seams
from trunkline.wiring.store import open_store
from trunkline.wiring.traces import open_traces


@dataclass(frozen=True, kw_only=True)
class Core:
    settings: Settings
    clock: Clock
    seams: Seams
    store: Store
    metrics: Metrics
    traces: Traces
    transport: Transport
    directory: AgentDirectory
    registry: Registry
    workflows: Workflows
    partners: Partners
    blobs: BlobStore
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
    policy = AddressPolicy(settings.allowed_networks, allow_loopback=alone)
    async with (
        open_store(settings, clock=clock, upgrade=alone) as opened,
        HttpTransport(policy, max_answer_bytes=settings.max_answer_bytes) as https,
        open_traces() as traces,
    ):
        store = await shut_if_moved(seams.store(opened))
        transport = seams.transport(https)
        clock = clock or SystemClock()
        directory = AgentDirectory(store, clock)
        configured = settings.secret_key.get_secret_value() if settings.secret_key is not None else None
        key = load_key(configured, settings.key_file)
        metrics = Metrics()
        registry = Registry(store, Vault(key), directory)
        tokens = Tokens(transport, clock)
        yield Core(
            settings=settings,
            clock=clock,
            seams=seams,
            store=store,
            metrics=metrics,
            traces=traces,
            transport=transport,
            directory=directory,
            registry=registry,
            workflows=Workflows(store, directory),
            blobs=open_blobs(settings),
            partners=Partners(Dialects(transport, registry, clock, tokens), registry, tokens),
            hooks=Hooks(HookKey(key), store, metrics, public_url=settings.public_url),
        )
