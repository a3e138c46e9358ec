"""
A cache of agents by name, which the bridge reads before every call.

A change made in this process is visible at once, one made by another process after at most two seconds.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from trunkline.agents import Agent
from trunkline.clock import Clock, Instant, after
from trunkline.stores.port.agents.registry import AgentReads
from trunkline.system_clock import SystemClock

# Short enough that an operator does not notice, long enough that a busy agent costs no reads.
FRESH_FOR = timedelta(seconds=2)
# Names come from workflows, so they are few; this only bounds what a flood of wrong ones can take.
_MAX_ENTRIES = 10_000


class _CachedAgent(NamedTuple):
    agent: Agent | None
    stale_at: Instant


class AgentCache:
    def __init__(self, agents: AgentReads, clock: Clock | None = None) -> None:
        self._agents = agents
        self._clock = clock or SystemClock()
        self._entries: dict[str, _CachedAgent] = {}
        self._changes = 0

    def known(self, name: str) -> Agent | None:
        """The agent of that name, if it need not be looked for."""
        entry = self._entries.get(name)
        return entry.agent if entry is not None and self._clock.now() < entry.stale_at else None

    async def get(self, name: str) -> Agent | None:
        """The agent of that name. That there is none is remembered too."""
        now = self._clock.now()
        entry = self._entries.get(name)
        if entry is not None and now < entry.stale_at:
            return entry.agent
        changes = self._changes
        agent = await self._agents.get(name)
        # Something was written while we read: what we have may be of before.
        if changes == self._changes:
            if len(self._entries) >= _MAX_ENTRIES:
                self._entries.clear()
            self._entries[name] = _CachedAgent(agent, after(now, FRESH_FOR))
        return agent

    def forget(self, *names: str) -> None:
        """Called after each write, with the names it touched."""
        self._changes += 1
        for name in names:
            self._entries.pop(name, None)
