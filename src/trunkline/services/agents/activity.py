"""The recent activity of agents: calls by minute, the last calls, and an overview for lists."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trunkline.agents import Agent
from trunkline.clock import Clock, Instant
from trunkline.services.agents.registry import AgentRegistry
from trunkline.stores.base import AgentLoad, Store
from trunkline.stores.port.agents.activity import AgentMinute, CallPosition, EndedCall, begin_of, minute_of
from trunkline.stores.port.agents.agent_events import Grade

# As long as minutes are kept.
MAX_MINUTES = 24 * 60
# Of a thousand agents at once.
MAX_MINUTES_OF_MANY = 60


class RecentActivity(msgspec.Struct, frozen=True, kw_only=True):
    """The last minutes of an agent; those without a call are left out."""

    begin: Instant
    end: Instant
    minutes: Sequence[AgentMinute]
    last_call: EndedCall | None


class AgentOverview(msgspec.Struct, frozen=True, kw_only=True):
    agent: Agent
    load: AgentLoad
    activity: RecentActivity
    # Of its last check; None: it was never checked.
    grade: Grade | None


class AgentActivityReader:
    def __init__(self, store: Store, registry: AgentRegistry, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock

    async def overviews(self, agents: Sequence[Agent], minutes: int) -> list[AgentOverview]:
        """Of all these agents, with as many questions to the store as of one."""
        names = [agent.name for agent in agents]
        activities = await self._activities(names, minutes)
        loads = await self._store.agents.loads(names)
        grades = await self._store.checks.last_grades([agent.id for agent in agents])
        return [
            AgentOverview(
                agent=agent,
                load=loads[agent.name],
                activity=activities[agent.name],
                grade=grades.get(agent.id),
            )
            for agent in agents
        ]

    async def of(self, name: str, minutes: int) -> RecentActivity:
        """Raises `NotFound`."""
        agent = await self._registry.get(name)
        return (await self._activities([agent.name], minutes))[agent.name]

    async def calls(
        self, name: str, *, limit: int, before: CallPosition | None = None
    ) -> Sequence[EndedCall]:
        """The last attempts on an agent that have ended, newest first. Raises `NotFound`."""
        agent = await self._registry.get(name)
        return await self._store.activity.calls(agent.name, limit=limit, before=before)

    async def _activities(self, names: Sequence[str], minutes: int) -> dict[str, RecentActivity]:
        this = minute_of(self._clock.now())
        since = this - minutes + 1
        found: dict[str, list[AgentMinute]] = {name: [] for name in names}
        for each in await self._store.activity.minutes(since, names):
            found[each.agent].append(each)
        last = await self._store.activity.last_calls(names)
        return {
            name: RecentActivity(
                begin=begin_of(since), end=begin_of(this + 1), minutes=found[name], last_call=last.get(name)
            )
            for name in names
        }
