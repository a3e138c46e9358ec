"""What every store promises about who has changed what, which processes live, and how much waits."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.contract.samples import NOW, new_run
from tests.contract.stores.test_dead_letters import letter

from trunkline.agents import Agent
from trunkline.clock import Instant, after
from trunkline.id_generation import new_id
from trunkline.messages import OutgoingMessage
from trunkline.stores.base import Store
from trunkline.stores.port.operations import (
    AuditEntry,
    AuditFilter,
    AuditKind,
    AuditPosition,
    NewAuditEntry,
    Process,
    SeenProcess,
)
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

ALIVE_FOR = timedelta(seconds=15)
KEEP = timedelta(hours=1)


def entry(
    number: int, *, who: str | None = "ci", kind: AuditKind = "run", subject: str = "r-1"
) -> NewAuditEntry:
    return NewAuditEntry(
        id=f"018f0000-0000-7000-8000-{number:012}",
        who=who,
        kind=kind,
        action="cancel",
        subject=subject,
        detail=b'{"step":"a"}',
    )


def process(number: int, *roles: str, pool: str | None = None) -> Process:
    return Process(
        id=f"018f0000-0000-7000-8000-{number:012}",
        name=f"host:{number}",
        roles=roles or ("api", "executor"),
        pool=pool,
        version="1.2.3",
        started_at=NOW,
    )


async def put(store: Store, *entries: NewAuditEntry) -> None:
    async with store.transaction() as tx:
        await tx.audit.put(entries)


async def note(store: Store, *processes: Process) -> None:
    async with store.transaction() as tx:
        for each in processes:
            await tx.processes.heartbeat(each, ALIVE_FOR, KEEP)


def seen(of: Process, at: Instant, *, alive: bool) -> SeenProcess:
    return SeenProcess(
        id=of.id,
        name=of.name,
        roles=of.roles,
        pool=of.pool,
        version=of.version,
        started_at=of.started_at,
        seen_at=at,
        alive=alive,
    )


async def test_entries_come_back_as_they_were_put_newest_first(store: Store) -> None:
    odd = entry(3, who=None, subject="a\x00 name")
    await put(store, entry(1), entry(2), odd)
    written = [entry.written(NOW) for entry in (odd, entry(2), entry(1))]
    assert await store.audit.page(limit=10) == written
    assert await store.audit.page(limit=2) == written[:2]
    assert await store.audit.page(limit=10, before=entry(2).id) == written[2:]
    assert await store.audit.page(limit=10, before=entry(1).id) == []


async def test_an_entry_that_is_put_again_stays_the_one_that_it_is(store: Store, clock: FakeClock) -> None:
    await put(store, entry(1))
    clock.advance(timedelta(hours=1))
    await put(store, entry(1, who="another"), entry(2))
    later = after(NOW, timedelta(hours=1))
    assert await store.audit.page(limit=10) == [entry(2).written(later), entry(1).written(NOW)]


async def test_entries_are_found_by_who_by_kind_and_by_subject(store: Store) -> None:
    mine = entry(1, who="me", kind="agent", subject="writer")
    other = entry(2, who="you", kind="agent", subject="reader")
    run = entry(3, who="me")
    await put(store, mine, other, run)

    def written(*entries: NewAuditEntry) -> list[AuditEntry]:
        return [each.written(NOW) for each in entries]

    assert await store.audit.page(limit=10, who="me") == written(run, mine)
    assert await store.audit.page(limit=10, kind="agent") == written(other, mine)
    assert await store.audit.page(limit=10, subject="reader") == written(other)
    assert await store.audit.page(limit=10, who="me", kind="agent") == written(mine)
    assert await store.audit.page(limit=10, who="me", before=run.id) == written(mine)
    assert await store.audit.page(limit=10, who="nobody") == []


async def test_entries_are_deleted_by_their_age_oldest_first_and_few_at_a_time(
    store: Store, clock: FakeClock
) -> None:
    await put(store, entry(1), entry(2))
    clock.advance(timedelta(hours=1))
    await put(store, entry(3))

    async def delete(limit: int) -> int:
        async with store.transaction() as tx:
            return await tx.audit.delete(after(NOW, timedelta(hours=1)), limit)

    assert [await delete(1), await delete(10), await delete(10)] == [1, 1, 0]
    assert [each.id for each in await store.audit.page(limit=10)] == [entry(3).id]


async def test_an_entry_of_a_transaction_that_fails_is_not_there(store: Store) -> None:
    async def fail() -> None:
        async with store.transaction() as tx:
            await tx.audit.put([entry(1)])
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    assert await store.audit.page(limit=10) == []


async def test_processes_are_listed_the_last_to_start_first(store: Store) -> None:
    bridge = process(2, "bridge", pool="gpu")
    await note(store, process(1), bridge)
    assert await store.processes.page(limit=10) == [
        seen(bridge, NOW, alive=True),
        seen(process(1), NOW, alive=True),
    ]
    assert len(await store.processes.page(limit=1)) == 1


async def test_a_process_without_a_heartbeat_is_not_alive_and_forgotten_later(
    store: Store, clock: FakeClock
) -> None:
    await note(store, process(1), process(2))
    clock.advance(ALIVE_FOR)
    await note(store, process(2))
    assert await store.processes.page(limit=10) == [
        seen(process(2), after(NOW, ALIVE_FOR), alive=True),
        seen(process(1), NOW, alive=False),
    ]
    clock.advance(KEEP)
    await note(store, process(2))
    assert [each.id for each in await store.processes.page(limit=10)] == [process(2).id]


async def test_a_process_that_stops_is_gone_at_once(store: Store) -> None:
    await note(store, process(1), process(2))
    async with store.transaction() as tx:
        await tx.processes.delete(process(1).id)
    assert [each.id for each in await store.processes.page(limit=10)] == [process(2).id]


async def test_the_pools_that_agents_are_in_are_listed_once_each_by_name(store: Store) -> None:
    async with store.transaction() as tx:
        for number, pool in enumerate(("gpu", None, "a 漢字 pool", "gpu", "Zone")):
            await tx.agents.insert(
                Agent(
                    id=new_id(),
                    name=f"A{number}",
                    url="http://a.example",
                    created_at=NOW,
                    updated_at=NOW,
                    pool=pool,
                )
            )
    assert await store.agents.pools(limit=10) == ["Zone", "a 漢字 pool", "gpu"]
    assert await store.agents.pools(limit=1) == ["Zone"]


async def test_queues_are_counted_up_to_the_bound(store: Store) -> None:
    async with store.transaction() as tx:
        await tx.runs.insert([new_run(number) for number in range(1, 6)])
        await tx.dead_letters.put([letter(number) for number in range(1, 5)])
        await tx.outbox.put([OutgoingMessage("topic", "key", b"value")])
    found = await store.backlog.queues(3)
    assert found.runs["PENDING"] == 3
    assert found.runs["COMPLETED"] == 0
    assert (found.dead_letters, found.outbox, found.inbox, found.timers_due) == (3, 1, 0, 0)
    assert (await store.backlog.queues(100)).runs["PENDING"] == 5


async def test_entries_are_read_by_their_times_oldest_first(store: Store, clock: FakeClock) -> None:
    await put(store, entry(5), entry(2))
    clock.advance(timedelta(seconds=1))
    await put(store, entry(1, who="ann", kind="key", subject="k"), entry(9))
    later = after(NOW, timedelta(seconds=1))
    written = [
        entry(2).written(NOW),
        entry(5).written(NOW),
        entry(1, who="ann", kind="key", subject="k").written(later),
        entry(9).written(later),
    ]
    begin = AuditPosition(Instant(0), "")
    assert await store.audit.page_by_time(limit=10, after=begin) == written
    assert await store.audit.page_by_time(limit=2, after=begin) == written[:2]
    assert await store.audit.page_by_time(limit=10, after=AuditPosition(NOW, entry(2).id)) == written[1:]
    assert await store.audit.page_by_time(limit=10, after=AuditPosition(later, "")) == written[2:]
    for where in (AuditFilter(who="ann"), AuditFilter(kind="key"), AuditFilter(subject="k", who="ann")):
        assert await store.audit.page_by_time(limit=10, after=begin, where=where) == [written[2]]
