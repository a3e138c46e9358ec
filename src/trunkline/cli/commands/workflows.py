"""`trunkline workflows`: saving, checking and seeing definitions."""

from __future__ import annotations

from cyclopts import App

_SAVED = "trunkline.cli.commands.workflows_saved"
_LOCAL = "trunkline.cli.commands.workflows_local"

app = App(name="workflows", help="Save, check and see workflows.", version_flags=[])
app.command(f"{_SAVED}:apply", name="apply")
app.command(f"{_LOCAL}:validate", name="validate")
app.command(f"{_SAVED}:list_workflows", name="list")
app.command(f"{_SAVED}:show", name="show")
app.command(f"{_LOCAL}:graph", name="graph")
app.command(f"{_LOCAL}:schema", name="schema")
