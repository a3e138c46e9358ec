"""Find runs, show and watch them, and change their labels."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.follow import Show, exit_for, follow_run, progress_for_people
from trunkline.cli.inputs import Choice
from trunkline.cli.options import (
    HERE,
    Cursor,
    Duration,
    Labels,
    Limit,
    RunArgument,
    Server,
    Time,
)
from trunkline.cli.rendering.output import (
    harmless,
    note,
    note_next_page,
    print_json,
    print_table,
    print_text,
    print_value,
    status_cell,
)
from trunkline.cli.rendering.run import (
    error_lines,
    labels_text,
    print_steps,
    question_lines,
    show_run,
)
from trunkline.cli.rendering.times import date_time, duration_between

Status = Literal[
    "PENDING", "RUNNING", "WAITING", "PAUSED", "COMPENSATING", "COMPLETED", "FAILED", "CANCELLED"
]


def list_runs(
    *,
    status: Annotated[list[Status] | None, Parameter(negative=""), Choice] = None,
    workflow: str | None = None,
    agent: str | None = None,
    labels: Labels = (),
    search: str | None = None,
    since: Time = None,
    until: Time = None,
    parent: str | None = None,
    children: bool = True,
    limit: Limit = 50,
    cursor: Cursor = None,
    server: Server = HERE,
) -> int:
    """
    List runs, newest first.

    Parameters
    ----------
    status
        List only runs with this status. Can be repeated.
    workflow
        List only runs of this workflow, by name or ID.
    agent
        List only runs of workflows that call this agent.
    labels
        List only runs with this label, such as customer:acme. Can be repeated.
    search
        List only runs whose ID or workflow name starts with this text, or with this correlation ID.
    since
        List only runs created at or after this time, such as 2026-03-01T12:00:00Z.
    until
        List only runs created before this time.
    parent
        List only child runs of this run.
    children
        Include child runs.
    """
    asked: dict[str, str | list[str] | list[Status] | None] = {
        "status": status,
        "workflow": workflow,
        "agent": agent,
        "label": [*labels] or None,
        "search": search,
        "since": since,
        "until": until,
        "parent": parent,
    }
    query = {"q" if name == "search" else name: value for name, value in asked.items()}
    if not children:
        query["children"] = "false"
    page = server.client().runs(query, limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    labelled = any(run.get("labels") for run in page.items)
    rows = [
        [
            run["id"],
            f"{run['workflow']['name']} v{run['workflow']['version']}",
            status_cell(run["status"]),
            date_time(run["created_at"]),
            duration_between(run["started_at"], run["finished_at"]),
            harmless(run.get("started_by") or ""),
            *([labels_text(run) or ""] if labelled else []),
        ]
        for run in page.items
    ]
    columns = (
        "RUN",
        "WORKFLOW",
        "STATUS",
        "CREATED",
        "TIME",
        "STARTED BY",
        *(["LABELS"] if labelled else []),
    )
    print_table(columns, rows)
    if not page.items:
        note("No matching runs. Start one with: trunkline run FILE|NAME")
    note_next_page(("runs", "list"), {**asked, "no-children": not children}, page.next_cursor)
    return Exit.OK


def show(run: RunArgument, /, *, server: Server = HERE) -> int:
    """Show a run with its steps, errors and questions."""
    found = server.client().run(run)
    if server.json:
        print_json(found)
    else:
        show_run(found)
    return Exit.OK


def label(
    run: RunArgument,
    labels: Annotated[
        tuple[str, ...],
        Parameter(
            name="KEY:VALUE", help="Label to set, such as customer:acme.", negative="", show_default=False
        ),
    ] = (),
    /,
    *,
    remove: Annotated[
        tuple[str, ...],
        Parameter(negative="", consume_multiple=False, show_default=False, metavar="KEY"),
    ] = (),
    server: Server = HERE,
) -> int:
    """
    Change the labels of a run.

    Works for finished runs, too. Labels that are not named stay as they are.

    Parameters
    ----------
    remove
        Key of a label to remove. Can be repeated.
    """
    changes: dict[str, str | None] = dict.fromkeys(remove)
    for text in labels:
        key, separator, value = text.partition(":")
        if not separator:
            raise CliError(
                f"{text!r} is not a label",
                fix="Write it as KEY:VALUE, such as customer:acme",
                exit_code=Exit.USAGE,
            )
        changes[key] = value
    if not changes:
        raise CliError("No labels to change", fix="Add KEY:VALUE, or --remove KEY", exit_code=Exit.USAGE)
    found = server.client().change_labels(run, changes)
    if server.json:
        print_json(found)
    else:
        print_text(labels_text(found) or "no labels")
    return Exit.OK


def items(
    run: RunArgument,
    step: Annotated[str, Parameter(name="STEP", help="Step with for_each.")],
    /,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    server: Server = HERE,
) -> int:
    """List the started items of a loop, in order."""
    page = server.client().items(run, step, limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    print_steps(page.items)
    note_next_page(("runs", "items", run, step), {}, page.next_cursor)
    return Exit.OK


def watch(run: RunArgument, /, *, wait: Duration = None, server: Server = HERE) -> int:
    """
    Watch a run until it ends or waits for a person.

    The exit code is 0 if the run completed, 10 if it failed, 11 if it was cancelled, 12 if it timed out, and 13 if it
    waits for a person.

    Parameters
    ----------
    wait
        Maximum time to watch, such as 30s.
    """
    show_as: Show = "json" if server.json else progress_for_people()
    ended = follow_run(server.client(), run, show=show_as, wait=wait)
    if not server.json and ended["output"] is not None:
        print_value(ended["output"])
    for line in error_lines(ended) + question_lines(ended):
        note(line)
    return exit_for(ended)
