"""What every store promises about agents' latest work: sums for every minute, the last calls, and what lists show."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest
from tests.contract.bridges import ME, answer, claim, done, register, taken
from tests.contract.samples import NOW, queue, run_id, task

from trunkline.clock import Instant, after
from trunkline.id_generation import new_id
from trunkline.stores.base import ClaimedTask, Store, TaskAnswer
from trunkline.stores.port.agents.activity import AgentMinute, begin_of, minute_of
from trunkline.stores.port.agents.agent_events import CheckRecord
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

OTHER = "another process"
MINUTE = minute_of(NOW)
SECOND = timedelta(seconds=1)


def minute(
    agent: str = "A",
    number: int = MINUTE,
    *,
    calls: int = 1,
    failures: int = 0,
    total_ms: int = 10,
    longest_ms: int = 10,
) -> AgentMinute:
    return AgentMinute(
        agent=agent,
        minute=number,
        calls=calls,
        failures=failures,
        total_ms=total_ms,
        longest_ms=longest_ms,
    )


async def note(store: Store, *minutes: AgentMinute, bridge: str = ME) -> None:
    async with store.transaction() as tx:
        await tx.activity.record(bridge, minutes)


def ended(
    claimed: ClaimedTask, at: Instant, outcome: str = "success", error_code: str | None = None
) -> TaskAnswer:
    return msgspec.structs.replace(
        done(claimed), called_at=NOW, ended_at=at, outcome=outcome, error_code=error_code
    )


async def called(store: Store, numbers: Sequence[int], agent: str = "A") -> list[ClaimedTask]:
    await queue(store, *(task(number, agent=agent) for number in numbers))
    return sorted(await claim(store), key=lambda each: each.key.task_id)


# --- minutes


async def test_a_minute_adds_up_over_transactions_and_bridges(store: Store) -> None:
    await note(store, minute(calls=2, failures=1, total_ms=30, longest_ms=20))
    await note(store, minute(calls=3, total_ms=50, longest_ms=40))
    await note(store, minute(total_ms=5, longest_ms=5), bridge=OTHER)
    assert await store.activity.minutes(MINUTE, ["A"]) == [
        minute(calls=6, failures=1, total_ms=85, longest_ms=40)
    ]


async def test_what_one_transaction_notes_twice_counts_twice(store: Store) -> None:
    async with store.transaction() as tx:
        await tx.activity.record(ME, [minute()])
        await tx.activity.record(ME, [minute(), minute("B")])
    found = {each.agent: each.calls for each in await store.activity.minutes(MINUTE, ["A", "B"])}
    assert found == {"A": 2, "B": 1}


async def test_minutes_of_other_agents_and_earlier_ones_are_left_out(store: Store) -> None:
    await note(store, minute(number=MINUTE - 1), minute(), minute("B"), minute(number=MINUTE + 1))
    assert await store.activity.minutes(MINUTE, ["A", "not registered"]) == [
        minute(),
        minute(number=MINUTE + 1),
    ]


async def test_old_minutes_are_forgotten(store: Store) -> None:
    await note(store, minute(number=MINUTE - 1), minute(), minute("B", MINUTE - 2))
    async with store.transaction() as tx:
        await tx.activity.forget(begin_of(MINUTE))
    assert await store.activity.minutes(0, ["A", "B"]) == [minute()]


# --- the last calls


async def test_the_last_calls_of_an_agent_are_listed_newest_first_page_by_page(store: Store) -> None:
    await register(store, "A")
    one, two, three = await called(store, [1, 2, 3])
    await answer(store, ended(three, after(NOW, SECOND)), ended(one, after(NOW, 2 * SECOND)))
    await answer(store, ended(two, after(NOW, 2 * SECOND), "error", "agent_timeout"))
    first = await store.activity.calls("A", limit=2)
    assert [each.run_id for each in first] == [run_id(2), run_id(1)]
    assert [each.run_id for each in await store.activity.calls("A", limit=2, before=first[-1].place)] == [
        run_id(3)
    ]
    failed = first[0]
    assert (failed.step, failed.attempt, failed.outcome, failed.error_code) == (
        two.task.step,
        1,
        "error",
        "agent_timeout",
    )
    assert (failed.called_at, failed.ended_at) == (NOW, after(NOW, 2 * SECOND))


async def test_a_call_that_goes_on_is_not_among_the_last_ones_and_keeps_when_it_began(
    store: Store, clock: FakeClock
) -> None:
    await register(store, "A")
    (first,) = await called(store, [1])
    assert first.called_at is None
    await answer(store, msgspec.structs.replace(taken(first, poll_at=clock.now()), called_at=NOW))
    assert await store.activity.calls("A", limit=10) == []
    (again,) = await claim(store)
    assert again.called_at == NOW
    late = msgspec.structs.replace(ended(again, after(NOW, SECOND)), called_at=after(NOW, SECOND))
    await answer(store, late)
    assert [each.called_at for each in await store.activity.calls("A", limit=10)] == [NOW]


async def test_the_last_call_of_each_agent_is_found(store: Store) -> None:
    for agent in ("A", "B", "C"):
        await register(store, agent)
    one, two = await called(store, [1, 2])
    (other,) = await called(store, [3], agent="B")
    await answer(store, ended(one, after(NOW, SECOND)), ended(two, NOW), ended(other, NOW, "interrupted"))
    found = await store.activity.last_calls(["A", "B", "C"])
    assert {agent: (each.run_id, each.outcome) for agent, each in found.items()} == {
        "A": (run_id(1), "success"),
        "B": (run_id(3), "interrupted"),
    }


# --- what a list shows


async def test_the_loads_of_many_agents_are_those_of_each(store: Store) -> None:
    await register(store, "A", 1)
    await register(store, "B")
    await queue(store, task(1), task(2))
    await claim(store)
    loads = await store.agents.loads(["A", "B"])
    assert (loads["A"].in_flight, loads["A"].queued) == (1, 1)
    assert loads == {name: await store.agents.load(name) for name in ("A", "B")}


async def test_the_grade_of_an_agent_is_that_of_its_last_check(store: Store) -> None:
    agent, unchecked = await register(store, "A"), await register(store, "B")
    for grade in ("F", "B"):
        check = CheckRecord(
            id=new_id(),
            agent_id=agent.id,
            at=NOW,
            url="http://a",
            protocol="simple-a2a",
            active=False,
            grade=grade,
            passed=grade != "F",
            report=b"{}",
        )
        async with store.transaction() as tx:
            await tx.checks.put(check, keep=10)
    grades = await store.checks.last_grades([agent.id, unchecked.id])
    assert {each: (found.grade, found.passed) for each, found in grades.items()} == {agent.id: ("B", True)}
