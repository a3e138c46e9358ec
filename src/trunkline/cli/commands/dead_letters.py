"""`trunkline dead-letters`: messages that could not be read or applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.options import HERE, Cursor, LimitOrAll, Server
from trunkline.cli.rendering.output import (
    note,
    note_next_page,
    print_deleted,
    print_fields,
    print_json,
    print_table,
    print_text,
)
from trunkline.cli.rendering.times import date_time

if TYPE_CHECKING:
    from trunkline.api.resources.dead_letters import DeadLetterSummary

LetterArgument = Annotated[str, Parameter(name="LETTER", help="ID of the dead letter.")]

app = App(
    name="dead-letters",
    help="Inspect, replay and delete messages that could not be read or applied.",
    version_flags=[],
)


@app.command(name="list")
def list_letters(*, limit: LimitOrAll = None, cursor: Cursor = None, server: Server = HERE) -> int:
    """List dead letters, newest first."""
    page = server.client().dead_letters(limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [letter["id"], _origin(letter), str(letter["size"]), date_time(letter["at"]), letter["reason"]]
        for letter in page.items
    ]
    print_table(("LETTER", "FROM", "BYTES", "AT", "REASON"), rows)
    if not rows:
        note("No dead letters.")
    note_next_page(("dead-letters", "list"), {}, page.next_cursor)
    return Exit.OK


@app.command(name="show")
def show(letter: LetterArgument, /, *, server: Server = HERE) -> int:
    """Show a dead letter with its headers and value."""
    found = server.client().dead_letter(letter)
    if server.json:
        print_json(found)
        return Exit.OK
    print_fields(
        [
            ("letter", found["id"]),
            ("from", _origin(found)),
            ("key", _encoded(found["key"], found["key_encoding"])),
            ("at", date_time(found["at"])),
            ("reason", found["reason"]),
            *((header["name"], _encoded(header["value"], header["encoding"])) for header in found["headers"]),
            ("bytes", found["size"]),
        ]
    )
    if found["value"] is not None:
        print_text("")
        print_text(found["value"])
        if found["encoding"] == "base64":
            note("The value is not UTF-8, so it is shown as base64.")
        if found["cut"]:
            note("The value is truncated here. A replay sends all of it.")
    return Exit.OK


@app.command(name="replay")
def replay(letter: LetterArgument, /, *, server: Server = HERE) -> int:
    """
    Send a dead letter to its topic again, unchanged.

    If it still cannot be read or applied, it becomes a new dead letter.
    """
    sent = server.client().replay(letter)
    if server.json:
        print_json(sent)
    else:
        note(f"Sent dead letter {letter} to {sent['topic']}")
    return Exit.OK


@app.command(name="delete")
def delete(letter: LetterArgument, /, *, server: Server = HERE) -> int:
    """Delete a dead letter permanently."""
    server.client().delete_dead_letter(letter)
    print_deleted("dead letter", letter, as_json=server.json)
    return Exit.OK


# The verb of earlier versions.
app.command(delete, name="discard", show=False)


def _origin(letter: DeadLetterSummary) -> str:
    return f"{letter['topic']}/{letter['partition']}/{letter['offset']}"


def _encoded(text: str | None, encoding: str) -> str | None:
    return f"{text} (base64)" if encoding == "base64" else text
