"""`trunkline workflows`: saving, checking and showing definitions, some of it without a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, Diagnostic, diagnostic_of, explained
from trunkline.cli.inputs import read_bytes
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import HERE, JsonFlag, Server
from trunkline.cli.rendering.output import note, print_json, print_table, print_text, status_cell
from trunkline.cli.rendering.times import date_time
from trunkline.cli.rendering.workflow_graph import Node, as_mermaid, as_text
from trunkline.cli.workflow_files import is_file, save_file

if TYPE_CHECKING:
    from trunkline import messages
    from trunkline import workflow as language
    from trunkline.api.resources.common import FindingResource
    from trunkline.workflow import CompiledStep, CompiledWorkflow, LoadedWorkflow
else:
    messages = lazy_module("trunkline.messages")
    language = lazy_module("trunkline.workflow")


app = App(name="workflows", help="Save, check and see workflows.", version_flags=[])


@app.command(name="apply")
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


@app.command(name="validate")
def validate(
    files: Annotated[
        tuple[str, ...], Parameter(name="FILE", help="YAML or JSON files; - is stdin.", negative="")
    ],
    /,
    *,
    json: JsonFlag = False,
) -> int:
    """
    Check workflow files.

    Needs no server. Everything that is wrong is told as file:line:column: message, and the exit code is 7 then.
    """
    reports = [_report(file) for file in files]
    if json:
        print_json({"items": reports, "next_cursor": None})
    else:
        for report in reports:
            _print_report(report)
    return Exit.INVALID if any(report["errors"] for report in reports) else Exit.OK


@app.command(name="list")
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
        [workflow["name"], str(workflow["version"]), date_time(workflow["created_at"])]
        for workflow in page.items
    ]
    print_table(("WORKFLOW", "VERSION", "SAVED"), rows)
    if not rows:
        note("There are no workflows. Save one with: trunkline workflows apply FILE")
    return Exit.OK


@app.command(name="show")
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
        note(f"{found['name']} v{found['version']}, saved {date_time(found['created_at'])}")
        print_text(found["source"].rstrip("\n"))
    return Exit.OK


class WorkflowFileReport(TypedDict):
    """What came of one file."""

    file: str
    name: str | None
    errors: list[FindingResource]
    warnings: list[FindingResource]


@app.command(name="graph")
def graph(
    workflow: Annotated[str, Parameter(name="WORKFLOW", help="A file, or a saved workflow's name.")],
    /,
    *,
    format_: Annotated[Literal["text", "mermaid"], Parameter(name="--format")] = "text",
    server: Server = HERE,
) -> int:
    """
    Draw a workflow's graph.

    Needs no server when the workflow is a file.

    Parameters
    ----------
    format_
        text for a terminal; mermaid for pages that draw it.
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

    Editors complete and check with it.
    """
    del json  # a schema has no other form
    print_json(language.workflow_json_schema())
    return Exit.OK


def _report(file: str) -> WorkflowFileReport:
    try:
        loaded = _load(file)
    except CliError as error:
        # Some mistakes have no place: a file that is no text at all.
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
        )
        for step in workflow.steps.values()
    ]
