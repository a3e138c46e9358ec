"""
Jobs: operations on many runs, done page by page.

A process claims a job for one page at a time. What the page does, and how far the job has come, are written in one
transaction, and only under the claim. So no page is done twice. What a request and a progress say is known to the code
that puts them (`services/runs/bulk.py`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, Protocol

import msgspec

from trunkline.clock import Instant

JobStatus = Literal["QUEUED", "RUNNING", "COMPLETED", "CANCELLED", "FAILED"]
FINAL_JOB_STATUSES: frozenset[JobStatus] = frozenset({"COMPLETED", "CANCELLED", "FAILED"})


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    # Of version 7.
    id: str
    # JSON: what is to be done.
    request: bytes
    # JSON: how far it has come.
    progress: bytes
    # The name of an API key; None: no keys are in use.
    created_by: str | None = None


class Job(NewJob, frozen=True, kw_only=True):
    status: JobStatus
    created_at: Instant
    started_at: Instant | None = None
    finished_at: Instant | None = None
    # Counts the claims. A page counts only while it is the same.
    epoch: int = 0


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """What a process has done of a job that it has claimed."""

    id: str
    epoch: int
    status: JobStatus
    progress: bytes


class JobReads(Protocol):
    async def get(self, job_id: str) -> Job | None: ...

    async def page(self, *, limit: int, before: str | None = None) -> list[Job]:
        """Newest first; `before` is the last id seen."""
        ...

    async def are_due(self) -> bool:
        """Whether a claim would find a job."""
        ...


class JobWrites(Protocol):
    async def put(self, job: NewJob, *, most_unfinished: int) -> bool:
        """False, and nothing is changed: there are that many unfinished jobs already."""
        ...

    async def claim(self, lasts: timedelta) -> Job | None:
        """
        The unfinished job that has waited longest, and is not claimed; its epoch is a new one.

        When the claim has lasted so long, another process can take the job.
        """
        ...

    async def write(self, page: JobPage) -> bool:
        """
        Ends the claim, behind all other jobs.

        False, and nothing is changed: the job has been cancelled, or another process has claimed it meanwhile.
        """
        ...

    async def cancel(self, job_id: str) -> Job | None:
        """The job as it is then. One that has ended stays as it is. None: it does not exist."""
        ...

    async def release(self) -> None:
        """Ends all claims. For a process that owns the store, when it starts."""
        ...

    async def delete(self, before: Instant, limit: int) -> int:
        """Delete jobs that ended before that time, oldest first; returns how many."""
        ...
