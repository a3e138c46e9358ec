"""
`trunkline agents`: the registry, and checking, trying and migrating agents.

Each part is imported only when it is used.
"""

from __future__ import annotations

from cyclopts import App

_REGISTRY = "trunkline.cli.commands.agents.registry"

app = App(name="agents", help="Register and see agents.", version_flags=[])
app.command(f"{_REGISTRY}:add", name="add")
app.command("trunkline.cli.commands.agents.apply:apply", name="apply")
app.command(f"{_REGISTRY}:list_agents", name="list")
app.command(f"{_REGISTRY}:show", name="show")
app.command(f"{_REGISTRY}:health", name="health")
app.command("trunkline.cli.commands.agents.try_agent:try_", name="try")
app.command("trunkline.cli.commands.agents.check:check", name="check")
app.command("trunkline.cli.commands.agents.migrate:app", name="migrate")
app.command(f"{_REGISTRY}:refresh", name="refresh")
app.command(f"{_REGISTRY}:reset", name="reset")
app.command(f"{_REGISTRY}:remove", name="remove")
