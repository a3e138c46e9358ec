"""`trunkline schemas`: JSON Schemas that steps refer to by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, explained
from trunkline.cli.inputs import STDIN, read_bytes
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import HERE, Cursor, LimitOrAll, Server
from trunkline.cli.rendering.output import (
    note,
    note_next_page,
    print_deleted,
    print_json,
    print_table,
    status_cell,
)
from trunkline.cli.rendering.times import date_time

if TYPE_CHECKING:
    from trunkline.jsontypes import JsonObject
    from trunkline.workflow.document import parsing as workflow_parse
else:
    workflow_parse = lazy_module("trunkline.workflow.document.parsing")

NameArgument = Annotated[str, Parameter(name="NAME", help="Name of the schema.")]

app = App(
    name="schemas", help="Save, list, show and delete JSON Schemas for outputs of steps.", version_flags=[]
)


@app.command(name="apply")
def apply(
    files: Annotated[
        tuple[str, ...], Parameter(name="FILE", help="JSON or YAML files. - reads stdin.", negative="")
    ],
    /,
    *,
    name: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Save JSON Schemas.

    Steps refer to a schema as output_schema: {$ref: schemas/NAME}. Workflows that you save afterwards use it. Saved
    workflows keep the earlier one.

    Parameters
    ----------
    name
        Name of the schema, for a single file. Default: the name of the file without its extensions.
    """
    if name is not None and len(files) > 1:
        raise CliError("--name needs a single file", fix="Save one file at a time.", exit_code=Exit.USAGE)
    client = server.client()
    saved = [client.save_schema(name or _name_of(file), _read(file)) for file in files]
    if server.json:
        print_json(
            {"items": [{**schema, "created": created} for schema, created in saved], "next_cursor": None}
        )
        return Exit.OK
    rows = [
        [schema["name"], str(schema["version"]), status_cell("created" if created else "saved")]
        for schema, created in saved
    ]
    print_table(("SCHEMA", "VERSION", "CHANGE"), rows)
    return Exit.OK


@app.command(name="list")
def list_schemas(*, limit: LimitOrAll = None, cursor: Cursor = None, server: Server = HERE) -> int:
    """List saved JSON Schemas."""
    page = server.client().schemas(limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [schema["name"], str(schema["version"]), date_time(schema["updated_at"])] for schema in page.items
    ]
    print_table(("SCHEMA", "VERSION", "CHANGED"), rows)
    if not rows:
        note("No schemas. Save one with: trunkline schemas apply FILE")
    note_next_page(("schemas", "list"), {}, page.next_cursor)
    return Exit.OK


@app.command(name="show")
def show(name: NameArgument, /, *, server: Server = HERE) -> int:
    """Show a JSON Schema."""
    found = server.client().schema(name)
    if server.json:
        print_json(found)
    else:
        note(f"{found['name']} v{found['version']}, changed {date_time(found['updated_at'])}")
        print_json(found.get("schema"))
    return Exit.OK


@app.command(name="delete")
def delete(name: NameArgument, /, *, server: Server = HERE) -> int:
    """Delete a JSON Schema. Saved workflows keep their copies."""
    server.client().delete_schema(name)
    print_deleted("schema", name, as_json=server.json)
    return Exit.OK


def _name_of(file: str) -> str:
    if file == STDIN:
        raise CliError("A schema from stdin needs a name", fix="Add --name NAME", exit_code=Exit.USAGE)
    return Path(file).name.partition(".")[0]


def _read(file: str) -> JsonObject:
    with explained(file):
        document = workflow_parse.read_document(read_bytes(file), file)
    problem = document.problems[0].message if document.problems else None
    if problem is not None or not isinstance(document.value, dict):
        raise CliError(
            f"Cannot read {file}: {problem or 'it is not a JSON Schema, which is an object'}",
            fix="Write a JSON Schema, such as: {type: object, required: [score]}",
            exit_code=Exit.INVALID,
        )
    return document.value
