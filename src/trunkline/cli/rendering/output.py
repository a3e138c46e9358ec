"""
How answers are printed: tables for people, aligned text for pipes, JSON for programs.

Only this module and `cli.rendering.live_view` write to stdout. rich is imported for a terminal
alone: a pipe has no use for it.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TextIO

GAP = "  "

# Control characters but for the end of a line and a tab, half a character, and what turns the direction of a line.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

STATUS_STYLES = {
    "PENDING": "dim",
    "RUNNING": "cyan",
    "WAITING": "yellow",
    "PAUSED": "yellow",
    "COMPENSATING": "yellow",
    "COMPLETED": "green",
    "FAILED": "red",
    "SKIPPED": "dim",
    "CANCELLED": "magenta",
    "OUTCOME_UNKNOWN": "red",
    "created": "green",
    "updated": "cyan",
    "unchanged": "dim",
    "ok": "green",
    "fail": "red",
}

STATUS_ICONS = {
    "PENDING": "·",
    "RUNNING": "▶",
    "WAITING": "◔",
    "PAUSED": "⏸",
    "COMPENSATING": "↶",
    "COMPLETED": "✔",
    "FAILED": "✘",
    "SKIPPED": "↷",
    "CANCELLED": "■",
    "OUTCOME_UNKNOWN": "?",
}


class Cell(NamedTuple):
    """Text with a rich style, which only a terminal shows."""

    text: str
    style: str = ""


def status_cell(status: str) -> Cell:
    return Cell(status, STATUS_STYLES.get(status, ""))


def on_terminal() -> bool:
    return sys.stdout.isatty()


def print_text(text: str) -> None:
    _write(text, sys.stdout)


def print_now(text: str) -> None:
    """A line that someone waits for, also behind a pipe."""
    print_text(text)
    sys.stdout.flush()


def note(text: str) -> None:
    """What is not data: hints, progress, errors."""
    _write(text, sys.stderr)


def json_text(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def print_json(value: object) -> None:
    print_text(json_text(value))


def print_deleted(kind: str, name: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"deleted": name})
    else:
        note(f"Deleted {kind} {name}")


def print_value(value: object) -> None:
    """A workflow's output: text as it is, everything else as JSON."""
    print_text(value if isinstance(value, str) else json_text(value))


def harmless(text: str) -> str:
    """Text from an agent must not control the terminal."""
    return _STEERING.sub(lambda found: repr(found[0])[1:-1], text)


def _write(text: str, stream: TextIO) -> None:
    # A pipe gets every byte; who reads there knows what to do with it.
    stream.write(f"{harmless(text) if stream.isatty() else text}\n")


def print_fields(fields: Sequence[tuple[str, object]]) -> None:
    """Names and values, one per line; what has no value is left out."""
    shown = [(name, str(value)) for name, value in fields if value not in (None, "")]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        print_text(f"{name.ljust(width)}{GAP}{value}")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str | Cell]]) -> None:
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    if on_terminal():
        _print_rich_table(columns, cells)
    else:
        print_text(aligned(columns, [[cell.text for cell in row] for row in cells]))


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width, each cell on one line, so that `grep`, `awk` and `cut` can read them."""
    lines = [list(columns)] + [[" ".join(cell.split()) or "-" for cell in row] for row in rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    return "\n".join(
        GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def note_next_page(
    command: Sequence[str], asked: Mapping[str, str | int | Sequence[str] | None], cursor: str | None
) -> None:
    """`asked`: the options of the list. Prints nothing on the last page."""
    if cursor is not None:
        words = ["trunkline", *command, *_flags(asked), "--cursor", cursor]
        note(f"Next page: {shlex.join(words)}")


def _print_rich_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    from rich import box  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(harmless(cell.text), style=cell.style) for cell in row))
    Console().print(table)


def _flags(asked: Mapping[str, str | int | Sequence[str] | None]) -> Iterator[str]:
    for name, value in asked.items():
        match value:
            case None | False:
                pass
            case True:
                yield f"--{name}"
            case str() | int():
                yield from (f"--{name}", str(value))
            case _:
                for one in value:
                    yield from (f"--{name}", one)
