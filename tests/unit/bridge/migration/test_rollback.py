"""How the ends of calls lead back to the old side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from tests.unit.bridge.migrating_agent import Moving, moving_agent

from trunkline.agents.migration import RolloutLimits, TargetEndpoint
from trunkline.agents.migration.rollback_rules import CallWindow, decode_window
from trunkline.bridge.breaker import NOT_CAUSED_BY_AGENT
from trunkline.bridge.calls.results import CallUpdate
from trunkline.bridge.migration.rollback import RollbackWatch
from trunkline.errors import Unavailable
from trunkline.messages import ERROR_CODES, ResultStatus
from trunkline.stores.base import Store
from trunkline.stores.port.agent_events import Side
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

LIMITS = RolloutLimits(calls=4, window=10, error_rate=0.25)


class Watched:
    """One bridge's watch, and the way back as it was asked for."""

    def __init__(self, moving: Moving) -> None:
        self.moving = moving
        self.metrics = Metrics()
        self.watch = RollbackWatch(moving.routes, moving.store, self._roll_back, self.metrics)
        self.asked: list[tuple[str, str, int]] = []
        self.is_away = False

    async def _roll_back(self, agent_id: str, *, who: str, why: str, only_if: int) -> bool:
        self.asked.append((who, why, only_if))
        if self.is_away:
            self.is_away = False
            raise Unavailable("The store is away.")
        assert agent_id == self.moving.agent.id
        return bool(await self.moving.move("rolled_back", limits=LIMITS, only_if=only_if))

    async def ends(self, finished: Sequence[CallUpdate], *, commits: bool = True) -> None:
        async with self.moving.store.transaction() as tx:
            await self.watch.note(tx, finished)
        (self.watch.committed if commits else self.watch.rolled_back)()
        await self.settle()

    async def settle(self) -> None:
        while self.watch.is_busy:
            await asyncio.sleep(0)

    async def window(self, side: Side = "new") -> CallWindow:
        return decode_window((await self.moving.store.calls_of_sides(self.moving.agent.id)).get(side))


@pytest.fixture
async def watched(store: Store, clock: FakeClock) -> AsyncIterator[Watched]:
    async with moving_agent(store, clock) as moving:
        yield Watched(moving)


async def failures(moving: Moving, stamp: int, number: int) -> list[CallUpdate]:
    return [await moving.ended(stamp, error="agent_http_error") for _ in range(number)]


async def successes(moving: Moving, stamp: int, number: int, ms: int = 100) -> list[CallUpdate]:
    return [await moving.ended(stamp, ms=ms) for _ in range(number)]


@pytest.mark.parametrize("stage", ["canary", "cut_over"])
async def test_a_new_side_that_fails_is_left_once_and_the_reason_is_kept(
    watched: Watched, stage: str
) -> None:
    moving = watched.moving
    stamp = await moving.move("canary" if stage == "canary" else "cut_over", limits=LIMITS)
    await watched.ends(await successes(moving, stamp, 2))
    await watched.ends(await failures(moving, stamp, 1))
    assert await moving.stages() == [stage]
    await watched.ends(await failures(moving, stamp, 1))
    assert await moving.stages() == [stage, "rolled_back"]
    why = "2 of the last 4 calls of the new side failed; 25% is the limit"
    assert watched.asked == [("trunkline", why, stamp)]
    assert watched.metrics.registry.get_sample_value("agent_rollbacks_total", {"agent_name": "A"}) == 1
    # Those that were under way still end badly.
    await watched.ends(await failures(moving, stamp, 5))
    assert await moving.stages() == [stage, "rolled_back"]


async def test_a_slow_new_side_is_left(watched: Watched) -> None:
    moving = watched.moving
    limits = RolloutLimits(calls=4, window=10, slowest_ms=500)
    stamp = await moving.move("cut_over", limits=limits)
    await watched.ends(await successes(moving, stamp, 4, ms=501))
    assert await moving.stages() == ["cut_over", "rolled_back"]


async def test_the_old_side_may_fail_as_it_likes(watched: Watched) -> None:
    moving = watched.moving
    stamp = await moving.move("canary", percent=0, limits=LIMITS)
    await watched.ends(await failures(moving, stamp, 10))
    assert await moving.stages() == ["canary"]
    assert (await watched.window("old")).ends[0].failed
    assert (await watched.window("new")).ends == ()


async def test_runs_of_before_the_trial_do_not_count(watched: Watched) -> None:
    moving = watched.moving
    before = await moving.move("shadow", limits=LIMITS)
    await moving.move("cut_over", limits=LIMITS)
    for stamp in (0, before):
        await watched.ends(await failures(moving, stamp, 10))
    assert (await watched.window("old"), await watched.window("new")) == (CallWindow(), CallWindow())


async def test_runs_of_an_earlier_trial_do_not_count_in_the_next_one(watched: Watched) -> None:
    moving = watched.moving
    first = await moving.move("canary", limits=LIMITS)
    await moving.move("rolled_back", limits=LIMITS)
    second = await moving.move(
        "canary", limits=LIMITS, target=TargetEndpoint(url="http://mended.example", protocol="jsonrpc-2.0")
    )
    await watched.ends(await successes(moving, second, 4))
    await watched.ends(await failures(moving, first, 10))
    assert await moving.stages() == ["canary", "rolled_back", "canary"]
    assert len((await watched.window()).ends) == 4


async def test_a_trial_goes_on_when_its_share_grows(watched: Watched) -> None:
    moving = watched.moving
    first = await moving.move("canary", limits=LIMITS)
    await watched.ends(await failures(moving, first, 3))
    second = await moving.move("cut_over", limits=LIMITS)
    await watched.ends(await failures(moving, second, 1))
    assert await moving.stages() == ["canary", "cut_over", "rolled_back"]


async def test_what_was_not_committed_leads_nowhere(watched: Watched) -> None:
    moving = watched.moving
    stamp = await moving.move("cut_over", limits=LIMITS)
    await watched.ends(await failures(moving, stamp, 5), commits=False)
    assert watched.asked == []


async def test_a_store_that_is_away_delays_the_way_back_only(watched: Watched) -> None:
    moving = watched.moving
    stamp = await moving.move("cut_over", limits=LIMITS)
    watched.is_away = True
    await watched.ends(await failures(moving, stamp, 5))
    assert await moving.stages() == ["cut_over", "rolled_back"]
    assert len(watched.asked) == 2


async def test_what_a_dead_bridge_has_noted_is_followed_at_the_next_start(watched: Watched) -> None:
    moving = watched.moving
    stamp = await moving.move("cut_over", limits=LIMITS)
    await watched.ends(await failures(moving, stamp, 5), commits=False)
    next_one = Watched(moving)
    await next_one.watch.begin()
    await next_one.settle()
    assert await moving.stages() == ["cut_over", "rolled_back"]


async def test_of_two_bridges_that_judge_alike_one_rolls_back(watched: Watched) -> None:
    moving = watched.moving
    stamp = await moving.move("cut_over", limits=LIMITS)
    other = Watched(moving)
    finished = await failures(moving, stamp, 5)
    await asyncio.gather(watched.ends(finished), other.ends(finished))
    assert await moving.stages() == ["cut_over", "rolled_back"]


async def test_every_error_is_judged(watched: Watched) -> None:
    stamp = await watched.moving.move("cut_over", limits=RolloutLimits(calls=1_000, window=1_000))
    of_the_side = {
        "agent_address_forbidden",
        "agent_transport_unavailable",
        "agent_url_invalid",
        "agent_program_unknown",
        "request_not_encodable",
    }
    for code in sorted(ERROR_CODES):
        before = len((await watched.window()).ends)
        await watched.ends([await watched.moving.ended(stamp, error=code)])
        counts = code not in NOT_CAUSED_BY_AGENT or code in of_the_side
        assert (code, len((await watched.window()).ends) - before) == (code, counts)


async def test_what_says_nothing_about_the_side_is_not_counted(watched: Watched) -> None:
    stamp = await watched.moving.move("cut_over", limits=LIMITS)
    statuses: list[ResultStatus] = ["cancelled", "unknown", "working", "progress"]
    await watched.ends([await watched.moving.ended(stamp, status) for status in statuses])
    assert (await watched.window()).ends == ()


async def test_a_question_of_the_agent_is_a_good_end(watched: Watched) -> None:
    stamp = await watched.moving.move("cut_over", limits=LIMITS)
    await watched.ends([await watched.moving.ended(stamp, "interrupted", ms=70)])
    assert [tuple(end) for end in (await watched.window()).ends] == [(False, 70)]
