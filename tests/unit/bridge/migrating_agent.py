"""A store with an agent that moves, and the ends of calls to its two sides."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
from tests.unit.bridge.agents.test_resolver import URL, FakeCardServer

from trunkline.agents import Agent
from trunkline.agents.migration import (
    DEFAULT_LIMITS,
    MigrationStage,
    MigrationState,
    RolloutLimits,
    TargetEndpoint,
)
from trunkline.bridge.agents.negotiation import DialectNegotiator
from trunkline.bridge.agents.resolver import AgentResolver
from trunkline.bridge.agents.routes import AgentRouter, Route
from trunkline.bridge.agents.tokens import TokenProvider
from trunkline.bridge.calls.results import CallResult
from trunkline.clock import Instant
from trunkline.id_generation import new_id
from trunkline.jsontypes import Json, encode
from trunkline.messages import AgentResult, AgentTask, ResultStatus, StepError, TaskKey
from trunkline.services.agents.cache import AgentCache
from trunkline.services.agents.registry import AgentRegistry, AgentSpec
from trunkline.services.migration.routing_table import RoutingTable
from trunkline.services.security.vault import KEY_BYTES, Vault
from trunkline.stores.base import ClaimedTask, Store, TaskAnswer
from trunkline.stores.port.agents.agent_events import NewAgentEvent
from trunkline.testing import FakeClock

TARGET = TargetEndpoint(url="http://new.example/agent", protocol="jsonrpc-2.0")


class MigratingAgent(msgspec.Struct):
    store: Store
    clock: FakeClock
    cards: FakeCardServer
    registry: AgentRegistry
    routes: RoutingTable
    sides: AgentRouter
    agent: Agent

    async def set_stage(
        self,
        stage: MigrationStage,
        percent: float = 100,
        limits: RolloutLimits = DEFAULT_LIMITS,
        target: TargetEndpoint = TARGET,
        row_version: int = 0,
        only_if: int | None = None,
    ) -> int:
        """Its stamp; 0: `only_if` is not the last event any more."""
        async with self.store.transaction() as tx:
            await tx.agent_events.lock()
            latest = await tx.agent_events.latest_migrations([self.agent.id])
            if only_if is not None and latest[self.agent.id].id != only_if:
                return 0
            state = MigrationState(
                stage=stage,
                percent=percent,
                limits=limits,
                target=target,
                shadow_since=1,
                row_version=row_version,
            )
            (event,) = await tx.agent_events.put(
                [
                    NewAgentEvent(
                        agent_id=self.agent.id,
                        agent=self.agent.name,
                        kind="migration",
                        who="somebody",
                        why="because",
                        data=encode(state),
                    )
                ]
            )
        await self.routes.refresh()
        return event.id

    async def stages(self) -> list[str]:
        events = await self.store.agent_events.migrations_since(0)
        return [msgspec.json.decode(event.data, type=MigrationState).stage for event in events]

    async def route(self, routing_version: int, run_id: str = "") -> Route:
        task = AgentTask(task_id="t", run_id=run_id or new_id(), routes=routing_version)
        return await self.sides.route_of(self.agent, task)

    async def call_result(
        self,
        routing_version: int,
        status: ResultStatus = "success",
        *,
        error: str | None = None,
        ms: int = 100,
        output: Json = None,
        **task: object,
    ) -> CallResult:
        """A call of a run with this stamp, and how it has ended."""
        made = msgspec.convert(
            {
                "task_id": new_id(),
                "run_id": new_id(),
                "step": "s",
                "agent": self.agent.name,
                "routes": routing_version,
                **task,
            },
            AgentTask,
        )
        route = await self.sides.route_of(self.agent, made)
        now = self.clock.now()
        # Its first message was `ms` before.
        deadline = Instant(now + (route.agent.timeout_ms - ms) * 1000)
        key = TaskKey(made.task_id, 1)
        return CallResult(
            claim=ClaimedTask(key=key, task=made, epoch=1, deadline=deadline),
            answer=TaskAnswer(key=key, epoch=1),
            result=AgentResult(
                task_id=made.task_id,
                run_id=made.run_id,
                step="s",
                attempt=1,
                status="error" if error is not None else status,
                at=now,
                output=msgspec.Raw(encode(output)),
                error=None if error is None else StepError(code=error, message=f"It was {error}."),
                protocol="simple-a2a",
            ),
            exchanges=[],
            route=route if route.migration is not None else None,
        )


@asynccontextmanager
async def migrating_agent(store: Store, clock: FakeClock, **fields: object) -> AsyncGenerator[MigratingAgent]:
    cards = FakeCardServer()
    registry = AgentRegistry(store, Vault(bytes(KEY_BYTES)), AgentCache(store.agents, clock))
    tokens = TokenProvider(cards, clock)
    routes = RoutingTable(store.agent_events, clock)
    spec = msgspec.convert({"name": "A", "url": URL, "protocol": "simple-a2a", **fields}, AgentSpec)
    agent = await registry.create(spec)
    async with (
        DialectNegotiator(cards, registry, clock, tokens) as dialects,
        AgentRouter(
            AgentResolver(dialects, registry, tokens),
            routes,
            lambda book: DialectNegotiator(cards, book, clock, tokens),
            lambda found: AgentResolver(found, registry, tokens),
        ) as sides,
    ):
        yield MigratingAgent(store, clock, cards, registry, routes, sides, agent)
