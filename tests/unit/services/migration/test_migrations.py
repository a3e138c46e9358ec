"""Migrations of agents: what is allowed, what is refused and why, and what the history records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest
from tests.unit.services.migration.migrating_agents import (
    ANN,
    AS_BEFORE,
    DEFAULT,
    JSONRPC,
    URL,
    Checks,
    compared,
    event_of,
    history,
    register,
)

from trunkline.agents.check_reports import (
    CheckedInputMode,
    CheckTarget,
)
from trunkline.agents.migration import TargetEndpoint
from trunkline.agents.migration.transitions import LimitChanges
from trunkline.errors import Conflict, Invalid, NotFound, NotReady, TrunklineError
from trunkline.jsontypes import JsonObject
from trunkline.services.agents.drift import DriftRecorder
from trunkline.services.agents.registry import AgentRegistry
from trunkline.services.migration.migrations import Migrations
from trunkline.services.migration.repository import ChangeReason
from trunkline.services.migration.routing_table import RoutingTable
from trunkline.services.migration.targets import RequestedTarget
from trunkline.stores.base import Store
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio


async def test_an_agent_moves_stage_by_stage_and_all_of_it_is_written_down(
    registry: AgentRegistry,
    migrations: Migrations,
    store: Store,
    clock: FakeClock,
    routing: RoutingTable,
    metrics: Metrics,
) -> None:
    agent = await register(registry, "a", repeatable=True, endpoint_override="http://elsewhere.example/")
    shadow = await migrations.shadow("a", DEFAULT, 50, LimitChanges(comparisons=1), ANN)
    assert (shadow.state.stage, shadow.state.target, shadow.state.shadow_since) == ("shadow", JSONRPC, 1)
    await compared(store, shadow, "agree")
    await migrations.attest("a", "deployed by ops", None, ChangeReason(who="bob"))
    canary = await migrations.canary("a", DEFAULT, 10, AS_BEFORE, ANN)
    assert (canary.state.percent, canary.state.limits.comparisons) == (10, 1)
    cutover = await migrations.cut_over("a", ChangeReason(who="ann"))
    assert (cutover.state.cut_over_at, cutover.state.forced) == (event_of(cutover).id, False)
    assert await routing.current_version() == event_of(cutover).id
    clock.advance(timedelta(seconds=6))
    finished = await migrations.finish("a", ANN)
    row = await registry.get("a")
    assert (row.url, row.protocol, row.version) == (URL, "jsonrpc-2.0", agent.version + 1)
    assert row.options.endpoint_override is None
    assert finished.state.row_version == row.version
    assert await history(store) == [
        ("a", "shadow", "ann", "it is time"),
        ("a", "shadow", "bob", "deployed by ops"),
        ("a", "canary", "ann", "it is time"),
        ("a", "cut_over", "ann", "no reason given"),
        ("a", "finished", "ann", "it is time"),
    ]
    assert b'agent_migration_changes_total{agent_name="a",stage="cut_over"} 1.0' in metrics.render()


async def test_only_an_agent_that_may_be_called_twice_is_shadowed(
    registry: AgentRegistry, migrations: Migrations
) -> None:
    await register(registry, "a")
    with pytest.raises(Conflict, match="not marked as safe to call twice") as refused:
        await migrations.shadow("a", DEFAULT, 10, AS_BEFORE, ANN)
    assert "repeatable" in refused.value.fix


async def test_comparisons_start_over_for_another_target_and_continue_for_the_same(
    registry: AgentRegistry, migrations: Migrations
) -> None:
    await register(registry, "a", repeatable=True)
    first = await migrations.shadow("a", DEFAULT, 10, AS_BEFORE, ANN)
    more = await migrations.shadow("a", DEFAULT, 50, AS_BEFORE, ANN)
    assert more.state.shadow_since == first.state.shadow_since == 1
    other = await migrations.shadow("a", RequestedTarget(protocol="a2a-1.0"), 50, AS_BEFORE, ANN)
    assert other.state.shadow_since == 3


# What is requested for an agent that speaks Simple A2A, and the configuration that its target gets.
INPUT_MODES: dict[str, tuple[RequestedTarget, JsonObject | None]] = {
    "nothing": (DEFAULT, {"input_mode": "json"}),
    "another option": (
        RequestedTarget(protocol_config={"output_mode": "data"}),
        {"output_mode": "data", "input_mode": "json"},
    ),
    "another mode": (RequestedTarget(protocol_config={"input_mode": "text"}), {"input_mode": "text"}),
    "A2A 1.0": (RequestedTarget(protocol="a2a-1.0"), {"input_mode": "json"}),
    "params without a message": (
        RequestedTarget(protocol_config={"params": "input"}),
        {"params": "input"},
    ),
    "a protocol without messages": (RequestedTarget(protocol="jsonrpc-call"), None),
}


@pytest.mark.parametrize("requested", INPUT_MODES)
async def test_the_target_of_an_agent_that_got_the_whole_input_gets_it_too(
    registry: AgentRegistry, migrations: Migrations, requested: str
) -> None:
    target, config = INPUT_MODES[requested]
    if target.protocol == "jsonrpc-call":
        target = msgspec.structs.replace(target, protocol_config={"method": "do"})
        config = {"method": "do"}
    await register(registry, "a")
    change = await migrations.canary("a", target, 10, AS_BEFORE, ANN)
    assert change.state.target is not None
    assert change.state.target.protocol_config == config


async def test_the_target_of_an_agent_that_sent_messages_before_keeps_their_form(
    registry: AgentRegistry, migrations: Migrations
) -> None:
    await register(registry, "a", protocol="jsonrpc-2.0")
    change = await migrations.canary("a", RequestedTarget(protocol="a2a-1.0"), 10, AS_BEFORE, ANN)
    assert change.state.target == TargetEndpoint(url=URL, protocol="a2a-1.0")


@pytest.mark.parametrize(
    ("seen", "mode"), [(["text"], "text"), (["json", "text"], "json"), (["data"], "data"), ([], "json")]
)
async def test_what_an_active_check_has_shown_decides_the_form_of_the_input(
    registry: AgentRegistry,
    migrations: Migrations,
    checks: Checks,
    store: Store,
    metrics: Metrics,
    seen: list[CheckedInputMode],
    mode: str,
) -> None:
    agent = await register(registry, "a")
    target = CheckTarget(url=URL, protocol="jsonrpc-2.0")
    report = await checks(agent, target)
    for active, modes in ((True, seen), (False, ["text"])):
        # A passive check sends no input, and says nothing about it.
        await DriftRecorder(store, metrics).record_check(
            agent, msgspec.structs.replace(report, active=active, input_modes=modes), target
        )
    change = await migrations.canary("a", DEFAULT, 10, AS_BEFORE, ANN)
    assert change.state.target == TargetEndpoint(
        url=URL, protocol="jsonrpc-2.0", protocol_config={"input_mode": mode}
    )


CREDENTIALS = {"auth_type": "bearer", "auth_config": {"token": "secret-of-a"}}


@pytest.mark.parametrize("origins", [[], ["http://new.example"]], ids=["not allowed", "allowed"])
async def test_credentials_go_to_another_origin_only_where_that_is_allowed(
    registry: AgentRegistry, migrations: Migrations, origins: Sequence[str]
) -> None:
    await register(registry, "a", allow_card_origin=list(origins), **CREDENTIALS)
    elsewhere = RequestedTarget(url="http://new.example/a")
    if origins:
        assert (await migrations.canary("a", elsewhere, 10, AS_BEFORE, ANN)).state.stage == "canary"
    else:
        with pytest.raises(Conflict, match="another origin") as refused:
            await migrations.canary("a", elsewhere, 10, AS_BEFORE, ANN)
        assert "allow_card_origin" in refused.value.fix
        assert "secret-of-a" not in str(refused.value)


WRONG: dict[str, tuple[RequestedTarget, float, LimitChanges, str]] = {
    "nothing": (DEFAULT, 0, AS_BEFORE, "percent"),
    "too much": (DEFAULT, 100.5, AS_BEFORE, "percent"),
    "a protocol that is none": (RequestedTarget(protocol="smtp"), 1, AS_BEFORE, "Unsupported protocol: smtp"),
    "any protocol": (RequestedTarget(protocol="auto"), 1, AS_BEFORE, "must be a specific protocol"),
    "an address that is none": (RequestedTarget(url="ftp://a"), 1, AS_BEFORE, "url"),
    "a setting that is none": (RequestedTarget(protocol_config={"x": 1}), 1, AS_BEFORE, "protocol_config"),
    "itself": (RequestedTarget(protocol="simple-a2a"), 1, AS_BEFORE, "is the same as its source"),
    "a limit that is none": (DEFAULT, 1, LimitChanges(error_rate=1.5), "limits.error_rate"),
    "more calls than are kept": (DEFAULT, 1, LimitChanges(window=5), "limits.calls"),
}


@pytest.mark.parametrize("case", list(WRONG))
async def test_an_invalid_change_is_refused_and_changes_nothing(
    registry: AgentRegistry, migrations: Migrations, store: Store, case: str
) -> None:
    await register(registry, "a")
    target, percent, limits, words = WRONG[case]
    with pytest.raises(TrunklineError, match=words):
        await migrations.canary("a", target, percent, limits, ANN)
    with pytest.raises(NotFound):
        await migrations.canary("b", DEFAULT, 1, AS_BEFORE, ANN)
    assert await store.agent_events.last_id() == 0


async def reasons(migrations: Migrations, name: str = "a") -> list[str]:
    with pytest.raises(NotReady) as refused:
        await migrations.cut_over(name, ANN)
    return [finding.message for finding in refused.value.findings]


async def test_a_cutover_names_every_reason_against_it(
    registry: AgentRegistry, migrations: Migrations, checks: Checks, store: Store
) -> None:
    await register(registry, "a", repeatable=True)
    assert await reasons(migrations) == ["The migration has no target yet."]
    checks.failing.add("a")
    shadow = await migrations.shadow("a", DEFAULT, 100, LimitChanges(comparisons=3, disagreement=0.4), ANN)
    await compared(store, shadow, "agree", "differ", "old_failed")
    assert await reasons(migrations) == [
        "The check of the target failed: grade F.",
        "Too few comparisons: 2 so far, and the minimum is 3.",
        "Source and target disagree in 1 of 2 answers, but the limit is 40.0%.",
        "Not attested yet: the new version is deployed and documented, and the team is informed.",
    ]
    checks.impossible = True
    assert (await reasons(migrations))[0] == "The check of the target failed: It cannot be checked."
    assert await store.agent_events.last_id() == 1


async def test_the_new_side_is_checked_at_the_cutover_itself(
    registry: AgentRegistry, migrations: Migrations, checks: Checks, store: Store
) -> None:
    agent = await register(registry, "a")
    await migrations.attest("a", "deployed", DEFAULT, ANN)
    await migrations.check("a")
    checks.failing.add("a")
    assert await reasons(migrations) == ["The check of the target failed: grade F."]
    assert [record.grade for record in await store.checks.page(agent.id, limit=9)] == ["F", "A"]
    assert {target.protocol for _, target in checks.asked if target} == {"jsonrpc-2.0"}


async def test_a_target_that_answers_only_messages_needs_an_active_check(
    registry: AgentRegistry, migrations: Migrations, checks: Checks
) -> None:
    await register(registry, "a")
    checks.silent.add("a")
    await migrations.attest("a", "deployed by ops", DEFAULT, ANN)
    with pytest.raises(NotReady, match="not ready") as refused:
        await migrations.cut_over("a", ANN)
    assert "not enough evidence without --active" in str(refused.value.findings)
    assert "migrate check a --active" in refused.value.fix
    await migrations.check("a", active=True)
    assert (await migrations.cut_over("a", ANN)).state.forced is False


async def test_a_refusal_is_overruled_only_with_a_reason(
    registry: AgentRegistry, migrations: Migrations, checks: Checks
) -> None:
    await register(registry, "a")
    with pytest.raises(NotReady):
        await migrations.cut_over("a", ANN, force=True)
    await migrations.canary("a", DEFAULT, 10, AS_BEFORE, ANN)
    checks.failing.add("a")
    with pytest.raises(Invalid, match="why"):
        await migrations.cut_over("a", ChangeReason(who="ann"), force=True)
    change = await migrations.cut_over("a", ChangeReason(who="ann", why="the boss said so"), force=True)
    assert (change.state.forced, event_of(change).why) == (True, "the boss said so")
    again = await migrations.cut_over("a", ANN)
    assert (again.event, again.state) == (None, change.state)


async def test_all_agents_are_cut_over_or_none(
    registry: AgentRegistry, migrations: Migrations, checks: Checks, store: Store
) -> None:
    await register(registry, "a", "b", "c")
    await register(registry, "modern", protocol="a2a-1.0")
    for name in ("a", "b", "c"):
        await migrations.attest(name, "deployed", DEFAULT, ANN)
    checks.failing.add("b")
    before = await store.agent_events.last_id()
    with pytest.raises(NotReady, match="1 of 3 agents are not ready for the cutover: b") as refused:
        await migrations.cut_over_all(ANN)
    assert [finding.path for finding in refused.value.findings] == ["b"]
    assert await store.agent_events.last_id() == before
    checks.failing.clear()
    changes = await migrations.cut_over_all(ANN)
    assert [(change.agent, change.state.stage, change.state.cut_over_at) for change in changes] == [
        # In between, the grade of b has changed.
        ("a", "cut_over", before + 2),
        ("b", "cut_over", before + 3),
        ("c", "cut_over", before + 4),
    ]
    with pytest.raises(Conflict, match="no agent to cut over"):
        await migrations.cut_over_all(ANN)


async def test_an_agent_with_an_unknown_dialect_holds_up_all(
    registry: AgentRegistry, migrations: Migrations
) -> None:
    await register(registry, "a", protocol="auto")
    with pytest.raises(NotReady) as refused:
        await migrations.cut_over_all(ANN)
    assert refused.value.findings[0].message == "The agent's protocol has not been detected yet."


async def test_an_agent_that_moves_nowhere_is_checked_where_it_is(
    registry: AgentRegistry, migrations: Migrations, checks: Checks
) -> None:
    await register(registry, "a")
    record, _ = await migrations.check("a")
    assert (checks.asked, record.protocol) == ([("a", None)], "simple-a2a")


async def test_what_was_attested_of_one_target_is_not_attested_of_another(
    registry: AgentRegistry, migrations: Migrations
) -> None:
    await register(registry, "a")
    await migrations.attest("a", "deployed", None, ANN)
    first = await migrations.canary("a", DEFAULT, 10, AS_BEFORE, ANN)
    assert first.state.ready is not None
    other = await migrations.canary("a", RequestedTarget(protocol="a2a-1.0"), 10, AS_BEFORE, ANN)
    assert other.state.ready is None


CHANGES: dict[str, JsonObject] = {
    "url": {"url": "http://agents.example/b"},
    "protocol": {"protocol": "a2a-1.0"},
    "protocol_config": {"protocol_config": {"output_mode": "data"}},
    "repeatable": {"repeatable": False},
}


async def test_what_a_moving_agent_is_stays_as_it_is_until_the_move_has_ended(
    registry: AgentRegistry, migrations: Migrations
) -> None:
    await register(registry, "a", repeatable=True)
    await migrations.canary("a", DEFAULT, 10, AS_BEFORE, ANN)
    for change in CHANGES.values():
        with pytest.raises(Conflict, match="is being migrated"):
            await registry.patch("a", change)
    with pytest.raises(Conflict, match="it cannot be deleted"):
        await registry.delete("a")
    await registry.patch("a", {"timeout_ms": 5, "name": "renamed"})
    await migrations.roll_back("renamed", ANN)
    for change in CHANGES.values():
        await registry.patch("renamed", change)
    await registry.delete("renamed")
