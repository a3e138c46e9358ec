"""`trunkline inbox`: what waits for a person."""

from __future__ import annotations

from cyclopts import App

_ITEMS = "trunkline.cli.commands.inbox_items"

app = App(name="inbox", help="See and answer what waits for a person.", version_flags=[])
app.command(f"{_ITEMS}:list_items", name="list")
app.command(f"{_ITEMS}:show", name="show")
app.command(f"{_ITEMS}:answer", name="answer")
