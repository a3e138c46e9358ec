"""`trunkline zone`: a zone of the JSON-RPC contract, served here, and whom it has turned away."""

from __future__ import annotations

from cyclopts import App

app = App(name="zone", help="Serve a zone: functions behind one address, as JSON-RPC.", version_flags=[])
app.command("trunkline.cli.commands.zone_serve:serve", name="serve")
app.command("trunkline.cli.commands.zone_audit:audit", name="audit")
