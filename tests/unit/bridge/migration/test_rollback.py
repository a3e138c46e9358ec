"""How the ends of calls lead back to the old side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest
from tests.unit.bridge.migrating_agent import MigratingAgent, migrating_agent

from trunkline.agents.migration import RolloutLimits, TargetEndpoint
from trunkline.agents.migration.rollback_rules import CallWindow, decode_window
from trunkline.agents.migration.routing import EndpointName
from trunkline.bridge.breaker import NOT_CAUSED_BY_AGENT
from trunkline.bridge.calls.results import CallResult
from trunkline.bridge.migration.rollback import RollbackWatch
from trunkline.errors import NotReady, Unavailable
from trunkline.messages import ERROR_CODES, ResultStatus
from trunkline.stores.base import Store
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

LIMITS = RolloutLimits(calls=4, window=10, error_rate=0.25)


class RollbackSetup:
    """One bridge's watch, and the way back as it was asked for."""

    def __init__(self, migrating: MigratingAgent, clock: FakeClock) -> None:
        self.clock = clock
        self.source_is_gone = False
        self.migrating = migrating
        self.metrics = Metrics()
        self.watch = RollbackWatch(
            migrating.routes, migrating.store.comparisons, self._roll_back, self.metrics, clock
        )
        self.asked: list[tuple[str, str, int]] = []
        self.is_away = False

    async def _roll_back(self, agent_id: str, *, who: str, why: str, only_if: int) -> bool:
        self.asked.append((who, why, only_if))
        if self.is_away:
            self.is_away = False
            raise Unavailable("The store is away.")
        if self.source_is_gone:
            raise NotReady("The source cannot be called.")
        assert agent_id == self.migrating.agent.id
        return bool(await self.migrating.set_stage("rolled_back", limits=LIMITS, only_if=only_if))

    async def ends(self, results: Sequence[CallResult], *, commits: bool = True) -> None:
        async with self.migrating.store.transaction() as tx:
            await self.watch.note(tx, results)
        (self.watch.committed if commits else self.watch.rolled_back)()
        await self.settle()

    async def settle(self) -> None:
        while self.watch.is_busy:
            await asyncio.sleep(0)

    async def window(self, side: EndpointName = "new") -> CallWindow:
        return decode_window(
            (await self.migrating.store.comparisons.calls(self.migrating.agent.id)).get(side)
        )


@pytest.fixture
async def setup(store: Store, clock: FakeClock) -> AsyncIterator[RollbackSetup]:
    async with migrating_agent(store, clock) as migrating:
        yield RollbackSetup(migrating, clock)


async def failures(migrating: MigratingAgent, routing_version: int, number: int) -> list[CallResult]:
    return [await migrating.call_result(routing_version, error="agent_http_error") for _ in range(number)]


async def successes(
    migrating: MigratingAgent, routing_version: int, number: int, ms: int = 100
) -> list[CallResult]:
    return [await migrating.call_result(routing_version, ms=ms) for _ in range(number)]


@pytest.mark.parametrize("stage", ["canary", "cut_over"])
async def test_a_new_side_that_fails_is_left_once_and_the_reason_is_kept(
    setup: RollbackSetup, stage: str
) -> None:
    migrating = setup.migrating
    routing_version = await migrating.set_stage("canary" if stage == "canary" else "cut_over", limits=LIMITS)
    await setup.ends(await successes(migrating, routing_version, 2))
    await setup.ends(await failures(migrating, routing_version, 1))
    assert await migrating.stages() == [stage]
    await setup.ends(await failures(migrating, routing_version, 1))
    assert await migrating.stages() == [stage, "rolled_back"]
    why = "2 of the last 4 calls to the target failed, and the limit is 25%"
    assert setup.asked == [("trunkline", why, routing_version)]
    assert setup.metrics.registry.get_sample_value("agent_rollbacks_total", {"agent_name": "A"}) == 1
    # Those that were under way still end badly.
    await setup.ends(await failures(migrating, routing_version, 5))
    assert await migrating.stages() == [stage, "rolled_back"]


async def test_a_slow_new_side_is_left(setup: RollbackSetup) -> None:
    migrating = setup.migrating
    limits = RolloutLimits(calls=4, window=10, slowest_ms=500)
    routing_version = await migrating.set_stage("cut_over", limits=limits)
    await setup.ends(await successes(migrating, routing_version, 4, ms=501))
    assert await migrating.stages() == ["cut_over", "rolled_back"]


async def test_the_old_side_may_fail_as_it_likes(setup: RollbackSetup) -> None:
    migrating = setup.migrating
    routing_version = await migrating.set_stage("canary", percent=0, limits=LIMITS)
    await setup.ends(await failures(migrating, routing_version, 10))
    assert await migrating.stages() == ["canary"]
    assert (await setup.window("old")).ends[0].failed
    assert (await setup.window("new")).ends == ()


async def test_runs_of_before_the_trial_do_not_count(setup: RollbackSetup) -> None:
    migrating = setup.migrating
    before = await migrating.set_stage("shadow", limits=LIMITS)
    await migrating.set_stage("cut_over", limits=LIMITS)
    for routing_version in (0, before):
        await setup.ends(await failures(migrating, routing_version, 10))
    assert (await setup.window("old"), await setup.window("new")) == (CallWindow(), CallWindow())


async def test_runs_of_an_earlier_trial_do_not_count_in_the_next_one(setup: RollbackSetup) -> None:
    migrating = setup.migrating
    first = await migrating.set_stage("canary", limits=LIMITS)
    await migrating.set_stage("rolled_back", limits=LIMITS)
    second = await migrating.set_stage(
        "canary", limits=LIMITS, target=TargetEndpoint(url="http://mended.example", protocol="jsonrpc-2.0")
    )
    await setup.ends(await successes(migrating, second, 4))
    await setup.ends(await failures(migrating, first, 10))
    assert await migrating.stages() == ["canary", "rolled_back", "canary"]
    assert len((await setup.window()).ends) == 4


async def test_a_trial_goes_on_when_its_share_grows(setup: RollbackSetup) -> None:
    migrating = setup.migrating
    first = await migrating.set_stage("canary", limits=LIMITS)
    await setup.ends(await failures(migrating, first, 3))
    second = await migrating.set_stage("cut_over", limits=LIMITS)
    await setup.ends(await failures(migrating, second, 1))
    assert await migrating.stages() == ["canary", "cut_over", "rolled_back"]


async def test_what_was_not_committed_leads_nowhere(setup: RollbackSetup) -> None:
    migrating = setup.migrating
    routing_version = await migrating.set_stage("cut_over", limits=LIMITS)
    await setup.ends(await failures(migrating, routing_version, 5), commits=False)
    assert setup.asked == []


async def test_a_store_that_is_away_delays_the_way_back_only(setup: RollbackSetup) -> None:
    migrating = setup.migrating
    routing_version = await migrating.set_stage("cut_over", limits=LIMITS)
    setup.is_away = True
    await setup.ends(await failures(migrating, routing_version, 5))
    assert await migrating.stages() == ["cut_over", "rolled_back"]
    assert len(setup.asked) == 2


async def test_what_a_dead_bridge_has_noted_is_followed_at_the_next_start(setup: RollbackSetup) -> None:
    migrating = setup.migrating
    routing_version = await migrating.set_stage("cut_over", limits=LIMITS)
    await setup.ends(await failures(migrating, routing_version, 5), commits=False)
    next_one = RollbackSetup(migrating, setup.clock)
    await next_one.watch.begin()
    await next_one.settle()
    assert await migrating.stages() == ["cut_over", "rolled_back"]


async def test_of_two_bridges_that_judge_alike_one_rolls_back(setup: RollbackSetup) -> None:
    migrating = setup.migrating
    routing_version = await migrating.set_stage("cut_over", limits=LIMITS)
    other = RollbackSetup(migrating, setup.clock)
    results = await failures(migrating, routing_version, 5)
    await asyncio.gather(setup.ends(results), other.ends(results))
    assert await migrating.stages() == ["cut_over", "rolled_back"]


async def test_every_error_is_judged(setup: RollbackSetup) -> None:
    routing_version = await setup.migrating.set_stage(
        "cut_over", limits=RolloutLimits(calls=1_000, window=1_000)
    )
    of_the_side = {
        "agent_address_forbidden",
        "agent_transport_unavailable",
        "agent_url_invalid",
        "agent_program_unknown",
        "request_not_encodable",
    }
    for code in sorted(ERROR_CODES):
        before = len((await setup.window()).ends)
        await setup.ends([await setup.migrating.call_result(routing_version, error=code)])
        counts = code not in NOT_CAUSED_BY_AGENT or code in of_the_side
        assert (code, len((await setup.window()).ends) - before) == (code, counts)


async def test_what_says_nothing_about_the_side_is_not_counted(setup: RollbackSetup) -> None:
    routing_version = await setup.migrating.set_stage("cut_over", limits=LIMITS)
    statuses: list[ResultStatus] = ["cancelled", "unknown", "working", "progress"]
    await setup.ends([await setup.migrating.call_result(routing_version, status) for status in statuses])
    assert (await setup.window()).ends == ()


async def test_a_question_of_the_agent_is_a_good_end(setup: RollbackSetup) -> None:
    routing_version = await setup.migrating.set_stage("cut_over", limits=LIMITS)
    await setup.ends([await setup.migrating.call_result(routing_version, "interrupted", ms=70)])
    assert [tuple(end) for end in (await setup.window()).ends] == [(False, 70)]


async def test_a_source_that_is_gone_is_not_gone_back_to_and_tried_again_after_a_minute(
    setup: RollbackSetup,
) -> None:
    version = await setup.migrating.set_stage("canary", limits=LIMITS)
    setup.source_is_gone = True
    await setup.ends(await failures(setup.migrating, version, 4))
    await setup.ends(await failures(setup.migrating, version, 1))
    assert len(setup.asked) == 1
    assert b'agent_rollbacks_refused_total{agent_name="A"} 1.0' in setup.metrics.render()
    setup.source_is_gone = False
    setup.clock.advance(timedelta(minutes=1))
    await setup.ends(await failures(setup.migrating, version, 1))
    assert len(setup.asked) == 2
    latest = setup.migrating.routes.latest(setup.migrating.agent.id)
    assert latest is not None
    assert latest.state.stage == "rolled_back"
