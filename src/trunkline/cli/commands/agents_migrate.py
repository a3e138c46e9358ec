"""`trunkline agents migrate`: from one protocol or address to another, and back."""

from __future__ import annotations

from cyclopts import App

_READ = "trunkline.cli.commands.agents_migrate_read"
_ACT = "trunkline.cli.commands.agents_migrate_act"

app = App(
    name="migrate",
    help="Move agents to another protocol or address: plan, check, shadow, canary, cutover, rollback, finish.",
    version_flags=[],
)
app.command(f"{_READ}:plan", name="plan")
app.command(f"{_READ}:check", name="check")
app.command(f"{_READ}:status", name="status")
app.command(f"{_READ}:history", name="history")
app.command(f"{_ACT}:ready", name="ready")
app.command(f"{_ACT}:shadow", name="shadow")
app.command(f"{_ACT}:canary", name="canary")
app.command(f"{_ACT}:cutover", name="cutover")
app.command(f"{_ACT}:rollback", name="rollback")
app.command(f"{_ACT}:finish", name="finish")
