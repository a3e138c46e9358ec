"""How to ask for the rest of a list."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from trunkline.cli.rendering.output import note


def note_next_page(
    command: Sequence[str], asked: Mapping[str, str | int | Sequence[str] | None], cursor: str | None
) -> None:
    """`asked`: the options that the list was asked for with; nothing is said where there is no rest."""
    if cursor is not None:
        words = ["trunkline", *command, *_flags(asked), "--cursor", cursor]
        note(f"There are more: {shlex.join(words)}")


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
