"""Jobs as people follow them: their progress, their failures and their exit code."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from trunkline.cli.exit_codes import exit_for_run
from trunkline.cli.rendering.output import harmless, note, print_text

if TYPE_CHECKING:
    from trunkline.api.resources.jobs import JobResource
    from trunkline.cli.rest.client import Client

_LOOK_EVERY_SECONDS = 0.25
_ENDED = frozenset({"COMPLETED", "CANCELLED", "FAILED"})


def follow_job(client: Client, job_id: str, *, quiet: bool) -> JobResource:
    """The job as it ends. Its progress goes to stderr."""
    last = ""
    try:
        while (job := client.job(job_id))["status"] not in _ENDED:
            now = done_text(job)
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
    print_text(f"job {job['id']}  {job['action']}  {job['status']}  {done_text(job)}")
    for failure in job["failures"]:
        note(f"{failure['run_id']}: {harmless(failure['message'])}")
    unlisted = job["failed"] - len(job["failures"])
    if unlisted:
        note(f"and {unlisted} more")
    if job["error"] is not None:
        note(f"The job failed: {harmless(job['error'])}")


def exit_for_job(job: JobResource) -> int:
    return exit_for_run("FAILED" if job["failed"] else job["status"])


def done_text(job: JobResource) -> str:
    if job["total"] is None:
        return ""
    failed = f", {job['failed']} failed" if job["failed"] else ""
    return f"{job['processed']} of {job['total']}{failed}"
