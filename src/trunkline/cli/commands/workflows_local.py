"""The `workflows` commands that need no server: the language itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, Place, explained, place_of
from trunkline.cli.inputs import read_bytes
from trunkline.cli.options import HERE, JsonFlag, Server
from trunkline.cli.rendering.output import print_json, print_text
from trunkline.cli.rendering.workflow_graph import Node, as_mermaid, as_text
from trunkline.cli.workflow_files import is_file

if TYPE_CHECKING:
    from trunkline.workflow import Loaded, Step, Workflow


class Report(TypedDict):
    """What came of one file."""

    file: str
    name: str | None
    errors: list[dict[str, object]]
    warnings: list[dict[str, object]]


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


def schema(*, json: JsonFlag = False) -> int:
    """
    Print the JSON Schema of workflow files.

    Editors complete and check with it.
    """
    del json  # a schema has no other form
    from trunkline.workflow import workflow_json_schema  # noqa: PLC0415  (compiles CEL: slow to import)

    print_json(workflow_json_schema())
    return Exit.OK


def _report(file: str) -> Report:
    try:
        loaded = _load(file)
    except CliError as error:
        # Some mistakes have no place: a file that is no text at all.
        errors = error.places or (Place("", error.what),)
        return {"file": file, "name": None, "errors": _dicts(errors), "warnings": []}
    warnings = [Place(f.path, f.message, f.line, f.column) for f in loaded.warnings]
    return {"file": file, "name": loaded.definition.name, "errors": [], "warnings": _dicts(warnings)}


def _print_report(report: Report) -> None:
    for error in report["errors"]:
        print_text(place_of(error).text(report["file"]))
    for warning in report["warnings"]:
        print_text(f"{place_of(warning).text(report['file'])} [warning]")
    if not report["errors"]:
        print_text(f"{report['file']}: {report['name']} is valid")


def _dicts(places: Iterable[Place]) -> list[dict[str, object]]:
    return [place._asdict() for place in places]


def _load(file: str) -> Loaded:
    from trunkline.messages import ERROR_CODES  # noqa: PLC0415  (as the next)
    from trunkline.workflow import load_workflow  # noqa: PLC0415  (compiles CEL: slow to import)

    text = read_bytes(file)
    with explained(file):
        return load_workflow(text, source=file, known_error_codes=ERROR_CODES)


def _compiled(workflow: str, server: Server) -> Workflow:
    from trunkline.workflow import compile_workflow, load_workflow  # noqa: PLC0415  (compiles CEL: slow to import)

    if is_file(workflow):
        loaded = _load(workflow)
    else:
        with explained(workflow):
            loaded = load_workflow(str(server.client().workflow(workflow)["source"]), source=workflow)
    return compile_workflow(loaded.definition)


def _join(step: Step) -> str | None:
    return None if step.join is None else f"any {step.join.quorum} of {len(step.join.branches)}"


def _each(step: Step) -> str | None:
    loop = step.definition.for_each
    if loop is None:
        return None
    return loop.items if isinstance(loop.items, str) else f"of {len(loop.items)}"


def _workflow(step: Step) -> str | None:
    name, version = step.definition.workflow, step.definition.version
    return name if name is None or version is None else f"{name} v{version}"


def _nodes(workflow: Workflow) -> list[Node]:
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
