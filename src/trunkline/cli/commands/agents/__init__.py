"""
`trunkline agents`: the registry, and checking, trying and migrating agents.

Each part is imported only when it is used.
"""

from __future__ import annotations

from cyclopts import App

_REGISTRY = "trunkline.cli.commands.agents.registry"

app = App(name="agents", help="Register, check and migrate agents.", version_flags=[])
app.command(f"{_REGISTRY}:create", name="create")
app.command("trunkline.cli.commands.agents.apply:apply", name="apply")
app.command(f"{_REGISTRY}:list_agents", name="list")
app.command(f"{_REGISTRY}:show", name="show")
app.command(f"{_REGISTRY}:update", name="update")
app.command(f"{_REGISTRY}:delete", name="delete")
app.command(f"{_REGISTRY}:health", name="health")
app.command("trunkline.cli.commands.agents.try_agent:try_", name="try")
app.command("trunkline.cli.commands.agents.check:check", name="check")
app.command("trunkline.cli.commands.agents.migrate:app", name="migrate")
app.command("trunkline.cli.publish_commands:publish_agent", name="publish")
app.command("trunkline.cli.publish_commands:unpublish_agent", name="unpublish")
app.command(f"{_REGISTRY}:refresh", name="refresh")
app.command(f"{_REGISTRY}:reset", name="reset")
# The verbs of earlier versions.
app.command(f"{_REGISTRY}:create", name="add", show=False)
app.command(f"{_REGISTRY}:delete", name="remove", show=False)
