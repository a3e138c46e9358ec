"""
Where the calls of a task go: to the agent as it is registered or, while it migrates, to the target of its migration.

Everything that concerns a task goes to the same endpoint, on every bridge and after every restart: the run's routing
version decides it. What is negotiated with a target is kept apart from the agent's row, which describes the source.
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
    """To the source or the target of an agent."""

    # For the target, with the URL and the protocol of the target.
    agent: Agent
    resolver: AgentResolver
    endpoint: EndpointName = "old"
    # The migration as it was when the run was accepted; None: the agent had one endpoint.
    migration: MigrationRevision | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """For the wire record of what was sent on this route."""
        if self.migration is None:
            return ()
        return (
            f"To the {self.endpoint} endpoint of the agent: for this run its migration stage is {self._stage}.",
        )

    @property
    def _stage(self) -> str:
        return "" if self.migration is None else self.migration.state.stage.replace("_", " ")


class AgentRouter:
    """Used with `async with`, it closes at the end what it has opened for targets."""

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
        """To an agent that was not migrating when the run was accepted."""
        return Route(agent=agent, resolver=self._resolver)

    async def route_of(self, agent: Agent, task: AgentTask) -> Route:
        """Raises `Unavailable`."""
        revision = await self._routes.migration_at(agent.id, task.routes)
        if revision is None or not (revision.is_open or _is_outdated(agent, revision)):
            return self.source(agent)
        target = target_for(revision.state, task.run_id, agent.id)
        if target is None:
            return Route(agent=agent, resolver=self._resolver, migration=revision)
        return self.target(agent, target, revision)

    def target(self, agent: Agent, target: TargetEndpoint, revision: MigrationRevision) -> Route:
        """To the target, whether or not the run calls it."""
        target_agent = _target_agent(agent, target)
        key = (agent.id, encode(target))
        resolver = self._target_resolvers.get(key)
        if resolver is None:
            negotiator = self._open_negotiator(_TargetDialectStore(target_agent))
            self._closing.push_async_exit(negotiator)
            resolver = self._target_resolvers[key] = self._open_resolver(negotiator)
        return Route(agent=target_agent, resolver=resolver, endpoint="new", migration=revision)


class _TargetDialectStore:
    """The dialect of one target, for as long as this process runs."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def get(self, name_or_id: str) -> Agent:
        del name_or_id
        return self._agent

    async def record_dialect(self, agent: Agent, dialect: Dialect | None) -> bool:
        self._agent = msgspec.structs.replace(agent, dialect=dialect)
        return True

    async def has_answered_in(self, agent: Agent, dialect: Dialect) -> bool:
        """The target's configuration says how it gets its input; its migration compares what it answers."""
        del agent, dialect
        return False


def _is_outdated(agent: Agent, revision: MigrationRevision) -> bool:
    """Whether this is the agent from before its migration finished: rows are cached for two seconds."""
    return agent.version < revision.state.row_version


def _target_agent(agent: Agent, target: TargetEndpoint) -> Agent:
    return msgspec.structs.replace(
        agent,
        url=target.url,
        protocol=target.protocol,
        protocol_config=target.protocol_config,
        dialect=None,
        # It is for the source alone.
        options=msgspec.structs.replace(agent.options, endpoint_override=None),
    )
