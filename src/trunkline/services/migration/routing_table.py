"""
The routing table: the migrations of all agents in memory, by routing version.

A run's routing version is the id of the last agent event that was known when the run was accepted. Event ids have no
gaps, and none appears after a greater one has been seen; so what is known up to some id never changes, and only later
events are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import msgspec
import structlog

from trunkline.agents.migration import MigrationState
from trunkline.agents.migration.routing import MigrationHistory, MigrationRevision
from trunkline.clock import Clock, Instant, after
from trunkline.errors import Unavailable
from trunkline.stores.port.agents.agent_events import AgentEventReads
from trunkline.system_clock import SystemClock
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# How long after a change in another process runs may still get the routing version from before it.
FRESH_FOR = timedelta(seconds=2)

_states: msgspec.json.Decoder[MigrationState] = msgspec.json.Decoder(MigrationState)


class RoutingTable:
    def __init__(self, events: AgentEventReads, clock: Clock | None = None) -> None:
        self._events = events
        self._clock = clock or SystemClock()
        self._histories: dict[str, MigrationHistory] = {}
        # Everything up to this event is in `_histories`.
        self._known = 0
        self._stale_at = Instant(0)
        self._reading = asyncio.Lock()

    async def current_version(self) -> int:
        """The routing version of a run that is accepted now: the last event, or one of the last two seconds."""
        if self._clock.now() >= self._stale_at:
            try:
                await self._read_unless(lambda: self._clock.now() < self._stale_at)
            except Unavailable as exc:
                # Then no run can be accepted either; and an older version is as good.
                log.error(log_events.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
        return self._known

    async def refresh(self) -> None:
        """Called after a change made in this process, so that the next run follows it. Raises `Unavailable`."""
        async with self._reading:
            await self._read()

    async def migration_at(self, agent_id: str, routing_version: int) -> MigrationRevision | None:
        """The agent's migration for a run with this routing version; None: not started. Raises `Unavailable`."""
        if routing_version > self._known:
            await self._read_unless(lambda: routing_version <= self._known)
        history = self._histories.get(agent_id)
        return None if history is None else history.at(routing_version)

    def latest(self, agent_id: str) -> MigrationRevision | None:
        """The last revision that this process knows."""
        history = self._histories.get(agent_id)
        return None if history is None else history.last

    def agents_in_rollout(self) -> Sequence[str]:
        """The ids of the agents whose target is called by runs, as far as this process knows."""
        latest = ((agent_id, history.last) for agent_id, history in self._histories.items())
        return [agent_id for agent_id, last in latest if last is not None and last.rollout_since]

    async def _read_unless(self, is_known: Callable[[], bool]) -> None:
        async with self._reading:
            # Another task may have read it while it held the lock.
            if not is_known():
                await self._read()

    async def _read(self) -> None:
        now = self._clock.now()
        last = await self._events.last_id()
        # Other kinds of events count, too: a routing version is the last event of any kind.
        events = [] if last == self._known else await self._events.migrations_since(self._known)
        for event in events:
            history = self._histories.setdefault(event.agent_id, MigrationHistory())
            history.add(event.id, event.agent, _states.decode(event.data))
        self._known = max(self._known, last, *(event.id for event in events))
        self._stale_at = after(now, FRESH_FOR)
