"""`trunkline jobs`: bulk operations on runs, with their progress."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit, exit_for_run
from trunkline.cli.options import HERE, Cursor, Limit, Server
from trunkline.cli.rendering.output import (
    harmless,
    note,
    note_next_page,
    print_json,
    print_table,
    print_text,
    status_cell,
)
from trunkline.cli.rendering.times import date_time, duration_between

if TYPE_CHECKING:
    from trunkline.api.resources.jobs import JobResource
    from trunkline.cli.rest.client import Client

JobArgument = Annotated[str, Parameter(name="JOB", help="ID of the job.")]
_LOOK_EVERY_SECONDS = 0.25
_ENDED = frozenset({"COMPLETED", "CANCELLED", "FAILED"})

app = App(name="jobs", help="List, show and cancel jobs, which do bulk operations on runs.", version_flags=[])


@app.command(name="list")
def list_jobs(*, limit: Limit = 50, cursor: Cursor = None, server: Server = HERE) -> int:
    """List jobs, newest first."""
    page = server.client().jobs(limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [
            job["id"],
            job["action"],
            status_cell(job["status"]),
            _done(job),
            date_time(job["created_at"]),
            duration_between(job["started_at"], job["finished_at"]),
            harmless(job["created_by"] or ""),
        ]
        for job in page.items
    ]
    print_table(("JOB", "ACTION", "STATUS", "DONE", "CREATED", "TIME", "STARTED BY"), rows)
    if not rows:
        note("No jobs. Start one with: trunkline runs bulk ACTION")
    note_next_page(("jobs", "list"), {}, page.next_cursor)
    return Exit.OK


@app.command(name="show")
def show(job: JobArgument, /, *, server: Server = HERE) -> int:
    """Show a job with its progress and failures."""
    found = server.client().job(job)
    if server.json:
        print_json(found)
    else:
        print_job(found)
    return Exit.OK


@app.command(name="cancel")
def cancel(job: JobArgument, /, *, server: Server = HERE) -> int:
    """Cancel a job. What it has done stays done."""
    cancelled = server.client().cancel_job(job)
    if server.json:
        print_json(cancelled)
    else:
        print_job(cancelled)
    return Exit.OK


def follow_job(client: Client, job_id: str, *, quiet: bool) -> JobResource:
    """The job as it ends. Its progress goes to stderr."""
    last = ""
    try:
        while (job := client.job(job_id))["status"] not in _ENDED:
            now = _done(job)
            if not quiet and now != last:
                note(now or "Counting the runs")
                last = now
            time.sleep(_LOOK_EVERY_SECONDS)
    except KeyboardInterrupt:
        note(f"The job continues. See its progress with: trunkline jobs show {job_id}")
        note(f"Cancel it with: trunkline jobs cancel {job_id}")
        raise
    return job


def print_job(job: JobResource) -> None:
    if job["dry_run"] and job["total"] is not None:
        runs = "1 run" if job["total"] == 1 else f"{job['total']} runs"
        print_text(f"{job['action']} applies to {runs}")
        return
    print_text(f"job {job['id']}  {job['action']}  {job['status']}  {_done(job)}")
    for failure in job["failures"]:
        note(f"{failure['run_id']}: {harmless(failure['message'])}")
    unlisted = job["failed"] - len(job["failures"])
    if unlisted:
        note(f"and {unlisted} more")
    if job["error"] is not None:
        note(f"The job failed: {harmless(job['error'])}")


def exit_for_job(job: JobResource) -> int:
    return exit_for_run("FAILED" if job["failed"] else job["status"])


def _done(job: JobResource) -> str:
    if job["total"] is None:
        return ""
    failed = f", {job['failed']} failed" if job["failed"] else ""
    return f"{job['processed']} of {job['total']}{failed}"
