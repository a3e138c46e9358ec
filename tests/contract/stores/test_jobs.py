"""What every store promises about jobs: a page counts once, jobs take turns, and an abandoned job is found again."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.contract.samples import NOW

from trunkline.clock import after
from trunkline.stores.base import Store
from trunkline.stores.port.automation.jobs import Job, JobPage, JobStatus, NewJob
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

LASTS = timedelta(seconds=30)


def job_id(number: int) -> str:
    return f"018f0000-0000-7000-9000-{number:012}"


async def put(store: Store, *numbers: int, most: int = 100) -> list[bool]:
    put: list[bool] = []
    for number in numbers:
        async with store.transaction() as tx:
            new = NewJob(id=job_id(number), request=b'{"a":1}', progress=b"{}", created_by="ann")
            put.append(await tx.jobs.put(new, most_unfinished=most))
    return put


async def claim(store: Store) -> Job | None:
    async with store.transaction() as tx:
        return await tx.jobs.claim(LASTS)


async def claimed(store: Store) -> Job:
    job = await claim(store)
    assert job is not None
    return job


async def write(store: Store, job: Job, status: JobStatus = "RUNNING", progress: bytes = b'{"n":1}') -> bool:
    async with store.transaction() as tx:
        page = JobPage(id=job.id, epoch=job.epoch, status=status, progress=progress)
        return await tx.jobs.write(page)


async def stored(store: Store, number: int) -> Job:
    job = await store.jobs.get(job_id(number))
    assert job is not None
    return job


async def test_a_job_is_kept_as_it_was_put(store: Store) -> None:
    assert await put(store, 1) == [True]
    assert await stored(store, 1) == Job(
        id=job_id(1), status="QUEUED", request=b'{"a":1}', progress=b"{}", created_by="ann", created_at=NOW
    )
    assert await store.jobs.get(job_id(2)) is None
    assert await store.jobs.get("no id") is None


async def test_jobs_are_listed_from_the_newest_page_by_page(store: Store) -> None:
    await put(store, 1, 2, 3)
    first = await store.jobs.page(limit=2)
    assert [job.id for job in first] == [job_id(3), job_id(2)]
    assert [job.id for job in await store.jobs.page(limit=2, before=first[-1].id)] == [job_id(1)]
    assert await store.jobs.page(limit=2, before="no id") in ([], first)


async def test_a_claimed_job_is_not_claimed_again_before_the_claim_ends(
    store: Store, clock: FakeClock
) -> None:
    await put(store, 1)
    assert await store.jobs.are_due()
    first = await claimed(store)
    assert (first.status, first.started_at, first.epoch) == ("RUNNING", NOW, 1)
    assert not await store.jobs.are_due()
    assert await claim(store) is None
    clock.advance(LASTS)
    again = await claimed(store)
    assert (again.id, again.epoch, again.started_at) == (first.id, 2, NOW)


async def test_a_page_of_a_claim_that_has_ended_does_not_count(store: Store, clock: FakeClock) -> None:
    await put(store, 1)
    first = await claimed(store)
    clock.advance(LASTS)
    second = await claimed(store)
    assert not await write(store, first, progress=b'{"n":2}')
    assert (await stored(store, 1)).progress == b"{}"
    assert await write(store, second, progress=b'{"n":3}')
    assert (await stored(store, 1)).progress == b'{"n":3}'


async def test_a_page_counts_once(store: Store) -> None:
    await put(store, 1)
    job = await claimed(store)
    assert await write(store, job)
    assert not await write(store, job, progress=b'{"n":2}')
    assert (await stored(store, 1)).progress == b'{"n":1}'


async def test_jobs_take_turns_page_by_page(store: Store, clock: FakeClock) -> None:
    await put(store, 1, 2)
    turns: list[str] = []
    for _ in range(4):
        clock.advance(timedelta(milliseconds=1))
        job = await claimed(store)
        turns.append(job.id)
        await write(store, job)
    assert turns == [job_id(1), job_id(2), job_id(1), job_id(2)]


async def test_an_ended_job_is_not_claimed_and_keeps_its_end(store: Store, clock: FakeClock) -> None:
    await put(store, 1)
    assert await write(store, await claimed(store), "COMPLETED")
    clock.advance(timedelta(days=1))
    assert await claim(store) is None
    job = await stored(store, 1)
    assert (job.status, job.finished_at, job.progress) == ("COMPLETED", NOW, b'{"n":1}')


async def test_a_cancelled_job_takes_no_page_of_the_process_that_has_it(store: Store) -> None:
    await put(store, 1)
    job = await claimed(store)
    async with store.transaction() as tx:
        cancelled = await tx.jobs.cancel(job_id(1))
        assert await tx.jobs.cancel(job_id(9)) is None
    assert cancelled is not None
    assert (cancelled.status, cancelled.finished_at) == ("CANCELLED", NOW)
    assert not await write(store, job)
    assert await claim(store) is None
    async with store.transaction() as tx:
        assert await tx.jobs.cancel(job_id(1)) == await stored(store, 1)


async def test_there_is_a_limit_of_unfinished_jobs(store: Store) -> None:
    assert await put(store, 1, 2, 3, most=2) == [True, True, False]
    await write(store, await claimed(store), "COMPLETED")
    assert await put(store, 4, 5, most=2) == [True, False]


async def test_the_limit_holds_for_jobs_at_the_same_time(store: Store) -> None:
    accepted = await asyncio.gather(*(put(store, number, most=3) for number in range(1, 9)))
    assert sum(each == [True] for each in accepted) == 3


async def test_two_claims_at_the_same_time_are_of_different_jobs(store: Store) -> None:
    await put(store, 1, 2)
    jobs = await asyncio.gather(*(claim(store) for _ in range(4)))
    assert sorted(job.id for job in jobs if job is not None) == [job_id(1), job_id(2)]


async def test_a_process_that_owns_the_store_ends_the_claims_of_an_earlier_one(store: Store) -> None:
    await put(store, 1)
    job = await claimed(store)
    async with store.transaction() as tx:
        await tx.jobs.release()
    assert (await claimed(store)).id == job.id
    assert not await write(store, job)


async def test_jobs_that_ended_before_a_time_are_deleted(store: Store, clock: FakeClock) -> None:
    await put(store, 1, 2, 3)
    for _ in range(2):
        await write(store, await claimed(store), "COMPLETED")
    clock.advance(timedelta(days=1))
    async with store.transaction() as tx:
        assert await tx.jobs.delete(NOW, 10) == 0
        assert await tx.jobs.delete(after(NOW, timedelta(seconds=1)), 1) == 1
        assert await tx.jobs.delete(after(NOW, timedelta(seconds=1)), 10) == 1
    assert [job.id for job in await store.jobs.page(limit=9)] == [job_id(3)]
