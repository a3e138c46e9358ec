"""`trunkline db`: the schema of the store, without a server."""

from __future__ import annotations

from cyclopts import App

_SCHEMA = "trunkline.cli.commands.db_schema"

app = App(name="db", help="Upgrade and check the store's tables.", version_flags=[])
app.command(f"{_SCHEMA}:upgrade", name="upgrade")
app.command(f"{_SCHEMA}:downgrade", name="downgrade")
app.command(f"{_SCHEMA}:check", name="check")
