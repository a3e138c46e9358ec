"""Jobs."""

from __future__ import annotations

from datetime import timedelta

from trunkline.clock import Instant, after
from trunkline.stores.port.automation.jobs import FINAL_JOB_STATUSES, Job, JobPage, NewJob
from trunkline.stores.rows.operations import job
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.statements import execute, first, rows

_COLUMNS = "id, status, request, progress, created_by, created_at, started_at, finished_at, epoch"
_JOB = f"SELECT {_COLUMNS} FROM jobs WHERE id = ?"  # noqa: S608 - constants of this module
_PAGE = f"SELECT {_COLUMNS} FROM jobs WHERE id < ? ORDER BY id DESC LIMIT ?"  # noqa: S608 - as above
_PUT = """
    INSERT INTO jobs(id, status, request, progress, created_by, created_at, due, epoch)
    SELECT ?1, 'QUEUED', ?2, ?3, ?4, ?5, ?5, 0
    WHERE (SELECT count(*) FROM (SELECT 1 FROM jobs WHERE due IS NOT NULL LIMIT ?6)) < ?6
"""
_CLAIM = f"""
    UPDATE jobs SET epoch = epoch + 1, due = ?2, status = 'RUNNING', started_at = coalesce(started_at, ?1)
    WHERE id = (SELECT id FROM jobs WHERE due <= ?1 ORDER BY due, id LIMIT 1)
    RETURNING {_COLUMNS}
"""  # noqa: S608 - as above
_WRITE = """
    UPDATE jobs SET status = ?3, progress = ?4, due = ?5, finished_at = ?6, epoch = epoch + 1
    WHERE id = ?1 AND epoch = ?2
"""
_CANCEL = """
    UPDATE jobs SET status = 'CANCELLED', due = NULL, finished_at = ?2, epoch = epoch + 1
    WHERE id = ?1 AND due IS NOT NULL
"""
_DELETE = """
    DELETE FROM jobs WHERE id IN (
        SELECT id FROM jobs WHERE finished_at IS NOT NULL AND finished_at < ? ORDER BY finished_at LIMIT ?)
"""
# After every id.
_END = "~"


class SqliteJobReads(SqliteReads):
    async def get(self, job_id: str) -> Job | None:
        row = first(self._db, _JOB, (job_id,))
        return None if row is None else job(row)

    async def page(self, *, limit: int, before: str | None = None) -> list[Job]:
        return [job(row) for row in rows(self._db, _PAGE, (before or _END, limit))]

    async def are_due(self) -> bool:
        return first(self._db, "SELECT 1 FROM jobs WHERE due <= ? LIMIT 1", (self._clock.now(),)) is not None


class SqliteJobWrites(SqliteWrites):
    __slots__ = ()

    async def put(self, job: NewJob, *, most_unfinished: int) -> bool:
        values = (job.id, job.request, job.progress, job.created_by, self._now, most_unfinished)
        return execute(self._db, _PUT, values) > 0

    async def claim(self, lasts: timedelta) -> Job | None:
        claimed = [job(row) for row in rows(self._db, _CLAIM, (self._now, after(self._now, lasts)))]
        return claimed[0] if claimed else None

    async def write(self, page: JobPage) -> bool:
        ended = page.status in FINAL_JOB_STATUSES
        times = (None, self._now) if ended else (self._now, None)
        return execute(self._db, _WRITE, (page.id, page.epoch, page.status, page.progress, *times)) > 0

    async def cancel(self, job_id: str) -> Job | None:
        execute(self._db, _CANCEL, (job_id, self._now))
        row = first(self._db, _JOB, (job_id,))
        return None if row is None else job(row)

    async def release(self) -> None:
        execute(self._db, "UPDATE jobs SET due = ?1, epoch = epoch + 1 WHERE due > ?1", (self._now,))

    async def delete(self, before: Instant, limit: int) -> int:
        return execute(self._db, _DELETE, (before, limit))
