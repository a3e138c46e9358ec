"""`trunkline agents`: the registry."""

from __future__ import annotations

from cyclopts import App

_AGENTS = "trunkline.cli.commands.agents_registry"

app = App(name="agents", help="Register and see agents.", version_flags=[])
app.command(f"{_AGENTS}:add", name="add")
app.command("trunkline.cli.commands.agents_apply:apply", name="apply")
app.command(f"{_AGENTS}:list_agents", name="list")
app.command(f"{_AGENTS}:show", name="show")
app.command(f"{_AGENTS}:health", name="health")
app.command("trunkline.cli.commands.agents_try:try_", name="try")
app.command("trunkline.cli.commands.agents_check:check", name="check")
app.command("trunkline.cli.commands.agents_migrate:app", name="migrate")
app.command(f"{_AGENTS}:refresh", name="refresh")
app.command("trunkline.cli.commands.agents_limits:reset", name="reset")
app.command(f"{_AGENTS}:remove", name="remove")
