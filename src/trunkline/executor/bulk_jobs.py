"""
Bulk jobs: does what a job asks for, one bounded page of runs at a time.

A process claims a job for one page. The transaction that acts on the runs of the page also writes how far the job has
come, and does so only under the claim. So a job continues where it was when its process dies, and no run is
acted on twice. Jobs take turns with each other, and a page waits until the commit loop has taken the page before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import takewhile
from time import monotonic
from typing import NamedTuple, TypeAlias

import msgspec
import structlog

from trunkline.clock import Clock
from trunkline.errors import Invalid, TrunklineError, Unavailable
from trunkline.id_generation import new_id, new_run_id
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.machine.inputs import CancelRequested, Input, PauseRequested, ResumeRequested, RunRequested
from trunkline.services.commit_loop import CommitLoop
from trunkline.services.migration.routing_table import RoutingTable
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.runs.bulk import BulkFailure, BulkJob, BulkProgress, bulk_job
from trunkline.services.runs.intake import START
from trunkline.services.runs.labels import changed_labels
from trunkline.services.runs.retry import check_retried, kept_of_run
from trunkline.services.runs.runs import check_pausable
from trunkline.services.runs.search import RunFinder
from trunkline.services.runs.watchers import RunWatchers
from trunkline.services.workflows import Workflows
from trunkline.stores.base import (
    InputsQueued,
    NewRun,
    QueuedInput,
    RunRecord,
    RunsChanged,
    Store,
    Transaction,
)
from trunkline.stores.blobs import BlobStore
from trunkline.stores.port.automation.jobs import FINAL_JOB_STATUSES, JobPage, JobStatus
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics

log = structlog.stdlib.get_logger()

# A process that dies is replaced after this. A page takes a fraction of it.
CLAIM_LASTS = timedelta(seconds=30)
# Counted without reading inputs and outputs.
_COUNTED_A_PAGE = 1_000
# Each is a queued input, or a few rows: less than the commit loop takes in one turn.
_RUNS_A_PAGE = 100
# Each may have thousands of rows.
_DELETED_A_PAGE = 50
# What retries keep in memory; the rest of the page is for the next one.
_MAX_KEPT_BYTES = 4 * 1024 * 1024
_MAX_PREPARING_SECONDS = 5.0
# Jobs of other processes are found by this poll.
_LOOK_EVERY_SECONDS = 1.0
_RETRY_PAUSE_SECONDS = 0.5
_NOT_DELETABLE = (
    "The run cannot be deleted yet: one of its calls is in flight, a child run has not ended, or a trigger has yet to"
    " read its end."
)


class _PageRejected(Exception):
    """The job was cancelled, or is another process's: the page does not count."""


class _Outcome(NamedTuple):
    """What a transaction has done to the runs of a page."""

    status: JobStatus
    progress: BulkProgress
    changed: Sequence[RunId] = ()
    started: Sequence[NewRun] = ()
    # Only a turn of the commit loop completes the page.
    has_inputs: bool = False


# Acts on the runs of a page.
_Act: TypeAlias = Callable[[Transaction], Awaitable[_Outcome]]


class BulkJobs:
    def __init__(
        self,
        store: Store,
        workflows: Workflows,
        routing: RoutingTable,
        clock: Clock,
        metrics: Metrics,
        watchers: RunWatchers,
        loop: CommitLoop,
        *,
        queued: asyncio.Event,
        blobs: BlobStore | None = None,
        claim_lasts: timedelta = CLAIM_LASTS,
        owns_store: bool = False,
    ) -> None:
        """`queued`: set when this process has accepted a job. `owns_store`: no other process can have a claim."""
        self._store = store
        self._workflows = workflows
        self._routing = routing
        self._clock = clock
        self._metrics = metrics
        self._watchers = watchers
        self._loop = loop
        self._queued = queued
        self._blobs = blobs
        self._claim_lasts = claim_lasts
        self._owns_store = owns_store
        self._finder = RunFinder(store)

    async def run(self, stopping: asyncio.Event) -> None:
        """Until `stopping` is set. What is under way then is cut off, and continues at the next start."""
        async with asyncio.TaskGroup() as group:
            work = group.create_task(self._work())
            await stopping.wait()
            work.cancel()

    async def _work(self) -> None:
        released = not self._owns_store
        while True:
            self._queued.clear()
            try:
                if not released:
                    async with self._store.transaction() as tx:
                        await tx.jobs.release()
                    released = True
                while await self._store.jobs.are_due() and await self.work():
                    pass
            except Unavailable as exc:
                log.error(log_events.STORE_UNAVAILABLE, error=str(exc), fix=exc.fix)
                await asyncio.sleep(_RETRY_PAUSE_SECONDS)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_SECONDS):
                    await self._queued.wait()

    async def work(self) -> bool:
        """One page of one job; False if there is none."""
        async with self._store.transaction() as tx:
            claimed = await tx.jobs.claim(self._claim_lasts)
        if claimed is None:
            return False
        job = bulk_job(claimed)
        try:
            outcome = await self._write(job, await self._page(job))
        except _PageRejected:
            return True
        except Unavailable:
            raise
        except Exception as exc:
            # It would fail again, and take the turns of the other jobs.
            log.exception(log_events.JOB_FAILED, job=job.id, action=job.request.action)
            failed = msgspec.structs.replace(job.progress, error=f"{type(exc).__name__}; see the log")
            with suppress(_PageRejected):
                await self._write(job, _writing("FAILED", failed))
            return True
        for run in outcome.started:
            self._metrics.runs_started.inc()
            log.info(
                log_events.RUN_STARTED,
                run_id=run.id,
                workflow=run.workflow_name,
                correlation_id=run.correlation_id,
                job=job.id,
            )
        if outcome.changed:
            self._watchers.notify(outcome.changed)
            self._watchers.notify_all()
        if outcome.has_inputs:
            await self._loop.wait_for_turn()
        return True

    async def _write(self, job: BulkJob, act: _Act) -> _Outcome:
        async with self._store.transaction() as tx:
            outcome = await act(tx)
            page = JobPage(
                id=job.id, epoch=job.epoch, status=outcome.status, progress=encode(outcome.progress)
            )
            if not await tx.jobs.write(page):
                raise _PageRejected
            if outcome.has_inputs:
                await tx.notify(InputsQueued())
            if outcome.changed:
                await tx.notify(RunsChanged(list(outcome.changed)))
        if outcome.status in FINAL_JOB_STATUSES:
            log.info(
                log_events.JOB_ENDED,
                job=job.id,
                action=job.request.action,
                status=outcome.status,
                succeeded=outcome.progress.succeeded,
                failed=outcome.progress.failed,
            )
        return outcome

    async def _page(self, job: BulkJob) -> _Act:
        progress = job.progress
        if progress.total is None:
            return await self._count(job)
        if progress.files:
            await self._delete_files(progress.files)
            progress = msgspec.structs.replace(progress, files=())
        action = job.request.action
        size = _DELETED_A_PAGE if action == "delete" else _RUNS_A_PAGE
        records = await self._matching(job, progress, size)
        page = _Page(job, progress, records, is_last=len(records) < size)
        match action:
            case "cancel":
                return page.put_inputs("cancel", CancelRequested(), {})
            case "pause":
                return page.put_inputs(f"pause/{job.id}", PauseRequested(), await self._unpausable(records))
            case "resume":
                return page.put_inputs(f"resume/{job.id}", ResumeRequested(), {})
            case "label":
                return page.change_labels
            case "delete":
                return page.delete
            case "retry":
                return await self._retry(page)

    async def _matching(self, job: BulkJob, progress: BulkProgress, limit: int) -> list[RunRecord]:
        # Runs that are created later, by this job too, have higher ids.
        before = progress.cursor or RunId(job.id)
        found = await self._finder.find(job.request.matching, limit=limit, before=before, payloads=False)
        return [each.record for each in found]

    async def _count(self, job: BulkJob) -> _Act:
        progress = job.progress
        records = await self._matching(job, progress, _COUNTED_A_PAGE)
        counted = progress.counted + len(records)
        if len(records) == _COUNTED_A_PAGE:
            more = msgspec.structs.replace(progress, counted=counted, cursor=records[-1].id)
            return _writing("RUNNING", more)
        done = msgspec.structs.replace(progress, counted=counted, total=counted, cursor=None)
        return _writing("COMPLETED" if job.request.dry_run or not counted else "RUNNING", done)

    async def _unpausable(self, records: Sequence[RunRecord]) -> dict[RunId, str]:
        refused: dict[RunId, str] = {}
        for record in records:
            wait = await self._store.start_queue.get(record.id) if record.status == "PENDING" else None
            try:
                check_pausable(record, wait)
            except TrunklineError as exc:
                refused[record.id] = exc.message
        return refused

    async def _delete_files(self, run_ids: Sequence[RunId]) -> None:
        if self._blobs is not None:
            for run_id in run_ids:
                await self._blobs.delete(run_id)

    async def _retry(self, page: _Page) -> _Act:
        """As many of the page as memory and time allow."""
        prepared: list[tuple[NewRun, RunRequested]] = []
        failures: list[BulkFailure] = []
        until, size, taken = monotonic() + _MAX_PREPARING_SECONDS, 0, 0
        for record in page.records:
            if size > _MAX_KEPT_BYTES or monotonic() > until:
                break
            taken += 1
            # The clock of another process was behind when this job started it.
            if record.retry_of is not None and record.retry_of > record.id:
                continue
            try:
                run, request = await self._prepare_retry(page.job, record.id)
            except Unavailable:
                raise
            except TrunklineError as exc:
                failures.append(BulkFailure(record.id, exc.message))
            except Exception as exc:
                # Whatever it is about this run, the others are retried.
                log.exception(log_events.JOB_FAILED, job=page.job.id, run_id=record.id)
                failures.append(BulkFailure(record.id, f"{type(exc).__name__}; see the log"))
            else:
                prepared.append((run, request))
                size += len(run.input) + sum(len(bytes(kept)) for kept in request.kept.values())
        return page.start(prepared, failures, taken)

    async def _prepare_retry(self, job: BulkJob, run_id: RunId) -> tuple[NewRun, RunRequested]:
        found = await self._store.runs.get(run_id)
        if found is None:
            raise Invalid(f"Run {run_id} was deleted.")
        record, steps = found
        check_retried(record)
        compiled = await self._workflows.compiled(record.workflow_id, record.workflow_version)
        kept, lists = await kept_of_run(self._store.runs, compiled, record, steps, None)
        run = NewRun(
            id=new_run_id(),
            workflow_id=record.workflow_id,
            workflow_name=record.workflow_name,
            workflow_version=record.workflow_version,
            input=record.input,
            correlation_id=new_id(),
            created_at=self._clock.now(),
            retry_of=run_id,
            routing_version=await self._routing.current_version(),
            started_by=job.created_by,
            labels=record.labels,
        )
        return run, RunRequested(kept, lists, {})


class _Page:
    """Some runs, newest first, and what one transaction does to them."""

    def __init__(
        self, job: BulkJob, progress: BulkProgress, records: Sequence[RunRecord], *, is_last: bool
    ) -> None:
        self.job = job
        self.records = records
        self._progress = progress
        self._is_last = is_last

    def put_inputs(self, key: str, item: Input, refused: dict[RunId, str]) -> _Act:
        chosen = [record.id for record in self.records if record.id not in refused]

        async def act(tx: Transaction) -> _Outcome:
            if chosen:
                await tx.input_queue.put([QueuedInput(run_id, key, item) for run_id in chosen])
                await self._note(tx, chosen)
            failures = [BulkFailure(run_id, message) for run_id, message in refused.items()]
            done = self._behind(len(self.records)).with_outcome(len(chosen), failures)
            return _Outcome(self._status(len(self.records)), done, has_inputs=bool(chosen))

        return act

    def start(
        self, prepared: Sequence[tuple[NewRun, RunRequested]], failures: Sequence[BulkFailure], taken: int
    ) -> _Act:
        """Retries, which were prepared for the first `taken` runs."""

        async def act(tx: Transaction) -> _Outcome:
            if prepared:
                await tx.runs.insert([run for run, _ in prepared])
                starts = [QueuedInput(run.id, START, request, is_once=True) for run, request in prepared]
                await tx.input_queue.put(starts)
                await self._note(tx, [run.retry_of for run, _ in prepared if run.retry_of is not None])
            done = self._behind(taken).with_outcome(len(prepared), failures)
            started = [run for run, _ in prepared]
            return _Outcome(self._status(taken), done, started=started, has_inputs=bool(prepared))

        return act

    async def change_labels(self, tx: Transaction) -> _Outcome:
        asked = [record.id for record in self.records]
        # It does not wait for runs that are being written while it has others.
        before = await tx.runs.labels(asked, skip_locked=True)
        free = list(takewhile(before.__contains__, asked))
        if not free and asked:
            # It waits for this one alone, which may be gone.
            free = asked[:1]
            before = await tx.runs.labels(free)
        changed: dict[RunId, dict[str, str]] = {}
        failures: list[BulkFailure] = []
        for run_id in free:
            try:
                changed[run_id] = changed_labels(before[run_id], self.job.request.labels)
            except KeyError:
                failures.append(BulkFailure(run_id, "The run was deleted."))
            except Invalid as exc:
                failures.append(BulkFailure(run_id, exc.message))
        different = {run_id: labels for run_id, labels in changed.items() if labels != before[run_id]}
        if different:
            await tx.runs.set_labels(different)
            await self._note(tx, list(different))
        done = self._behind(len(free)).with_outcome(len(changed), failures)
        return _Outcome(self._status(len(free)), done, changed=list(different))

    async def delete(self, tx: Transaction) -> _Outcome:
        asked = [record.id for record in self.records]
        if not asked:
            return _Outcome("COMPLETED", self._progress)
        deleted = await tx.runs.delete_lowest(asked, _DELETED_A_PAGE)
        done = [run_id for run_id in asked if run_id in deleted]
        await self._note(tx, done)
        # The files are deleted after the commit, at the beginning of the next page.
        progress = msgspec.structs.replace(self._progress, files=tuple(deleted)).with_outcome(len(done), ())
        if not deleted:
            # What is left of the page cannot be deleted.
            refused = [BulkFailure(run_id, _NOT_DELETABLE) for run_id in asked]
            progress = self._behind(len(asked)).with_outcome(0, refused)
        # Children and files may be left, so the job ends with a page on which there is nothing.
        return _Outcome("RUNNING", progress, changed=list(deleted))

    def _status(self, taken: int) -> JobStatus:
        return "COMPLETED" if self._is_last and taken == len(self.records) else "RUNNING"

    def _behind(self, taken: int) -> BulkProgress:
        if not taken:
            return self._progress
        return msgspec.structs.replace(self._progress, cursor=self.records[taken - 1].id)

    async def _note(self, tx: Transaction, run_ids: Sequence[RunId]) -> None:
        """In the audit log, under the name of who has started the job."""
        job = self.job
        if run_ids:
            await tx.audit.put(
                [
                    audit_entry("run", job.request.action, run_id, who=job.created_by, job=job.id)
                    for run_id in run_ids
                ]
            )


def _writing(status: JobStatus, progress: BulkProgress) -> _Act:
    """Nothing but the progress."""

    async def act(tx: Transaction) -> _Outcome:
        del tx
        return _Outcome(status, progress)

    return act
