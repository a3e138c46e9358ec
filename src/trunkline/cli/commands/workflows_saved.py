"""The `workflows` commands that talk to the server."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.options import HERE, Server
from trunkline.cli.rendering.output import note, print_json, print_table, print_text, status_cell
from trunkline.cli.rendering.times import date_time
from trunkline.cli.workflow_files import save_file


def apply(
    files: Annotated[
        tuple[str, ...], Parameter(name="FILE", help="YAML or JSON files; - is stdin.", negative="")
    ],
    /,
    *,
    server: Server = HERE,
) -> int:
    """
    Save workflows.

    A definition that is new or has changed becomes a new version; runs that have begun keep theirs.
    """
    client = server.client()
    saved = [save_file(client, file) for file in files]
    if server.json:
        print_json(
            {"items": [{**workflow, "created": created} for workflow, created in saved], "next_cursor": None}
        )
        return Exit.OK
    rows = [
        [workflow["name"], str(workflow["version"]), status_cell("created" if created else "unchanged")]
        for workflow, created in saved
    ]
    print_table(("WORKFLOW", "VERSION", "CHANGE"), rows)
    return Exit.OK


def list_workflows(*, limit: int | None = None, server: Server = HERE) -> int:
    """
    List workflows with their latest versions.

    Parameters
    ----------
    limit
        At most this many. Default: all.
    """
    page = server.client().workflows(limit=limit)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [str(workflow["name"]), str(workflow["version"]), date_time(workflow.get("created_at"))]
        for workflow in page.items
    ]
    print_table(("WORKFLOW", "VERSION", "SAVED"), rows)
    if not rows:
        note("There are no workflows. Save one with: trunkline workflows apply FILE")
    return Exit.OK


def show(
    workflow: Annotated[str, Parameter(name="WORKFLOW", help="Its name or id.")],
    /,
    *,
    version: int | None = None,
    server: Server = HERE,
) -> int:
    """
    Show a workflow as it was written.

    Parameters
    ----------
    version
        This version instead of the latest.
    """
    found = server.client().workflow(workflow, version)
    if server.json:
        print_json(found)
    else:
        note(f"{found['name']} v{found['version']}, saved {date_time(found.get('created_at'))}")
        print_text(str(found["source"]).rstrip("\n"))
    return Exit.OK
