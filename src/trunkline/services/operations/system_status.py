"""
The status of the system for operators: live processes, queue lengths, warnings, and the cache of outputs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from trunkline.brokers.base import Lag
from trunkline.clock import Clock
from trunkline.errors import Unavailable
from trunkline.services.operations.audit_log import audit_entry
from trunkline.stores.base import Store
from trunkline.stores.port.agents.output_cache import CacheSize
from trunkline.stores.port.operations import Process, Queues, SeenProcess

# Enough to tell a queue that is long from one that grows, and counted in milliseconds.
MAX_COUNTED = 10_000
_MAX_PROCESSES = 200
# Each is one more question to the broker.
_MAX_POOLS = 50
_NEEDED = {
    "executor": "No executor is running, so runs are accepted but make no progress. Start one: trunkline serve "
    "--role executor.",
    "bridge": "No bridge is running, so no agent is called. Start one: trunkline serve --role bridge.",
}

# Of all groups of consumers, those of these pools too; None: nothing travels between processes.
LagsOf: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[Lag] | None]]


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    # `embedded`: one process is the whole system.
    mode: Literal["embedded", "distributed"]
    store: Literal["sqlite", "postgresql"]
    broker: Literal["memory", "kafka"]


class SystemSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The status at one time."""

    this: Process
    setup: Deployment
    # None, both: the store cannot be asked at the moment.
    processes: Sequence[SeenProcess] | None
    queues: Queues | None
    # None without a broker.
    lags: Sequence[Lag] | None
    warnings: list[str]


class SystemMonitor:
    def __init__(self, store: Store, clock: Clock, this: Process, setup: Deployment, lags_of: LagsOf) -> None:
        self._store = store
        self._clock = clock
        self._this = this
        self._setup = setup
        self._lags_of = lags_of

    async def snapshot(self) -> SystemSnapshot:
        """Answers also while the store or the broker is away: that is when people look."""
        try:
            processes = await self._processes()
            queues = await self._store.backlog.queues(MAX_COUNTED)
            pools = await self._pools(processes)
        except Unavailable:
            # Readiness says why, with the same words.
            lags = await self._lags_of(())
            return SystemSnapshot(
                this=self._this, setup=self._setup, processes=None, queues=None, lags=lags, warnings=[]
            )
        lags = await self._lags_of(pools)
        return SystemSnapshot(
            this=self._this,
            setup=self._setup,
            processes=processes,
            queues=queues,
            lags=lags,
            warnings=[*_missing_roles(processes), *_missing_pools(processes, lags or ()), *_waiting(queues)],
        )

    async def _processes(self) -> Sequence[SeenProcess]:
        """This one too, which has not said so yet or, where it alone has the store, never does."""
        others: Sequence[SeenProcess] = ()
        if self._setup.store == "postgresql":
            others = await self._store.processes.page(limit=_MAX_PROCESSES)
            if any(process.id == self._this.id for process in others):
                return others
        seen = SeenProcess(**msgspec.structs.asdict(self._this), seen_at=self._clock.now(), alive=True)
        return [seen, *others]

    async def _pools(self, processes: Collection[SeenProcess]) -> Sequence[str]:
        """The pools of agents, whose tasks may wait for a bridge, and of bridges, whose agents may have left."""
        if self._setup.broker == "memory":
            return ()
        bridges = {process.pool for process in processes if "bridge" in process.roles and process.pool}
        return sorted({*bridges, *await self._store.agents.pools(limit=_MAX_POOLS)})[:_MAX_POOLS]


def _missing_roles(processes: Collection[SeenProcess]) -> Iterator[str]:
    roles = {role for process in processes if process.alive for role in process.roles}
    for role, warning in _NEEDED.items():
        if role not in roles:
            yield warning


def _missing_pools(processes: Collection[SeenProcess], lags: Collection[Lag]) -> Iterator[str]:
    alive = [process.pool for process in processes if process.alive and "bridge" in process.roles]
    for lag in lags:
        # Another warning already says that no bridge is running.
        if not alive or not lag.waiting or lag.group.role != "bridge" or lag.group.pool in alive:
            continue
        whose, start = f"of the pool {lag.group.pool}", f" --pool {lag.group.pool}"
        if lag.group.pool is None:
            whose, start = "without a pool", ""
        yield (
            f"{lag.waiting:,} messages are waiting on {lag.group.topic}, but no bridge {whose} is "
            f"running. Start one: trunkline serve --role bridge{start}."
        )


def _waiting(queues: Queues) -> Iterator[str]:
    if queues.dead_letters:
        yield (
            f"{_number(queues.dead_letters)} messages could not be read or applied. Replay or "
            "delete these dead letters."
        )
    if queues.tasks_without_secret:
        yield (
            f"{_number(queues.tasks_without_secret)} tasks are waiting for agents whose secrets are "
            "not stored here. Set the secrets again (trunkline agents apply)."
        )


def _number(count: int) -> str:
    return f"{count:,}" if count < MAX_COUNTED else f"{count:,} or more"


class CachedOutputs:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def size(self) -> CacheSize:
        return await self._store.output_cache.size()

    async def clear(self, *, workflow: str | None = None, agent: str | None = None) -> int:
        """
        Deletes the outputs of a workflow's steps, or of an agent, or all; how many.

        Steps that wait for an output go on waiting for the step that makes it.
        """
        async with self._store.transaction() as tx:
            cleared = await tx.output_cache.clear(workflow=workflow, agent=agent)
            subject = workflow or agent or "all"
            await tx.audit.put([audit_entry("cache", "clear", subject, outputs=cleared)])
        return cleared
