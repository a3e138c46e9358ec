"""`trunkline config`: the settings as they are read here."""

from __future__ import annotations

from cyclopts import App

app = App(name="config", help="See the settings.", version_flags=[])
app.command("trunkline.cli.commands.config_view:view", name="view")
