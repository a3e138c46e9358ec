"""
What is known of agents' moves, at the speed of a dictionary: what a new run is stamped with, and what a stamp means.

Agent events have ids without gaps, and none appears after a greater one has been seen; so what is known up to some id
is known for good, and only what came after it is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

import msgspec
import structlog

from trunkline.agents.migration import MigrationState
from trunkline.agents.migration.sides import MigrationHistory, MigrationRevision
from trunkline.clock import Clock, Instant, after
from trunkline.errors import Unavailable
from trunkline.stores.port.agent_events import AgentEvent
from trunkline.system_clock import SystemClock
from trunkline.telemetry import names

log = structlog.stdlib.get_logger()

# How long after a change elsewhere runs may still be stamped as before it.
FRESH_FOR = timedelta(seconds=2)

_states: msgspec.json.Decoder[MigrationState] = msgspec.json.Decoder(MigrationState)


class MigrationEventReads(Protocol):
    """What this needs of a store."""

    async def last_agent_event(self) -> int: ...

    async def migrations_since(self, after: int) -> list[AgentEvent]: ...


class RoutingTable:
    def __init__(self, store: MigrationEventReads, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._histories: dict[str, MigrationHistory] = {}
        # Everything up to this event is in `_moves`.
        self._known = 0
        self._stale_at = Instant(0)
        self._reading = asyncio.Lock()

    async def current_version(self) -> int:
        """What a run that is accepted now is stamped with: the last event, or one of the last two seconds."""
        if self._clock.now() >= self._stale_at:
            try:
                await self._read_unless(lambda: self._clock.now() < self._stale_at)
            except Unavailable as exc:
                # Nothing can be accepted either, then; and an older stamp is as good.
                log.error(names.STORE_UNAVAILABLE, error=exc.message, fix=exc.fix)
        return self._known

    async def refresh(self) -> None:
        """After a change made here, which the next run is to follow; raises `Unavailable`."""
        async with self._reading:
            await self._read()

    async def migration_at(self, agent_id: str, routing_version: int) -> MigrationRevision | None:
        """How the agent's move stood for a run with this stamp; None: not begun. Raises `Unavailable`."""
        if routing_version > self._known:
            await self._read_unless(lambda: routing_version <= self._known)
        moves = self._histories.get(agent_id)
        return None if moves is None else moves.at(routing_version)

    def latest(self, agent_id: str) -> MigrationRevision | None:
        """As far as it is known here."""
        moves = self._histories.get(agent_id)
        return None if moves is None else moves.last

    def agents_in_rollout(self) -> Sequence[str]:
        """The ids of the agents whose new side is called by runs, as far as it is known here."""
        lasts = ((agent_id, moves.last) for agent_id, moves in self._histories.items())
        return [agent_id for agent_id, last in lasts if last is not None and last.rollout_since]

    async def _read_unless(self, is_known: Callable[[], bool]) -> None:
        async with self._reading:
            # Whoever held the lock may have read it.
            if not is_known():
                await self._read()

    async def _read(self) -> None:
        now = self._clock.now()
        last = await self._store.last_agent_event()
        # Other kinds of events count, too: a stamp is the last of all.
        events = [] if last == self._known else await self._store.migrations_since(self._known)
        for event in events:
            moves = self._histories.setdefault(event.agent_id, MigrationHistory())
            moves.add(event.id, event.agent, _states.decode(event.data))
        self._known = max(self._known, last, *(event.id for event in events))
        self._stale_at = after(now, FRESH_FOR)
