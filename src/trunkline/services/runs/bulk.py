"""
Bulk operations: one action on all runs that match a filter, as a durable job.

This module accepts jobs and shows them. `executor/bulk_jobs.py` does their work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from trunkline.clock import Instant
from trunkline.errors import Conflict, Finding, Invalid, NotFound
from trunkline.id_generation import new_id
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.machine.state import FINAL_RUN_STATUSES, RUN_STATUSES, RunStatus
from trunkline.services.operations.audit_log import audit_entry, current_actor
from trunkline.services.runs.labels import check_label_changes
from trunkline.services.runs.search import RunSearch
from trunkline.stores.base import Store
from trunkline.stores.port.automation.jobs import FINAL_JOB_STATUSES, Job, JobStatus, NewJob

BulkAction = Literal["cancel", "pause", "resume", "retry", "delete", "label"]
# Each holds a row and, now and then, a process. They take turns, page by page.
MAX_UNFINISHED_JOBS = 20
# So many failures are listed one by one; all are counted.
MAX_FAILURES_LISTED = 100

_UNFINISHED: tuple[RunStatus, ...] = tuple(
    status for status in RUN_STATUSES if status not in FINAL_RUN_STATUSES
)
_FINAL: tuple[RunStatus, ...] = tuple(status for status in RUN_STATUSES if status in FINAL_RUN_STATUSES)
# Runs in other statuses are not touched.
_APPLIES_TO: Mapping[BulkAction, Sequence[RunStatus]] = {
    "cancel": _UNFINISHED,
    "pause": tuple(status for status in _UNFINISHED if status != "PAUSED"),
    "resume": ("PAUSED",),
    "retry": _FINAL,
    "delete": _FINAL,
    "label": RUN_STATUSES,
}
# Without a status in the filter.
_DEFAULT: Mapping[BulkAction, Sequence[RunStatus]] = {**_APPLIES_TO, "retry": ("FAILED", "CANCELLED")}


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a job does, and to which runs."""

    action: BulkAction
    # As it was asked for.
    search: RunSearch
    # For `label`. None removes a label.
    labels: dict[str, str | None] = {}
    dry_run: bool = False

    @property
    def matching(self) -> RunSearch:
        """The search for the runs that the action applies to. Children follow their parents."""
        statuses = self.search.statuses or tuple(_DEFAULT[self.action])
        # All statuses: a list without a filter by status has better indexes.
        statuses = () if set(statuses) == set(RUN_STATUSES) else statuses
        return msgspec.structs.replace(self.search, statuses=statuses, with_children=False)


class BulkFailure(msgspec.Struct, frozen=True):
    run_id: RunId
    message: str


class BulkProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a job has come."""

    # None: they are still being counted.
    total: int | None = None
    counted: int = 0
    succeeded: int = 0
    failed: int = 0
    # The first ones.
    failures: tuple[BulkFailure, ...] = ()
    # The last run that was counted, or acted on, newest first.
    cursor: RunId | None = None
    # Deleted runs whose files may still be there.
    files: tuple[RunId, ...] = ()
    # Why the job has failed.
    error: str | None = None

    def with_outcome(self, succeeded: int, failures: Sequence[BulkFailure]) -> BulkProgress:
        listed = (*self.failures, *failures)[:MAX_FAILURES_LISTED]
        return msgspec.structs.replace(
            self, succeeded=self.succeeded + succeeded, failed=self.failed + len(failures), failures=listed
        )


_requests: msgspec.json.Decoder[BulkRequest] = msgspec.json.Decoder(BulkRequest)
_progress: msgspec.json.Decoder[BulkProgress] = msgspec.json.Decoder(BulkProgress)


class BulkJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is shown."""

    id: str
    status: JobStatus
    request: BulkRequest
    progress: BulkProgress
    created_by: str | None
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    epoch: int


def bulk_job(job: Job) -> BulkJob:
    return BulkJob(
        id=job.id,
        status=job.status,
        request=_requests.decode(job.request),
        progress=_progress.decode(job.progress),
        created_by=job.created_by,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        epoch=job.epoch,
    )


class BulkOperations:
    def __init__(self, store: Store, on_queued: Callable[[], object]) -> None:
        """`on_queued`: called when there is a new job."""
        self._store = store
        self._on_queued = on_queued

    async def start(self, request: BulkRequest) -> BulkJob:
        """Durable when it returns. Raises `Invalid`, and `Conflict` if there are too many jobs."""
        _check(request)
        job_id = new_id()
        job = NewJob(
            id=job_id,
            request=encode(request),
            progress=encode(BulkProgress()),
            created_by=current_actor(),
        )
        async with self._store.transaction() as tx:
            if not await tx.jobs.put(job, most_unfinished=MAX_UNFINISHED_JOBS):
                raise Conflict(
                    f"There are {MAX_UNFINISHED_JOBS} unfinished jobs already.",
                    fix="Wait until one ends, or cancel one: trunkline jobs list.",
                )
            entry = audit_entry(
                "job", "start", job_id, operation=request.action, dry_run=request.dry_run or None
            )
            await tx.audit.put([entry])
        self._on_queued()
        return await self.get(job_id)

    async def get(self, job_id: str) -> BulkJob:
        job = await self._store.jobs.get(job_id)
        if job is None:
            raise _unknown(job_id)
        return bulk_job(job)

    async def list(self, *, limit: int, before: str | None = None) -> Sequence[BulkJob]:
        """Newest first; `before` is the last id seen."""
        return [bulk_job(job) for job in await self._store.jobs.page(limit=limit, before=before)]

    async def cancel(self, job_id: str) -> BulkJob:
        """What the job has done stays done. Raises `Conflict` if it has ended."""
        async with self._store.transaction() as tx:
            before = await self._store.jobs.get(job_id)
            job = await tx.jobs.cancel(job_id)
            if job is None or before is None:
                raise _unknown(job_id)
            if before.status in FINAL_JOB_STATUSES or job.status != "CANCELLED":
                raise Conflict(
                    f"Job {job_id} is {job.status} and cannot be cancelled.",
                    fix=f"See what it did: trunkline jobs show {job_id}.",
                )
            await tx.audit.put([audit_entry("job", "cancel", job_id)])
        return bulk_job(job)


def _unknown(job_id: str) -> NotFound:
    return NotFound(f"There is no job {job_id}.", fix="List the jobs: trunkline jobs list.")


def _check(request: BulkRequest) -> None:
    search = request.search
    given = (
        search.statuses,
        search.workflow,
        search.agent,
        search.text,
        search.labels,
        search.since,
        search.until,
    )
    if not any(given):
        finding = Finding(path="filter", message="at least one condition is required")
        raise Invalid(
            "The filter is empty, so it would match all runs.",
            findings=[finding],
            fix="Name at least a workflow, a label, a status or a time. To match all runs, list every status.",
        )
    others = [status for status in search.statuses if status not in _APPLIES_TO[request.action]]
    if others:
        message = f"{request.action} does not apply to runs that are {' or '.join(others)}"
        raise Invalid(
            f"{message[0].upper()}{message[1:]}.",
            findings=[Finding(path="filter.status", message=message)],
            fix=f"Use one of: {', '.join(_APPLIES_TO[request.action])}. Or leave out the status.",
        )
    if request.action == "label":
        if not request.labels:
            finding = Finding(path="labels", message="at least one label is required")
            raise Invalid(
                "There are no labels to set or remove.",
                findings=[finding],
                fix='Send labels, such as {"team": "billing"}.',
            )
        check_label_changes(request.labels)
    elif request.labels:
        finding = Finding(path="labels", message="only the action label takes labels")
        raise Invalid(
            f"The action {request.action} takes no labels.",
            findings=[finding],
            fix="Leave out labels. To choose runs by a label, use filter.label.",
        )
