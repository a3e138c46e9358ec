"""Two bridges at the same agent's limits in the same moment: neither a token nor a failure is counted twice or lost."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.contract.bridges import ME, hold, register
from tests.contract.samples import queue, task

from trunkline.agents import AgentOptions, BreakerPolicy, RateLimit
from trunkline.agents.call_limits.breaker import CallEnd
from trunkline.clock import after
from trunkline.stores.base import BreakerChange, RecordedCallEnd, Store
from trunkline.stores.postgres.database.connection import connect
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

OTHER = "another process"
POLICY = BreakerPolicy(failures=3)
BAD = RecordedCallEnd("A", POLICY, CallEnd(failed=True, error="HTTP 503"))
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


async def note(store: Store, *calls: RecordedCallEnd) -> list[BreakerChange]:
    async with store.transaction() as tx:
        return await tx.agents.record_calls(calls)


async def test_a_token_that_is_being_taken_is_not_there_for_another_bridge(
    one: Store, two: Store, clock: FakeClock
) -> None:
    await register(one, "A", options=AgentOptions(rate=RateLimit(per_second=0.001, burst=2)))
    await queue(one, *(task(number) for number in range(1, 5)))
    await hold(one, ME)
    await hold(two, OTHER)
    async with one.transaction() as first:
        assert len(await first.tasks.claim(ME, 100)) == 2
        async with two.transaction() as second:
            assert await second.tasks.claim(OTHER, 100) == []
            again_at = await second.tasks.next_poll()
    # In a moment, not when the next token comes: who knows whether the other one has taken any.
    assert again_at is not None
    assert again_at < after(clock.now(), timedelta(seconds=1))
    async with two.transaction() as second:
        assert await second.tasks.claim(OTHER, 100) == []


async def test_who_claims_does_not_wait_for_who_notes(one: Store, two: Store, clock: FakeClock) -> None:
    await register(one, "A", options=AgentOptions(breaker=POLICY))
    await queue(one, task(1), task(2, agent="B"))
    await hold(two, OTHER)
    await note(one, BAD)
    async with one.transaction() as first:
        await first.agents.record_calls([BAD])
        async with two.transaction() as second:
            claimed = await second.tasks.claim(OTHER, 100)
            again_at = await second.tasks.next_poll()
    assert [each.task.agent for each in claimed] == ["B"]
    assert again_at is not None
    assert again_at < after(clock.now(), timedelta(seconds=1))
    async with two.transaction() as second:
        assert [each.task.agent for each in await second.tasks.claim(OTHER, 100)] == ["A"]


@pytest.mark.parametrize("known", [0, 1], ids=["the first failures", "after another failure"])
async def test_failures_that_are_noted_at_once_add_up(
    one: Store, two: Store, postgres_url: str, known: int
) -> None:
    await register(one, "A", options=AgentOptions(breaker=POLICY))
    await note(one, *[BAD] * known)
    lock_holder = await connect(postgres_url)
    async with one.transaction() as first:
        assert await first.agents.record_calls([BAD]) == []
        late = asyncio.create_task(note(two, *[BAD] * (2 - known)))
        while await lock_holder.first(WAITING) == (0,):
            await asyncio.sleep(0.01)
    assert [change.status for change in await late] == ["open"]
    await lock_holder.close()


async def test_calls_that_end_well_are_noted_without_a_wait(one: Store, two: Store) -> None:
    await register(one, "A", options=AgentOptions(breaker=POLICY))
    well = RecordedCallEnd("A", POLICY, CallEnd(failed=False))
    async with one.transaction() as first:
        await first.agents.record_calls([BAD])
        assert await note(two, well) == []
    assert (await one.agents.load("A")).state.breaker.failures == 1
