"""What the routing table knows of migrations, and when it reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import msgspec
import pytest

from trunkline.agents.migration import MigrationStage, MigrationState, TargetEndpoint
from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.services.migration.routing_table import FRESH_FOR, RoutingTable
from trunkline.stores.port.agents.agent_events import AgentEvent
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio


class FakeEventStore:
    """A store with agent events, which counts how often it is asked."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []
        self.last = 0
        self.reads = 0
        self.is_away = False

    def move(self, agent_id: str, stage: MigrationStage) -> int:
        self.last += 1
        state = MigrationState(
            stage=stage, target=TargetEndpoint(url="http://new.example", protocol="jsonrpc-2.0")
        )
        self.events.append(
            AgentEvent(
                id=self.last,
                at=Instant(0),
                agent_id=agent_id,
                agent=agent_id,
                kind="migration",
                who="somebody",
                why="",
                data=msgspec.json.encode(state),
            )
        )
        return self.last

    async def last_id(self) -> int:
        self.reads += 1
        await asyncio.sleep(0)
        if self.is_away:
            raise Unavailable("The store is away.")
        return self.last

    async def migrations_since(self, after: int) -> list[AgentEvent]:
        await asyncio.sleep(0)
        return [event for event in self.events if event.id > after]

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        return {event.agent_id: event for event in self.events if event.agent_id in agent_ids}

    async def page(
        self,
        *,
        limit: int,
        before: int | None = None,
        agent_id: str | None = None,
        agent: str | None = None,
    ) -> list[AgentEvent]:
        found = [
            event
            for event in reversed(self.events)
            if (before is None or event.id < before)
            and agent_id in (None, event.agent_id)
            and agent in (None, event.agent)
        ]
        return found[:limit]


def stage_of(revision: object) -> str | None:
    state = getattr(revision, "state", None)
    return None if state is None else state.stage


async def test_a_stamp_is_the_last_event_of_any_kind() -> None:
    store = FakeEventStore()
    store.move("a", "shadow")
    # A card that has changed, say.
    store.last += 1
    assert await RoutingTable(store, FakeClock()).current_version() == 2


async def test_what_others_change_is_known_after_two_seconds_and_read_once_for_all() -> None:
    store, clock = FakeEventStore(), FakeClock()
    table = RoutingTable(store, clock)
    assert await table.current_version() == 0
    store.move("a", "cut_over")
    assert await table.current_version() == 0
    clock.advance(FRESH_FOR)
    assert await asyncio.gather(*(table.current_version() for _ in range(50))) == [1] * 50
    assert store.reads == 2


async def test_what_is_changed_here_is_known_at_once() -> None:
    store = FakeEventStore()
    table = RoutingTable(store, FakeClock())
    await table.current_version()
    store.move("a", "cut_over")
    await table.refresh()
    assert await table.current_version() == 1


async def test_a_stamp_means_the_same_for_ever() -> None:
    store = FakeEventStore()
    table = RoutingTable(store, FakeClock())
    for stage in ("shadow", "canary", "rolled_back"):
        store.move("a", stage)
        await table.refresh()
    found = [stage_of(await table.migration_at("a", stamp)) for stamp in (0, 1, 2, 3, 3)]
    assert found == [None, "shadow", "canary", "rolled_back", "rolled_back"]
    assert await table.migration_at("b", 3) is None


async def test_a_stamp_from_elsewhere_that_is_not_known_yet_is_read_first() -> None:
    store = FakeEventStore()
    table = RoutingTable(store, FakeClock())
    await table.current_version()
    stamp = store.move("a", "cut_over")
    found = await asyncio.gather(*(table.migration_at("a", stamp) for _ in range(50)))
    assert {stage_of(revision) for revision in found} == {"cut_over"}
    assert store.reads == 2


async def test_a_known_stamp_costs_no_read() -> None:
    store, clock = FakeEventStore(), FakeClock()
    store.move("a", "cut_over")
    table = RoutingTable(store, clock)
    await table.current_version()
    clock.advance(FRESH_FOR * 100)
    for _ in range(100):
        await table.migration_at("a", 1)
        await table.migration_at("b", 1)
    assert store.reads == 1


async def test_no_caller_is_refused_because_the_last_event_cannot_be_read() -> None:
    store, clock = FakeEventStore(), FakeClock()
    store.move("a", "cut_over")
    table = RoutingTable(store, clock)
    await table.current_version()
    store.is_away = True
    clock.advance(FRESH_FOR)
    assert await table.current_version() == 1


async def test_a_call_waits_for_the_store_rather_than_take_the_wrong_side() -> None:
    store = FakeEventStore()
    table = RoutingTable(store, FakeClock())
    stamp = store.move("a", "cut_over")
    store.is_away = True
    with pytest.raises(Unavailable):
        await table.migration_at("a", stamp)
    store.is_away = False
    assert stage_of(await table.migration_at("a", stamp)) == "cut_over"


async def test_agents_whose_new_side_is_called_can_be_listed() -> None:
    store = FakeEventStore()
    table = RoutingTable(store, FakeClock())
    store.move("a", "canary")
    store.move("b", "cut_over")
    store.move("c", "shadow")
    store.move("d", "rolled_back")
    await table.refresh()
    assert table.agents_in_rollout() == ["a", "b"]
    assert stage_of(table.latest("d")) == "rolled_back"
    assert table.latest("e") is None
