"""The `runs` commands that look and change nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.follow import Show, exit_for, follow_run, progress_for_people
from trunkline.cli.next_page import note_next_page
from trunkline.cli.options import HERE, RunArgument, Server
from trunkline.cli.rendering.output import note, print_json, print_table, print_text, print_value, status_cell
from trunkline.cli.rendering.progress import FollowedRun
from trunkline.cli.rendering.run import error_lines, print_steps, question_lines, show_run
from trunkline.cli.rendering.times import date_time, duration_between

Status = Literal["PENDING", "RUNNING", "WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"]


def list_runs(
    *,
    status: Annotated[list[Status] | None, Parameter(negative="")] = None,
    workflow: str | None = None,
    agent: str | None = None,
    search: str | None = None,
    since: str | None = None,
    until: str | None = None,
    parent: str | None = None,
    children: bool = True,
    limit: int = 50,
    cursor: str | None = None,
    server: Server = HERE,
) -> int:
    """
    List runs, newest first.

    Parameters
    ----------
    status
        Only runs in this state; may be given several times: in any of them.
    workflow
        Only runs of this workflow, by name or id.
    agent
        Only runs of workflows that call this agent.
    search
        Only runs whose id or workflow's name begins with this text, or whose correlation id it is.
    since
        Only runs created at this time or later, e.g. 2026-03-01T12:00:00Z.
    until
        Only runs created before this time.
    parent
        Only runs that steps of this run have begun.
    children
        Runs that steps of other runs have begun, too.
    limit
        At most this many.
    cursor
        Go on where an earlier list ended: its next_cursor.
    """
    asked: dict[str, str | list[Status] | None] = {
        "status": status,
        "workflow": workflow,
        "agent": agent,
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
    rows = [
        [
            run["id"],
            f"{run['workflow']['name']} v{run['workflow']['version']}",
            status_cell(run["status"]),
            date_time(run["created_at"]),
            duration_between(run["started_at"], run["finished_at"]),
        ]
        for run in page.items
    ]
    print_table(("RUN", "WORKFLOW", "STATUS", "CREATED", "TIME"), rows)
    if not page.items:
        note("There are no such runs. Start one with: trunkline run FILE|NAME")
    note_next_page(("runs", "list"), {**asked, "no-children": not children}, page.next_cursor)
    return Exit.OK


def export(run: RunArgument, /, *, server: Server = HERE) -> int:
    """Print everything there is about a run, as one JSON document: the run, its items, events and wire."""
    client = server.client()
    found = client.run(run)
    print_json(
        {
            "run": found,
            "items": {
                step["name"]: client.items(run, step["name"]).items
                for step in found["steps"]
                if "items" in step
            },
            "events": client.events(run).items,
            "wire": client.wire(run).items,
        }
    )
    return Exit.OK


def show(run: RunArgument, /, *, server: Server = HERE) -> int:
    """Show a run with its steps, errors and questions."""
    found = server.client().run(run)
    if server.json:
        print_json(found)
    else:
        show_run(found)
    return Exit.OK


def items(
    run: RunArgument,
    step: Annotated[str, Parameter(name="STEP", help="A step with for_each.")],
    /,
    *,
    limit: int = 50,
    cursor: str | None = None,
    server: Server = HERE,
) -> int:
    """
    List the items of a step that have begun, in their order.

    Parameters
    ----------
    limit
        At most this many.
    cursor
        Go on where an earlier list ended: its next_cursor.
    """
    page = server.client().items(run, step, limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    print_steps(page.items)
    note_next_page(("runs", "items", run, step), {}, page.next_cursor)
    return Exit.OK


def watch(run: RunArgument, /, *, wait: float | None = None, server: Server = HERE) -> int:
    """
    Watch a run until it ends or waits for a person.

    Its exit code is the run's: 0 completed, 10 failed, 11 cancelled, 12 timed out, 13 it waits for a person.

    Parameters
    ----------
    wait
        Watch for this many seconds at most.
    """
    show_as: Show = "json" if server.json else progress_for_people()
    ended = follow_run(server.client(), run, show=show_as, seconds=wait)
    if not server.json and ended["output"] is not None:
        print_value(ended["output"])
    for line in error_lines(ended) + question_lines(ended):
        note(line)
    return exit_for(ended)


def events(run: RunArgument, /, *, server: Server = HERE) -> int:
    """List what has happened in a run."""
    client = server.client()
    happened = client.events(run)
    if server.json:
        print_json(happened.answer())
        return Exit.OK
    progress = FollowedRun.of(client.run(run))
    for event in happened.items:
        print_text(f"{event['seq']:>4} {progress.apply(event)}")
    return Exit.OK
