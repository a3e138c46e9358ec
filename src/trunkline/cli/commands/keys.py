"""`trunkline keys`: who may use the API."""

from __future__ import annotations

from cyclopts import App

_KEYS = "trunkline.cli.commands.keys_stored"

app = App(name="keys", help="Make, see and revoke the API's keys, in the store itself.", version_flags=[])
app.command(f"{_KEYS}:create", name="create")
app.command(f"{_KEYS}:list_keys", name="list")
app.command(f"{_KEYS}:revoke", name="revoke")
