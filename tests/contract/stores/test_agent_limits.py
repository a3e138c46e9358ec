"""What every store promises about an agent's rate and breaker: all bridges share them, by the store's clock."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import msgspec
import pytest
from tests.contract.bridges import DEAD, ME, answer, claim, done, hold, reclaim, register, taken
from tests.contract.samples import queue, queued, run_id, task, transition, write

from trunkline.agents import Agent, AgentOptions, BreakerPolicy, RateLimit
from trunkline.agents.call_limits.breaker import CLOSED, CallEnd
from trunkline.agents.call_limits.limit_state import INITIAL_STATE
from trunkline.clock import Instant, after
from trunkline.stores.base import BreakerChange, ClaimedTask, RecordedCallEnd, Store
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

OTHER = "another process"
POLICY = BreakerPolicy(failures=2, open_ms=10_000, probes=1)
WITH_BREAKER = AgentOptions(breaker=POLICY)
SECOND = timedelta(seconds=1)
BAD = CallEnd(failed=True, error="HTTP 503")
OK = CallEnd(failed=False)


async def note(store: Store, *ends: CallEnd, agent: str = "A") -> list[BreakerChange]:
    async with store.transaction() as tx:
        return await tx.agents.record_calls([RecordedCallEnd(agent, POLICY, end) for end in ends])


async def claim_and_look(store: Store, owner: str = ME) -> tuple[list[ClaimedTask], Instant | None]:
    """What a bridge claims, and when it is to look again."""
    await hold(store, owner)
    async with store.transaction() as tx:
        return await tx.tasks.claim(owner, 100), await tx.tasks.next_poll()


def rate(per_second: float, burst: int = 1) -> AgentOptions:
    return AgentOptions(rate=RateLimit(per_second=per_second, burst=burst))


# --- rate


async def test_a_queue_drains_at_its_agents_rate_over_all_bridges(store: Store, clock: FakeClock) -> None:
    await register(store, "A", options=rate(2, burst=3))
    await queue(store, *(task(number) for number in range(1, 7)))
    first, again_at = await claim_and_look(store)
    assert len(first) == 3
    assert again_at == after(clock.now(), SECOND / 2)
    assert await claim(store, OTHER) == []
    clock.advance(SECOND / 2)
    assert len(await claim(store, OTHER)) == 1
    assert await claim(store) == []
    clock.advance(SECOND / 2 - timedelta(microseconds=2))
    assert await claim(store) == []
    clock.advance(timedelta(microseconds=2))
    assert len(await claim(store)) == 1


async def test_a_token_is_taken_for_each_task_that_is_claimed_in_the_transaction_that_made_it(
    store: Store, clock: FakeClock
) -> None:
    await register(store, "A", options=rate(1, burst=2))
    await queue(store, task(9, agent="not registered"))
    await claim(store)
    await hold(store, ME)
    async with store.transaction() as tx:
        await tx.tasks.put([queued(task(9, step=step)) for step in ("b", "c", "d")])
        assert len(await tx.tasks.claim(ME, 100)) == 2
        assert await tx.tasks.next_poll() == after(clock.now(), SECOND)
    clock.advance(SECOND)
    assert len(await claim(store)) == 1


async def test_the_claim_names_no_time_when_no_task_waits_for_a_token(store: Store) -> None:
    await register(store, "A", options=rate(1))
    await queue(store, task(1))
    claimed, again_at = await claim_and_look(store)
    assert (len(claimed), again_at) == (1, None)


async def test_a_rate_does_not_hold_up_other_agents(store: Store) -> None:
    await register(store, "A", options=rate(1))
    await register(store, "B")
    await queue(store, *(task(number, agent="A") for number in range(1, 4)))
    await queue(store, *(task(number, agent="B") for number in range(4, 9)))
    assert [each.task.agent for each in await claim(store)].count("B") == 5


async def test_a_question_how_a_task_stands_takes_no_token(store: Store, clock: FakeClock) -> None:
    await register(store, "A", options=rate(0.001))
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await answer(store, taken(claimed, poll_at=clock.now()))
    (asked,) = await claim(store)
    assert asked.remote_task_id == "remote-1"


async def test_slots_and_tokens_both_hold(store: Store, clock: FakeClock) -> None:
    await register(store, "A", 1, options=rate(1, burst=5))
    await queue(store, task(1), task(2))
    claimed, again_at = await claim_and_look(store)
    # Tokens are there: the end of the call is what lets the next one begin.
    assert (len(claimed), again_at) == (1, None)
    await answer(store, done(claimed[0]))
    assert len(await claim(store)) == 1
    clock.advance(SECOND)


async def test_tokens_are_shared_by_pools(store: Store, clock: FakeClock) -> None:
    await register(store, "A", options=rate(1, burst=2))
    await queue(store, *(task(number, pool="p") for number in (1, 2)))
    await queue(store, *(task(number, pool="q") for number in (3, 4)))
    assert len(await claim(store)) == 2
    assert await claim(store, pools=["q"]) == []
    clock.advance(SECOND)
    assert len(await claim(store, pools=["q"])) == 1


async def test_a_claim_that_is_rolled_back_takes_no_token(store: Store) -> None:
    await register(store, "A", options=rate(0.001))
    await queue(store, task(1))
    await hold(store, ME)
    with suppress(RuntimeError):
        async with store.transaction() as tx:
            assert len(await tx.tasks.claim(ME, 100)) == 1
            raise RuntimeError
    assert len(await claim(store)) == 1


# --- the breaker


async def test_failures_that_two_bridges_note_open_one_breaker(store: Store, clock: FakeClock) -> None:
    await register(store, "A", options=WITH_BREAKER)
    assert await note(store, BAD) == []
    reason = "2 consecutive failures, the last one: HTTP 503"
    assert await note(store, BAD) == [BreakerChange("A", "open", reason)]
    await queue(store, task(1))
    claimed, again_at = await claim_and_look(store)
    assert (claimed, again_at) == ([], after(clock.now(), timedelta(seconds=10)))
    assert await claim(store, OTHER) == []
    load = await store.agents.load("A")
    assert (load.queued, load.in_flight) == (1, 0)
    assert (load.state.breaker.status, load.state.breaker.reason) == ("open", reason)


async def test_an_open_breaker_holds_up_no_other_agent(store: Store) -> None:
    await register(store, "A", options=WITH_BREAKER)
    await register(store, "B", options=WITH_BREAKER)
    await note(store, BAD, BAD)
    await queue(store, task(1, agent="A"), task(2, agent="B"), task(3, agent="not registered"))
    assert sorted(each.task.agent for each in await claim(store)) == ["B", "not registered"]


async def test_what_the_agent_has_taken_is_asked_for_while_the_breaker_is_open(
    store: Store, clock: FakeClock
) -> None:
    await register(store, "A", options=WITH_BREAKER)
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await answer(store, taken(claimed, poll_at=clock.now()))
    await note(store, BAD, BAD)
    (asked,) = await claim(store)
    assert asked.remote_task_id == "remote-1"


async def test_a_claim_knows_the_breaker_that_records_its_end(store: Store) -> None:
    await register(store, "A", options=WITH_BREAKER)
    await register(store, "B")
    await queue(store, task(1, agent="A"), task(2, agent="B"))
    policies = {each.task.agent: (each.breaker, each.is_probe) for each in await claim(store)}
    assert policies == {"A": (POLICY, False), "B": (None, False)}


async def test_one_bridge_probes_and_its_success_lets_the_others_call(store: Store, clock: FakeClock) -> None:
    await register(store, "A", options=WITH_BREAKER)
    await note(store, BAD, BAD)
    await queue(store, *(task(number) for number in range(1, 5)))
    clock.advance(timedelta(seconds=10))
    (probe,) = await claim(store)
    assert probe.is_probe
    assert await claim(store, OTHER) == []
    assert await note(store, OK) == [BreakerChange("A", "closed")]
    assert len(await claim(store, OTHER)) == 3


async def test_a_probe_that_fails_opens_the_breaker_again(store: Store, clock: FakeClock) -> None:
    await register(store, "A", options=WITH_BREAKER)
    await note(store, BAD, BAD)
    await queue(store, task(1), task(2))
    clock.advance(timedelta(seconds=10))
    await claim(store)
    assert await note(store, BAD) == [BreakerChange("A", "open", "the probe failed: HTTP 503")]
    claimed, again_at = await claim_and_look(store)
    assert (claimed, again_at) == ([], after(clock.now(), timedelta(seconds=10)))


async def test_a_probe_whose_bridge_died_does_not_block_for_ever(store: Store, clock: FakeClock) -> None:
    await register(store, "A", options=WITH_BREAKER)
    await note(store, BAD, BAD)
    await queue(store, task(1), task(2))
    clock.advance(timedelta(seconds=10))
    (probe,) = await claim(store, DEAD)
    await reclaim(store)
    claimed, again_at = await claim_and_look(store)
    assert (claimed, again_at) == ([], after(clock.now(), timedelta(seconds=10)))
    clock.advance(timedelta(seconds=10))
    again = await claim(store)
    assert [(each.key, each.epoch, each.is_probe) for each in again] == [(probe.key, 2, True)]


async def test_an_agent_that_answers_leaves_nothing_in_the_store(store: Store) -> None:
    await register(store, "A", options=WITH_BREAKER)
    assert await note(store, OK, OK, OK) == []
    assert (await store.agents.load("A")).state == INITIAL_STATE


async def test_a_run_whose_task_waits_for_a_breaker_has_a_reason_to_wake(store: Store) -> None:
    await register(store, "A", options=WITH_BREAKER)
    await note(store, BAD, BAD)
    await queue(store, task(1))
    await write(store, transition(1))
    await claim(store)
    backlog = await store.backlog.count()
    assert backlog.without_wake_reason == 0
    assert backlog.queued_by_agent == {"A": 1}


async def test_the_backlog_has_the_breakers_of_the_agents_that_have_one(store: Store) -> None:
    await register(store, "A", options=WITH_BREAKER)
    await register(store, "B", options=WITH_BREAKER)
    await register(store, "C")
    await register(store, "D", options=rate(1))
    await note(store, BAD, BAD, agent="B")
    assert (await store.backlog.count()).breakers == {"A": "closed", "B": "open"}


# --- what ends it


async def test_a_reset_closes_the_breaker_and_fills_the_bucket(store: Store) -> None:
    both = AgentOptions(breaker=POLICY, rate=RateLimit(per_second=0.001, burst=1))
    await register(store, "A", options=both)
    await queue(store, task(1), task(2))
    assert len(await claim(store)) == 1
    await note(store, BAD, BAD)
    async with store.transaction() as tx:
        await tx.agents.reset_limits("A")
    assert (await store.agents.load("A")).state == INITIAL_STATE
    assert len(await claim(store)) == 1


@pytest.mark.parametrize(
    "change", [{"name": "B"}, {"url": "http://b"}, {"options": AgentOptions(breaker=BreakerPolicy())}]
)
async def test_an_agent_under_another_name_url_or_policy_begins_afresh(
    store: Store, change: dict[str, object]
) -> None:
    agent = await register(store, "A", options=WITH_BREAKER)
    await note(store, BAD, BAD)
    async with store.transaction() as tx:
        assert await tx.agents.update(msgspec.structs.replace(agent, version=2, **change), 1)
    assert (await store.agents.load("A")).state == INITIAL_STATE


@pytest.mark.parametrize("options", [WITH_BREAKER, AgentOptions()])
async def test_what_is_known_stays_with_an_agent_that_gets_other_tags_or_skills(
    store: Store, options: AgentOptions
) -> None:
    agent = await register(store, "A", options=options)
    await note(store, BAD, BAD)
    changes = [{"tags": ("a", "\x00")}, {"skills": ("b",)}, {}]
    for version, change in enumerate(changes, start=2):
        changed: Agent = msgspec.structs.replace(
            agent, version=version, options=msgspec.structs.replace(options, **change)
        )
        async with store.transaction() as tx:
            assert await tx.agents.update(changed, version - 1)
        assert (await store.agents.load("A")).state.breaker.status == "open"


async def test_what_is_known_stays_with_an_agent_that_is_changed_otherwise(store: Store) -> None:
    agent = await register(store, "A", options=WITH_BREAKER)
    await note(store, BAD, BAD)
    async with store.transaction() as tx:
        assert await tx.agents.update(msgspec.structs.replace(agent, description="x", version=2), 1)
        other_version: Agent = msgspec.structs.replace(agent, url="http://b", version=2)
        assert not await tx.agents.update(other_version, 1)
    assert (await store.agents.load("A")).state.breaker.status == "open"


async def test_an_agent_that_is_registered_again_begins_afresh(store: Store) -> None:
    agent = await register(store, "A", options=WITH_BREAKER)
    await note(store, BAD, BAD)
    async with store.transaction() as tx:
        await tx.agents.delete(agent.id)
    await register(store, "A", options=WITH_BREAKER)
    assert (await store.agents.load("A")).state.breaker == CLOSED


async def test_the_load_of_an_agent_counts_what_is_queued_and_what_is_under_way(
    store: Store, clock: FakeClock
) -> None:
    await register(store, "A", 2)
    await queue(store, *(task(number) for number in range(1, 6)))
    first, _ = await claim(store)
    await answer(store, taken(first, poll_at=after(clock.now(), SECOND)))
    load = await store.agents.load("A")
    assert (load.in_flight, load.queued) == (2, 3)
    assert run_id(1) == first.task.run_id
