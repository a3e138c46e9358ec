"""`trunkline secrets`: what workflows send to agents, by name."""

from __future__ import annotations

from cyclopts import App

_SECRETS = "trunkline.cli.commands.secrets_named"

app = App(
    name="secrets",
    help="Set, list and remove secrets that workflows name; nobody can read one again.",
    version_flags=[],
)
app.command(f"{_SECRETS}:set_secret", name="set")
app.command(f"{_SECRETS}:list_secrets", name="list")
app.command(f"{_SECRETS}:remove", name="remove")
