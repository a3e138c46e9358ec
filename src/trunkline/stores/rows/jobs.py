"""Jobs, as rows."""

from __future__ import annotations

from trunkline.clock import Instant
from trunkline.stores.port.automation.jobs import Job
from trunkline.stores.rows import Row


def job(row: Row) -> Job:
    """From id, status, request, progress, created_by, created_at, started_at, finished_at, epoch."""
    job_id, status, request, progress, created_by, created_at, started_at, finished_at, epoch = row
    return Job(
        id=job_id,
        status=status,
        request=bytes(request),
        progress=bytes(progress),
        created_by=created_by,
        created_at=Instant(created_at),
        started_at=None if started_at is None else Instant(started_at),
        finished_at=None if finished_at is None else Instant(finished_at),
        epoch=epoch,
    )
