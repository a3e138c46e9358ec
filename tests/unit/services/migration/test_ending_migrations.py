"""The end of a migration: rolling it back and finishing it, one agent or all of them."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.contract.samples import insert, new_run, transition, write
from tests.unit.services.migration.migrating_agents import (
    ANN,
    AS_BEFORE,
    DEFAULT,
    Checks,
    cut_over,
    event_of,
    history,
    register,
)

from trunkline.errors import Conflict, Invalid, NotReady
from trunkline.services.agents.drift import OURSELVES
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.migration.migrations import Migrations
from trunkline.services.migration.repository import ChangeReason
from trunkline.services.migration.states import decode_migration
from trunkline.stores.base import Store
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio


async def test_a_rollback_needs_a_reason_and_happens_once(
    registry: AgentRegistry, migrations: Migrations, store: Store
) -> None:
    await register(registry, "a")
    with pytest.raises(Conflict, match="nothing to roll back"):
        await migrations.roll_back("a", ANN)
    await cut_over(migrations)
    with pytest.raises(Invalid, match="reason"):
        await migrations.roll_back("a", ChangeReason(who="ann"))
    change = await migrations.roll_back("a", ANN)
    assert (change.state.stage, change.state.cut_over_at) == ("rolled_back", 0)
    last = await store.agent_events.last_id()
    assert (await migrations.roll_back("a", ANN)).event is None
    assert await store.agent_events.last_id() == last


async def test_what_was_rolled_back_has_to_be_attested_again(
    registry: AgentRegistry, migrations: Migrations
) -> None:
    await register(registry, "a", "b")
    for name in ("a", "b"):
        await cut_over(migrations, name)
    await migrations.roll_back("a", ANN)
    (other,) = (await migrations.roll_back_all(ANN)).changed
    assert other.agent == "b"
    with pytest.raises(NotReady) as refused:
        await migrations.cut_over_all(ANN)
    assert [(finding.path, finding.message.split(":")[0]) for finding in refused.value.findings] == [
        ("a", "Not attested yet"),
        ("b", "Not attested yet"),
    ]
    for name in ("a", "b"):
        await migrations.attest(name, "mended", None, ANN)
    assert [change.agent for change in await migrations.cut_over_all(ANN)] == ["a", "b"]


async def test_a_rollback_by_itself_ends_only_the_trial_that_it_has_judged(
    registry: AgentRegistry, migrations: Migrations, store: Store
) -> None:
    agent = await register(registry, "a")
    first = await migrations.canary("a", DEFAULT, 10, AS_BEFORE, ANN)
    await migrations.canary("a", DEFAULT, 20, AS_BEFORE, ANN)
    attested = await migrations.attest("a", "deployed", None, ANN)

    async def go_back(only_if: int) -> bool:
        return await migrations.roll_back_if(agent.id, who=OURSELVES, why="5 of 10 failed", only_if=only_if)

    assert not await go_back(event_of(first).id)
    assert await go_back(event_of(attested).id)
    (last, *_) = await store.agent_events.page(limit=1)
    state = decode_migration(last)
    assert (last.who, last.why) == ("trunkline", "5 of 10 failed")
    # Whoever vouched for it was wrong.
    assert state is not None
    assert (state.stage, state.ready) == ("rolled_back", None)
    assert not await go_back(event_of(attested).id)
    assert not await go_back(last.id)


async def test_a_rollback_to_a_source_that_cannot_be_called_is_refused(
    registry: AgentRegistry, migrations: Migrations, checks: Checks, store: Store
) -> None:
    await register(registry, "a")
    change = await cut_over(migrations)
    checks.gone.add("a")
    with pytest.raises(NotReady, match=r"was not rolled back.*speaks the protocol: JSON-RPC") as refused:
        await migrations.roll_back("a", ANN)
    assert "--force" in refused.value.fix
    with pytest.raises(NotReady):
        await migrations.roll_back_if("a", who="trunkline", why="slow", only_if=event_of(change).id)
    assert [stage for _, stage, _, _ in await history(store)] == ["planned", "cut_over"]
    back = await migrations.roll_back("a", ANN, force=True)
    assert back.state.stage == "rolled_back"


async def test_all_agents_are_rolled_back_or_none(
    registry: AgentRegistry, migrations: Migrations, checks: Checks
) -> None:
    await register(registry, "a", "b")
    for name in ("a", "b"):
        await cut_over(migrations, name)
    checks.gone.add("b")
    with pytest.raises(NotReady, match="1 of 2 agents cannot be called, so no agent was rolled back: b"):
        await migrations.roll_back_all(ANN)
    outcome = await migrations.roll_back_all(ANN, force=True)
    assert {change.agent for change in outcome.changed} == {"a", "b"}


async def test_a_finished_migration_is_not_rolled_back(
    registry: AgentRegistry, migrations: Migrations, clock: FakeClock
) -> None:
    await register(registry, "a", "b", "c")
    await cut_over(migrations, "a")
    await migrations.canary("b", DEFAULT, 10, AS_BEFORE, ANN)
    clock.advance(timedelta(seconds=6))
    await migrations.finish("a", ANN)
    with pytest.raises(Conflict, match="The source of 'a' no longer exists"):
        await migrations.roll_back("a", ANN)
    outcome = await migrations.roll_back_all(ANN)
    assert [(change.agent, change.state.stage) for change in outcome.changed] == [("b", "rolled_back")]
    assert [(left.agent, "no longer exists" in left.message) for left in outcome.left_alone] == [("a", True)]
    assert outcome.refused == []
    again = await migrations.roll_back_all(ANN)
    assert [(change.agent, change.event) for change in again.changed] == [("b", None)]
    assert [left.agent for left in again.left_alone] == ["a"]


async def test_a_migration_is_finished_when_no_run_can_call_the_old_side_any_more(
    registry: AgentRegistry, migrations: Migrations, store: Store, clock: FakeClock
) -> None:
    await register(registry, "a")
    with pytest.raises(Conflict, match="has not been cut over"):
        await migrations.finish("a", ANN)
    await register(registry, "still", "trying")
    await migrations.canary("trying", DEFAULT, 10, AS_BEFORE, ANN)
    await insert(store, new_run(1))
    change = await cut_over(migrations)
    await insert(store, msgspec.structs.replace(new_run(2), routing_version=change.state.cut_over_at))
    with pytest.raises(Conflict, match="some processes may not know it yet"):
        await migrations.finish("a", ANN)
    clock.advance(timedelta(seconds=6))
    with pytest.raises(Conflict, match="1 unfinished runs started before"):
        await migrations.finish("a", ANN)
    assert [refusal.agent for refusal in (await migrations.finish_all(ANN)).refused] == ["a"]
    await write(store, transition(1, status="COMPLETED", finished_at=clock.now()))
    outcome = await migrations.finish_all(ANN)
    assert [(change.agent, change.state.stage) for change in outcome.changed] == [("a", "finished")]
    assert (outcome.refused, outcome.left_alone) == ([], [])
