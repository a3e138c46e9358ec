"""Whom a task talks to while its agent moves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.unit.bridge.agents.test_resolver import INTERFACE, URL
from tests.unit.bridge.migrating_agent import TARGET, MigratingAgent, migrating_agent

from trunkline.agents.migration import TargetEndpoint
from trunkline.bridge.agents.resolver import ResolvedAgent
from trunkline.bridge.agents.routes import Route
from trunkline.id_generation import new_id
from trunkline.stores.base import Store
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio


@pytest.fixture
async def migrating(store: Store, clock: FakeClock) -> AsyncIterator[MigratingAgent]:
    async with migrating_agent(
        store,
        clock,
        auth_type="bearer",
        auth_config={"token": "t-0-p-s"},
        options={"endpoint_override": f"{URL}/here"},
    ) as ready:
        yield ready


async def resolve(route: Route) -> ResolvedAgent:
    resolved = await route.resolver.resolve(route.agent)
    assert isinstance(resolved, ResolvedAgent), resolved
    return resolved


async def test_a_run_of_before_the_move_calls_the_agent_as_ever(migrating: MigratingAgent) -> None:
    await migrating.set_stage("cut_over")
    route = await migrating.route(0)
    assert (route.agent, route.migration, route.notes) == (migrating.agent, None, ())
    assert (await resolve(route)).address == f"{URL}/here"


async def test_the_new_side_has_its_own_address_and_protocol_and_the_agents_credentials(
    migrating: MigratingAgent,
) -> None:
    routing_version = await migrating.set_stage("cut_over")
    route = await migrating.route(routing_version)
    resolved = await resolve(route)
    assert (resolved.address, resolved.protocol) == (TARGET.url, TARGET.protocol)
    assert resolved.headers["Authorization"] == "Bearer t-0-p-s"
    assert (route.agent.id, route.agent.name) == (migrating.agent.id, migrating.agent.name)
    assert route.notes == ("To the new endpoint of the agent: for this run its migration stage is cut over.",)


async def test_a_run_in_flight_stays_where_it_was_through_every_change(migrating: MigratingAgent) -> None:
    run = new_id()
    before = await migrating.set_stage("shadow")
    during = await migrating.set_stage("canary")
    for stage in ("cut_over", "rolled_back", "canary"):
        await migrating.set_stage(stage)
        assert (await migrating.route(before, run)).endpoint == "old"
        assert (await migrating.route(during, run)).endpoint == "new"


async def test_two_targets_of_one_agent_are_kept_apart(migrating: MigratingAgent) -> None:
    first = await migrating.set_stage("canary")
    second = await migrating.set_stage(
        "canary", target=TargetEndpoint(url="http://newer.example/agent", protocol="jsonrpc-2.0")
    )
    for _ in range(2):
        addresses = [
            (await resolve(await migrating.route(routing_version))).address
            for routing_version in (0, first, second)
        ]
        assert addresses == [f"{URL}/here", TARGET.url, "http://newer.example/agent"]


async def test_what_the_new_side_speaks_is_not_written_into_the_agents_row(migrating: MigratingAgent) -> None:
    routing_version = await migrating.set_stage("cut_over", target=TargetEndpoint(url=URL, protocol="auto"))
    resolved = await resolve(await migrating.route(routing_version))
    assert (resolved.protocol, resolved.address) == ("a2a-1.0", INTERFACE["url"])
    assert (await migrating.registry.get("A")).dialect is None
    # And its card is read once only.
    await resolve(await migrating.route(routing_version))
    assert len(migrating.cards.gets) == 1


async def test_a_change_of_the_agent_reaches_its_new_side(migrating: MigratingAgent) -> None:
    routing_version = await migrating.set_stage("cut_over")
    await resolve(await migrating.route(routing_version))
    changed = await migrating.registry.patch("A", {"auth_config": {"token": "another"}})
    migrating.agent = changed
    resolved = await resolve(await migrating.route(routing_version))
    assert resolved.headers["Authorization"] == "Bearer another"


async def test_after_the_end_the_row_is_called_but_not_one_of_before_it(migrating: MigratingAgent) -> None:
    routing_version = await migrating.set_stage("finished", row_version=2)
    assert (await migrating.route(routing_version)).agent.url == TARGET.url
    migrating.agent = msgspec.structs.replace(migrating.agent, url="http://again.example", version=2)
    route = await migrating.route(routing_version)
    assert (route.agent.url, route.migration) == ("http://again.example", None)
