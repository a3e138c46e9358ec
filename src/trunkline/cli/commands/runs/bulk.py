"""`trunkline runs bulk`: one action on all runs that match a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.commands.runs.find import Status
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import Choice
from trunkline.cli.job_progress import exit_for_job, follow_job, print_job
from trunkline.cli.options import HERE, Flag, Labels, Server, Time
from trunkline.cli.rendering.output import note, print_json

if TYPE_CHECKING:
    from trunkline.jsontypes import Json, JsonObject

Action = Literal["cancel", "pause", "resume", "retry", "delete", "label"]


def bulk(
    action: Annotated[Action, Parameter(name="ACTION", help="What to do with the runs."), Choice],
    /,
    *,
    status: Annotated[list[Status] | None, Parameter(negative=""), Choice] = None,
    workflow: str | None = None,
    agent: str | None = None,
    labels: Labels = (),
    search: str | None = None,
    since: Time = None,
    until: Time = None,
    set_: Annotated[
        tuple[str, ...],
        Parameter(name="--set", negative="", consume_multiple=False, show_default=False, metavar="KEY:VALUE"),
    ] = (),
    remove: Annotated[
        tuple[str, ...],
        Parameter(negative="", consume_multiple=False, show_default=False, metavar="KEY"),
    ] = (),
    dry_run: Flag = False,
    wait: bool = True,
    server: Server = HERE,
) -> int:
    """
    Cancel, pause, resume, retry, delete or label all runs that match.

    The server does it as a job, page by page, even if you press Ctrl-C. At least one condition is required. Child
    runs follow their parents. delete deletes finished runs with all their data, and requires the role admin.

    The exit code is 0 if the job completed, 10 if the action failed for a run, and 11 if the job was cancelled.

    Parameters
    ----------
    status
        Only runs with this status. Can be repeated. Default: all that the action applies to.
    workflow
        Only runs of this workflow, by name or ID.
    agent
        Only runs of workflows that call this agent.
    labels
        Only runs with this label, such as customer:acme. Can be repeated.
    search
        Only runs whose ID or workflow name starts with this text, or with this correlation ID.
    since
        Only runs created at or after this time, such as 2026-03-01T12:00:00Z.
    until
        Only runs created before this time.
    set_
        With label: label to set. Can be repeated.
    remove
        With label: key of a label to remove. Can be repeated.
    dry_run
        Only count the runs.
    wait
        Wait for the end of the job.
    """
    conditions: dict[str, Json] = {
        "status": [*status] if status else None,
        "workflow": workflow,
        "agent": agent,
        "label": [*labels] or None,
        "q": search,
        "created_after": since,
        "created_before": until,
    }
    body: JsonObject = {
        "action": action,
        "filter": {name: value for name, value in conditions.items() if value is not None},
        "dry_run": dry_run,
    }
    if set_ or remove:
        body["labels"] = {**dict.fromkeys(remove), **_labels(set_)}
    client = server.client()
    job = client.start_bulk(body)
    if wait:
        job = follow_job(client, job["id"], quiet=server.json)
    if server.json:
        print_json(job)
    else:
        print_job(job)
        if not wait:
            note(f"See its progress with: trunkline jobs show {job['id']}")
    return exit_for_job(job) if wait else Exit.OK


def _labels(texts: tuple[str, ...]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition(":")
        if not separator:
            raise CliError(
                f"{text!r} is not a label",
                fix="Write it as KEY:VALUE, such as customer:acme",
                exit_code=Exit.USAGE,
            )
        labels[key] = value
    return labels
