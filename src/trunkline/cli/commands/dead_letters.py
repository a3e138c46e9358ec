"""`trunkline dead-letters`: records that could not be read or applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.options import HERE, Server
from trunkline.cli.rendering.output import note, print_fields, print_json, print_table, print_text

if TYPE_CHECKING:
    from trunkline.api.resources.dead_letters import DeadLetterSummary

LetterArgument = Annotated[str, Parameter(name="LETTER", help="The dead letter's id.")]

app = App(
    name="dead-letters",
    help="See, replay and discard records that could not be read or applied.",
    version_flags=[],
)


@app.command(name="list")
def list_letters(*, limit: int | None = None, server: Server = HERE) -> int:
    """
    List the dead letters, the newest first.

    Parameters
    ----------
    limit
        At most this many. Default: all.
    """
    page = server.client().dead_letters(limit=limit)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [letter["id"], _origin(letter), str(letter["size"]), letter["at"], letter["reason"]]
        for letter in page.items
    ]
    print_table(("LETTER", "FROM", "BYTES", "AT", "REASON"), rows)
    if not rows:
        note("There are no dead letters.")
    return Exit.OK


@app.command(name="show")
def show(letter: LetterArgument, /, *, server: Server = HERE) -> int:
    """Show a dead letter, its value too."""
    found = server.client().dead_letter(letter)
    if server.json:
        print_json(found)
        return Exit.OK
    print_fields(
        [
            ("letter", found["id"]),
            ("from", _origin(found)),
            ("key", _encoded(found["key"], found["key_encoding"])),
            ("at", found["at"]),
            ("reason", found["reason"]),
            *((header["name"], _encoded(header["value"], header["encoding"])) for header in found["headers"]),
            ("bytes", found["size"]),
        ]
    )
    if found["value"] is not None:
        print_text("")
        print_text(found["value"])
        if found["encoding"] == "base64":
            note("The value is not UTF-8; it is shown as base64.")
        if found["cut"]:
            note("This is only the beginning of the value; a replay sends all of it.")
    return Exit.OK


@app.command(name="replay")
def replay(letter: LetterArgument, /, *, server: Server = HERE) -> int:
    """
    Send a dead letter to its topic again, as it came.

    If it still cannot be read or applied, it comes back as another one.
    """
    sent = server.client().replay(letter)
    if server.json:
        print_json(sent)
    else:
        note(f"{letter} is on its way to {sent['topic']}")
    return Exit.OK


@app.command(name="discard")
def discard(letter: LetterArgument, /, *, server: Server = HERE) -> int:
    """Throw a dead letter away, for good."""
    server.client().discard(letter)
    if server.json:
        print_json({"discarded": letter})
    else:
        note(f"{letter} is gone")
    return Exit.OK


def _origin(letter: DeadLetterSummary) -> str:
    return f"{letter['topic']}/{letter['partition']}/{letter['offset']}"


def _encoded(text: str | None, encoding: str) -> str | None:
    return f"{text} (base64)" if encoding == "base64" else text
