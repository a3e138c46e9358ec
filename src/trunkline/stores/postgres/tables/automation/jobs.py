"""Jobs."""

from __future__ import annotations

from datetime import timedelta

from trunkline.clock import Instant, after
from trunkline.stores.port.automation.jobs import FINAL_JOB_STATUSES, Job, JobPage, NewJob
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.text_encoding import HIGHEST_UUID, as_uuid, restored_row
from trunkline.stores.rows.operations import job

_COLUMNS = "id::text, status, request, progress, created_by, created_at, started_at, finished_at, epoch"
_JOB = f"SELECT {_COLUMNS} FROM jobs WHERE id = $1"  # noqa: S608 - constants of this module
_PAGE = f"SELECT {_COLUMNS} FROM jobs WHERE id < $1 ORDER BY id DESC LIMIT $2"  # noqa: S608 - as above
# Two transactions that put jobs wait for one another, so that each counts the other's.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('trunkline jobs', 0))"
_PUT = """
    INSERT INTO jobs(id, status, request, progress, created_by, created_at, due, epoch)
    SELECT $1::uuid, 'QUEUED', $2::bytea, $3::bytea, $4::text, $5::bigint, $5::bigint, 0
    WHERE (SELECT count(*) FROM (SELECT 1 FROM jobs WHERE due IS NOT NULL LIMIT $6) AS unfinished) < $6
"""
_CLAIM = f"""
    WITH next AS MATERIALIZED (
        SELECT id FROM jobs WHERE due <= $1 ORDER BY due, id LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    UPDATE jobs SET epoch = epoch + 1, due = $2, status = 'RUNNING', started_at = coalesce(started_at, $1)
    WHERE id = (SELECT id FROM next)
    RETURNING {_COLUMNS}
"""  # noqa: S608 - as above
_WRITE = """
    UPDATE jobs SET status = $3, progress = $4, due = $5, finished_at = $6, epoch = epoch + 1
    WHERE id = $1 AND epoch = $2
"""
_CANCEL = """
    UPDATE jobs SET status = 'CANCELLED', due = NULL, finished_at = $2, epoch = epoch + 1
    WHERE id = $1 AND due IS NOT NULL
"""
_DELETE = """
    DELETE FROM jobs WHERE id IN (
        SELECT id FROM jobs WHERE finished_at IS NOT NULL AND finished_at < $1 ORDER BY finished_at LIMIT $2
        FOR UPDATE SKIP LOCKED)
"""


class PostgresJobReads(PostgresReads):
    async def get(self, job_id: str) -> Job | None:
        row = None if as_uuid(job_id) is None else await self._first(_JOB, job_id)
        return None if row is None else job(restored_row(row))

    async def page(self, *, limit: int, before: str | None = None) -> list[Job]:
        if before is not None and as_uuid(before) is None:
            return []
        found = await self._rows(_PAGE, before or HIGHEST_UUID, limit)
        return [job(restored_row(row)) for row in found]

    async def are_due(self) -> bool:
        async with self._pool.reader() as db:
            now = await self._clock.now(db)
            return await db.first("SELECT 1 FROM jobs WHERE due <= $1 LIMIT 1", now) is not None


class PostgresJobWrites(PostgresWrites):
    __slots__ = ()

    async def put(self, job: NewJob, *, most_unfinished: int) -> bool:
        await self._db.rows(_LOCK)
        values = (job.id, job.request, job.progress, job.created_by, self._now, most_unfinished)
        return await self._db.execute(_PUT, *values) > 0

    async def claim(self, lasts: timedelta) -> Job | None:
        row = await self._db.first(_CLAIM, self._now, after(self._now, lasts))
        return None if row is None else job(restored_row(row))

    async def write(self, page: JobPage) -> bool:
        ended = page.status in FINAL_JOB_STATUSES
        times = (None, self._now) if ended else (self._now, None)
        values = (page.id, page.epoch, page.status, page.progress, *times)
        return await self._db.execute(_WRITE, *values) > 0

    async def cancel(self, job_id: str) -> Job | None:
        if as_uuid(job_id) is None:
            return None
        await self._db.execute(_CANCEL, job_id, self._now)
        row = await self._db.first(_JOB, job_id)
        return None if row is None else job(restored_row(row))

    async def release(self) -> None:
        await self._db.execute("UPDATE jobs SET due = $1, epoch = epoch + 1 WHERE due > $1", self._now)

    async def delete(self, before: Instant, limit: int) -> int:
        return await self._db.execute(_DELETE, before, limit)
