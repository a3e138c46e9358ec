"""`trunkline runs logs`: what is known of a run, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from trunkline.cli.exit_codes import Exit
from trunkline.cli.next_page import note_next_page
from trunkline.cli.options import HERE, OnlyStep, RunArgument, Server
from trunkline.cli.rendering.output import aligned, harmless, note, print_json, print_text
from trunkline.cli.rendering.times import date_time
from trunkline.cli.run_steps import check_step

if TYPE_CHECKING:
    from trunkline.cli.answers import LogLine

_COLUMNS = ("AT", "LEVEL", "FROM", "STEP", "ATTEMPT", "TEXT")


def logs(
    run: RunArgument,
    step: OnlyStep = None,
    /,
    *,
    attempt: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
    limit: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
    cursor: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Show what is known of a run, line by line, oldest first.

    Its history, what its agents have said meanwhile, and every exchange with them in short; all of an exchange is in
    runs wire. What a process writes to its own log beside that is where its log goes.

    Parameters
    ----------
    attempt
        Only lines of this attempt, or of none.
    limit
        At most this many. Default: all.
    cursor
        Go on where an earlier list ended: its next_cursor.
    """
    client = server.client()
    page = client.logs(run, {"step": step, "attempt": attempt}, limit=limit, cursor=cursor)
    if not page.items and step is not None:
        check_step(client.run(run), step)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    if page.items:
        # As in a pipe on a terminal, too, where a table would fold the texts into a narrow column.
        print_text(aligned(_COLUMNS, [_row(line) for line in page.items]))
    else:
        note("There are no such lines.")
    place = (run,) if step is None else (run, step)
    note_next_page(("runs", "logs", *place), {"attempt": attempt}, page.next_cursor)
    return Exit.OK


def _row(line: LogLine) -> list[str]:
    return [
        date_time(line["at"]),
        line["level"],
        line["source"],
        line["step"] or "",
        str(line["attempt"] or ""),
        "\n".join(map(harmless, line["text"].splitlines())),
    ]
