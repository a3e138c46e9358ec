"""What every store promises about what has happened to agents, and how they were checked and compared."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest
from tests.contract.samples import NOW, id_of, insert, new_run, run_id, transition, write
from tests.contract.stores.test_agents import FULL

from trunkline.clock import after
from trunkline.ids import RunId
from trunkline.stores.base import Store
from trunkline.stores.port.agents.agent_events import (
    AgentEvent,
    AgentEventKind,
    CheckRecord,
    ComparisonRecord,
    NewAgentEvent,
)
from trunkline.stores.postgres import open_postgres
from trunkline.stores.postgres.database.connection import connect
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

A, B = id_of("a"), id_of("b")
# What one database or the other refuses.
ODD = "ü 漢字 \u0000 \u001a"
WAITING = "SELECT count(*) FROM pg_locks WHERE relation = 'agent_events'::regclass AND NOT granted"


def new_event(agent_id: str, kind: AgentEventKind = "migration", data: bytes = b"{}") -> NewAgentEvent:
    return NewAgentEvent(agent_id=agent_id, agent=ODD, kind=kind, who=ODD, why=ODD, data=data)


async def put_events(store: Store, *events: NewAgentEvent) -> list[AgentEvent]:
    async with store.transaction() as tx:
        return await tx.agent_events.put(events)


def check(number: int, agent_id: str = A, *, grade: str = "A", active: bool = False) -> CheckRecord:
    return CheckRecord(
        id=run_id(number),
        agent_id=agent_id,
        at=NOW,
        url="http://a.example/" + ODD,
        protocol="jsonrpc-2.0",
        active=active,
        grade=grade,
        passed=grade != "F",
        report=b"\x00{}",
    )


async def put_check(store: Store, made: CheckRecord, keep: int = 10) -> CheckRecord | None:
    async with store.transaction() as tx:
        return await tx.checks.put(made, keep)


def comparison(number: int, agent_id: str = A, *, since: int = 1, verdict: str = "same") -> ComparisonRecord:
    return ComparisonRecord(
        id=run_id(number),
        agent_id=agent_id,
        since=since,
        run_id=RunId(run_id(7)),
        step=ODD,
        at=NOW,
        verdict=verdict,
        record=b"\x00{}",
    )


async def compare(store: Store, *made: ComparisonRecord, keep: int = 10) -> None:
    async with store.transaction() as tx:
        await tx.comparisons.put(made, keep)


def numbers(records: Sequence[CheckRecord] | Sequence[ComparisonRecord]) -> list[int]:
    return [int(record.id[-12:]) for record in records]


async def test_events_are_numbered_without_gaps_and_read_as_they_were_written(
    store: Store, clock: FakeClock
) -> None:
    assert await store.agent_events.last_id() == 0
    first, second = await put_events(store, new_event(A, data=b"\x00\xff"), new_event(B, "card_changed"))
    assert first == new_event(A, data=b"\x00\xff").numbered(1, NOW)
    assert (second.id, second.kind) == (2, "card_changed")
    clock.advance(timedelta(seconds=1))
    (third,) = await put_events(store, new_event(A))
    assert (third.id, third.at) == (3, after(NOW, timedelta(seconds=1)))
    assert await store.agent_events.last_id() == 3
    assert await store.agent_events.page(limit=2) == [third, second]
    assert await store.agent_events.page(limit=2, before=2) == [first]
    assert await store.agent_events.page(limit=9, agent_id=A) == [third, first]
    assert await store.agent_events.page(limit=9, agent_id=A, before=3) == [first]
    (renamed,) = await put_events(store, msgspec.structs.replace(new_event(A), agent="renamed"))
    assert await store.agent_events.page(limit=9, agent="renamed") == [renamed]
    assert await store.agent_events.page(limit=9, agent=first.agent, agent_id=A) == [third, first]
    assert await store.agent_events.page(limit=1, agent=first.agent, before=3) == [second]
    assert await store.agent_events.page(limit=9, agent="nobody") == []


async def test_the_number_of_an_event_that_was_rolled_back_is_given_again(store: Store) -> None:
    async def fail() -> None:
        async with store.transaction() as tx:
            await tx.agent_events.put([new_event(A), new_event(B)])
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert await store.agent_events.last_id() == 0
    (event,) = await put_events(store, new_event(A))
    assert event.id == 1


async def test_migrations_are_found_after_an_event_and_the_last_of_each_agent(store: Store) -> None:
    first, _, third, fourth = await put_events(
        store, new_event(A), new_event(A, "grade_changed"), new_event(B), new_event(A, data=b"2")
    )
    assert await store.agent_events.migrations_since(0) == [first, third, fourth]
    assert await store.agent_events.migrations_since(3) == [fourth]
    assert await store.agent_events.latest_migrations([A, B, id_of("c")]) == {A: fourth, B: third}
    assert await store.agent_events.latest_migrations([]) == {}
    async with store.transaction() as tx:
        (fifth,) = await tx.agent_events.put([new_event(B)])
        assert await tx.agent_events.latest_migrations([B]) == {B: fifth}


async def test_no_smaller_number_appears_after_a_greater_one_was_seen(postgres_url: str) -> None:
    observer = await connect(postgres_url)
    async with open_postgres(postgres_url) as one, open_postgres(postgres_url) as two:
        async with one.transaction() as tx:
            await tx.agent_events.lock()
            late = asyncio.create_task(put_events(two, new_event(B)))
            while await observer.first(WAITING) != (1,) and not late.done():
                await asyncio.sleep(0.01)
            assert [event.id for event in await tx.agent_events.put([new_event(A)])] == [1]
        assert [event.id for event in await late] == [2]
        assert [event.agent_id for event in await one.agent_events.migrations_since(0)] == [A, B]
    await observer.close()


async def test_a_check_is_kept_and_names_the_one_before_that_asked_the_same(store: Store) -> None:
    first, second = check(1, grade="F"), check(2)
    assert await put_check(store, first) is None
    assert await put_check(store, check(3, B)) is None
    assert await put_check(store, check(4, active=True)) is None
    assert await put_check(store, second) == first
    elsewhere = msgspec.structs.replace(check(5), url="http://b.example")
    assert await put_check(store, elsewhere) is None
    assert await store.checks.last(A, "http://b.example", "jsonrpc-2.0") == elsewhere
    assert await store.checks.last(A, "http://b.example", "simple-a2a") is None
    assert numbers(await store.checks.page(A, limit=2)) == [5, 4]
    assert await store.checks.page(A, limit=9, before=run_id(4)) == [second, first]


async def test_only_the_last_checks_of_an_agent_are_kept(store: Store) -> None:
    await put_check(store, check(1, B))
    for number in range(2, 7):
        await put_check(store, check(number), keep=2)
    assert numbers(await store.checks.page(A, limit=9)) == [6, 5]
    assert numbers(await store.checks.page(B, limit=9)) == [1]


async def test_comparisons_are_listed_and_counted(store: Store) -> None:
    await compare(store)
    await compare(
        store, comparison(1), comparison(2, verdict="differs"), comparison(3, since=5), comparison(4, B)
    )
    assert await store.comparisons.page(A, limit=9, before=run_id(2)) == [comparison(1)]
    assert numbers(await store.comparisons.page(A, limit=2)) == [3, 2]
    assert numbers(await store.comparisons.page(A, limit=9, verdict="differs")) == [2]
    assert await store.comparisons.counts(A, 1) == {"same": 1, "differs": 1}
    assert await store.comparisons.counts(A, 2) == {}


async def test_only_the_last_comparisons_of_each_agent_are_kept(store: Store) -> None:
    await compare(store, comparison(1), comparison(2), comparison(3), comparison(4, B), keep=2)
    assert numbers(await store.comparisons.page(A, limit=9)) == [3, 2]
    await compare(store, comparison(5), keep=2)
    assert numbers(await store.comparisons.page(A, limit=9)) == [5, 3]
    assert numbers(await store.comparisons.page(B, limit=9)) == [4]


async def test_calls_of_both_sides_are_known_until_they_are_forgotten(store: Store) -> None:
    async with store.transaction() as tx:
        assert await tx.comparisons.lock_calls([A, B]) == {}
        await tx.comparisons.put_calls({(A, "old"): b"1", (A, "new"): b"2", (B, "new"): b"3"})
        await tx.comparisons.put_calls({(A, "new"): b"4"})
        assert await tx.comparisons.lock_calls([A]) == {(A, "old"): b"1", (A, "new"): b"4"}
    assert await store.comparisons.calls(A) == {"old": b"1", "new": b"4"}
    async with store.transaction() as tx:
        await tx.comparisons.delete_calls(A)
    assert await store.comparisons.calls(A) == {}
    assert await store.comparisons.calls(B) == {"new": b"3"}


async def test_two_bridges_count_the_calls_of_a_side_one_after_the_other(postgres_url: str) -> None:
    async def count(store: Store) -> None:
        async with store.transaction() as tx:
            known = (await tx.comparisons.lock_calls([A])).get((A, "new"), b"0")
            await tx.comparisons.put_calls({(A, "new"): str(int(known) + 1).encode()})

    async with open_postgres(postgres_url) as one, open_postgres(postgres_url) as two:
        async with asyncio.TaskGroup() as group:
            for store in (one, two) * 4:
                group.create_task(count(store))
        assert await one.comparisons.calls(A) == {"new": b"8"}


async def test_a_deleted_agent_leaves_only_what_has_happened_to_it(store: Store) -> None:
    agent = FULL.id
    async with store.transaction() as tx:
        await tx.agents.insert(FULL)
        await tx.comparisons.put_calls({(agent, "old"): b"1"})
    await put_check(store, check(1, agent))
    await compare(store, comparison(1, agent))
    (event,) = await put_events(store, new_event(agent))
    async with store.transaction() as tx:
        assert await tx.agents.delete(agent)
    assert await store.checks.page(agent, limit=9) == []
    assert await store.comparisons.page(agent, limit=9) == []
    assert await store.comparisons.calls(agent) == {}
    assert await store.agent_events.page(limit=9, agent_id=agent) == [event]


async def test_unfinished_runs_of_before_an_event_are_counted(store: Store) -> None:
    stamped = [
        msgspec.structs.replace(new_run(number), routing_version=version)
        for number, version in ((2, 4), (3, 5))
    ]
    await insert(store, new_run(1), *stamped, new_run(4))
    await write(store, transition(4, status="COMPLETED", finished_at=NOW))
    assert [await store.runs.unfinished_before(routes) for routes in (0, 4, 5, 6)] == [0, 1, 2, 3]
