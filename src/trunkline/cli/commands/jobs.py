"""`trunkline jobs`: bulk operations on runs, with their progress."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.job_progress import done_text, print_job
from trunkline.cli.options import HERE, Cursor, Limit, Server
from trunkline.cli.rendering.output import (
    harmless,
    note,
    note_next_page,
    print_json,
    print_table,
    status_cell,
)
from trunkline.cli.rendering.times import date_time, duration_between

JobArgument = Annotated[str, Parameter(name="JOB", help="ID of the job.")]

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
            done_text(job),
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
