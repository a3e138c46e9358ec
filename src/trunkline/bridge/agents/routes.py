"""
Whom a task talks to: the agent as the registry has it or, for runs that call its new side, that one.

Everything that concerns a task goes to the same side, on whichever bridge and after every restart: the run's stamp
says which. What is found out about a new side is kept apart from the agent's row, which is the old one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import msgspec

from trunkline.agents import Agent, Dialect
from trunkline.agents.migration import TargetEndpoint
from trunkline.agents.migration.routing import EndpointName, MigrationRevision, target_for
from trunkline.bridge.agents.negotiation import DialectNegotiator, DialectStore
from trunkline.bridge.agents.resolver import AgentResolver
from trunkline.jsontypes import encode
from trunkline.messages import AgentTask
from trunkline.services.migration.routing_table import RoutingTable


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """To one side of an agent."""

    # On the new side with that one's address and protocol.
    agent: Agent
    resolver: AgentResolver
    side: EndpointName = "old"
    # How the agent's move stood for the run, where that gave the agent two sides.
    migration: MigrationRevision | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """For the record of what was sent this way."""
        if self.migration is None:
            return ()
        return (f"To the {self.side} side of the agent: for this run its migration is at {self._stage}.",)

    @property
    def _stage(self) -> str:
        return "" if self.migration is None else self.migration.state.stage.replace("_", " ")


class AgentRouter:
    """Used with `async with` it ends what it has opened for new sides when it is left."""

    def __init__(
        self,
        resolver: AgentResolver,
        routes: RoutingTable,
        open_negotiator: Callable[[DialectStore], DialectNegotiator],
        open_resolver: Callable[[DialectNegotiator], AgentResolver],
    ) -> None:
        self._resolver = resolver
        self._routes = routes
        self._open_negotiator = open_negotiator
        self._open_resolver = open_resolver
        self._target_resolvers: dict[tuple[str, bytes], AgentResolver] = {}
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._closing.aclose()

    def source(self, agent: Agent) -> Route:
        """To an agent that did not move when the run was accepted."""
        return Route(agent=agent, resolver=self._resolver)

    async def route_of(self, agent: Agent, task: AgentTask) -> Route:
        """Raises `Unavailable`."""
        moment = await self._routes.migration_at(agent.id, task.routes)
        if moment is None or not (moment.is_open or _is_outdated(agent, moment)):
            return self.source(agent)
        target = target_for(moment.state, task.run_id, agent.id)
        if target is None:
            return Route(agent=agent, resolver=self._resolver, migration=moment)
        return self.target(agent, target, moment)

    def target(self, agent: Agent, target: TargetEndpoint, moment: MigrationRevision) -> Route:
        """To the new side, whether the run calls it or not."""
        moved = _target_agent(agent, target)
        key = (agent.id, encode(target))
        resolver = self._target_resolvers.get(key)
        if resolver is None:
            negotiator = self._open_negotiator(_TargetDialectStore(moved))
            self._closing.push_async_exit(negotiator)
            resolver = self._target_resolvers[key] = self._open_resolver(negotiator)
        return Route(agent=moved, resolver=resolver, side="new", migration=moment)


class _TargetDialectStore:
    """What was found out about one new side, for as long as this process lives."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def get(self, name_or_id: str) -> Agent:
        del name_or_id
        return self._agent

    async def record_dialect(self, agent: Agent, dialect: Dialect | None) -> bool:
        self._agent = msgspec.structs.replace(agent, dialect=dialect)
        return True


def _is_outdated(agent: Agent, moment: MigrationRevision) -> bool:
    """Whether this is the agent as it was before its move was finished: a row is read every two seconds only."""
    return agent.version < moment.state.row_version


def _target_agent(agent: Agent, target: TargetEndpoint) -> Agent:
    return msgspec.structs.replace(
        agent,
        url=target.url,
        protocol=target.protocol,
        protocol_config=target.protocol_config,
        dialect=None,
        # Where the old side is to be called instead of where its card says.
        options=msgspec.structs.replace(agent.options, endpoint_override=None),
    )
