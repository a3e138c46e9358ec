"""`trunkline dead-letters`: records that could not be read or applied."""

from __future__ import annotations

from cyclopts import App

_LETTERS = "trunkline.cli.commands.dead_letters_kept"

app = App(
    name="dead-letters",
    help="See, replay and discard records that could not be read or applied.",
    version_flags=[],
)
app.command(f"{_LETTERS}:list_letters", name="list")
app.command(f"{_LETTERS}:show", name="show")
app.command(f"{_LETTERS}:replay", name="replay")
app.command(f"{_LETTERS}:discard", name="discard")
