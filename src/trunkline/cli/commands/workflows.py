"""`trunkline workflows`: save, validate and show definitions, in part without a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from cyclopts import App, Parameter

from trunkline.cli.definition_files import is_file, save_file
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, Diagnostic, diagnostic_of, explained
from trunkline.cli.inputs import Choice, read_bytes
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import HERE, Cursor, DefinitionFiles, JsonFlag, Limit, LimitOrAll, Server
from trunkline.cli.rendering.output import (
    note,
    note_next_page,
    print_json,
    print_table,
    print_text,
    status_cell,
)
from trunkline.cli.rendering.times import date_time
from trunkline.cli.rendering.workflow_graph import Node, as_mermaid, as_text

if TYPE_CHECKING:
    from trunkline import messages
    from trunkline import workflow as language
    from trunkline.api.resources.common import FindingResource
    from trunkline.workflow import CompiledStep, CompiledWorkflow, LoadedWorkflow
else:
    messages = lazy_module("trunkline.messages")
    language = lazy_module("trunkline.workflow")


app = App(name="workflows", help="Save, validate and show workflows.", version_flags=[])
app.command("trunkline.cli.publish_commands:publish_workflow", name="publish")
app.command("trunkline.cli.publish_commands:unpublish_workflow", name="unpublish")


@app.command(name="apply")
def apply(
    files: DefinitionFiles,
    /,
    *,
    server: Server = HERE,
) -> int:
    """
    Save workflows.

    A new or changed definition becomes a new version. Runs keep the version that they started with.
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


@app.command(name="validate")
def validate(
    files: DefinitionFiles,
    /,
    *,
    json: JsonFlag = False,
) -> int:
    """
    Validate workflow files.

    Needs no server. Prints each error as file:line:column: message, and exits with 7 if there is one.
    """
    reports = [_report(file) for file in files]
    if json:
        print_json({"items": reports, "next_cursor": None})
    else:
        for report in reports:
            _print_report(report)
    return Exit.INVALID if any(report["errors"] for report in reports) else Exit.OK


@app.command(name="list")
def list_workflows(*, limit: LimitOrAll = None, cursor: Cursor = None, server: Server = HERE) -> int:
    """List workflows with their latest versions."""
    page = server.client().workflows(limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [workflow["name"], str(workflow["version"]), date_time(workflow["created_at"])]
        for workflow in page.items
    ]
    print_table(("WORKFLOW", "VERSION", "SAVED"), rows)
    if not rows:
        note("No workflows. Save one with: trunkline workflows apply FILE")
    note_next_page(("workflows", "list"), {}, page.next_cursor)
    return Exit.OK


@app.command(name="versions")
def versions(
    workflow: Annotated[str, Parameter(name="WORKFLOW", help="Name or ID of the workflow.")],
    /,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    server: Server = HERE,
) -> int:
    """List the versions of a workflow, newest first."""
    page = server.client().workflow_versions(workflow, limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [[str(version["version"]), date_time(version["created_at"])] for version in page.items]
    print_table(("VERSION", "SAVED"), rows)
    note_next_page(("workflows", "versions", workflow), {}, page.next_cursor)
    return Exit.OK


@app.command(name="show")
def show(
    workflow: Annotated[str, Parameter(name="WORKFLOW", help="Name or ID of the workflow.")],
    /,
    *,
    version: int | None = None,
    server: Server = HERE,
) -> int:
    """
    Show the definition of a workflow.

    Parameters
    ----------
    version
        Version to show. Default: the latest.
    """
    found = server.client().workflow(workflow, version)
    if server.json:
        print_json(found)
    else:
        note(f"{found['name']} v{found['version']}, saved {date_time(found['created_at'])}")
        print_text(found["source"].rstrip("\n"))
    return Exit.OK


class WorkflowFileReport(TypedDict):
    """The result for one file."""

    file: str
    name: str | None
    errors: list[FindingResource]
    warnings: list[FindingResource]


@app.command(name="graph")
def graph(
    workflow: Annotated[str, Parameter(name="WORKFLOW", help="File, or name of a saved workflow.")],
    /,
    *,
    format_: Annotated[Literal["text", "mermaid"], Parameter(name="--format"), Choice] = "text",
    server: Server = HERE,
) -> int:
    """
    Draw the graph of a workflow.

    Needs no server if the workflow is a file.

    Parameters
    ----------
    format_
        text for a terminal, or mermaid for Markdown pages.
    """
    nodes = _nodes(_compiled(workflow, server))
    if server.json:
        print_json([node._asdict() for node in nodes])
    else:
        print_text(as_mermaid(nodes) if format_ == "mermaid" else as_text(nodes))
    return Exit.OK


@app.command(name="schema")
def schema(*, json: JsonFlag = False) -> int:
    """
    Print the JSON Schema of workflow files.

    Use it in an editor, for completion and validation.
    """
    del json  # a schema has no other form
    print_json(language.workflow_json_schema())
    return Exit.OK


def _report(file: str) -> WorkflowFileReport:
    try:
        loaded = _load(file)
    except CliError as error:
        # An error may have no position, such as for a file that is not text.
        errors = error.diagnostics or (Diagnostic("", error.what),)
        return {"file": file, "name": None, "errors": _findings(errors), "warnings": []}
    warnings = [Diagnostic(f.path, f.message, f.line, f.column) for f in loaded.warnings]
    return {"file": file, "name": loaded.definition.name, "errors": [], "warnings": _findings(warnings)}


def _print_report(report: WorkflowFileReport) -> None:
    for error in report["errors"]:
        print_text(diagnostic_of(error).text(report["file"]))
    for warning in report["warnings"]:
        print_text(f"{diagnostic_of(warning).text(report['file'])} [warning]")
    if not report["errors"]:
        print_text(f"{report['file']}: {report['name']} is valid")


def _findings(diagnostics: Iterable[Diagnostic]) -> list[FindingResource]:
    return [
        {"path": one.path, "message": one.message, "line": one.line, "column": one.column}
        for one in diagnostics
    ]


def _load(file: str) -> LoadedWorkflow:
    text = read_bytes(file)
    with explained(file):
        return language.load_workflow(text, source=file, known_error_codes=messages.ERROR_CODES)


def _compiled(workflow: str, server: Server) -> CompiledWorkflow:
    if is_file(workflow):
        loaded = _load(workflow)
    else:
        with explained(workflow):
            loaded = language.load_workflow(server.client().workflow(workflow)["source"], source=workflow)
    return language.compile_workflow(loaded.definition)


def _join(step: CompiledStep) -> str | None:
    return None if step.join is None else f"any {step.join.quorum} of {len(step.join.branches)}"


def _each(step: CompiledStep) -> str | None:
    loop = step.definition.for_each
    if loop is None:
        return None
    return loop.items if isinstance(loop.items, str) else f"of {len(loop.items)}"


def _workflow(step: CompiledStep) -> str | None:
    name, version = step.definition.workflow, step.definition.version
    return name if name is None or version is None else f"{name} v{version}"


def _nodes(workflow: CompiledWorkflow) -> list[Node]:
    return [
        Node(
            step.name,
            step.agent,
            tuple(step.needs),
            step.definition.when,
            tuple(step.catches),
            _join(step),
            _each(step),
            _workflow(step),
            step.kind if step.is_action else None,
        )
        for step in workflow.steps.values()
    ]
