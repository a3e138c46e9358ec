"""`trunkline topics`: Kafka's topics, made and checked without a server."""

from __future__ import annotations

from cyclopts import App

_TOPICS = "trunkline.cli.commands.topics_kept"

app = App(name="topics", help="Make and check Kafka's topics.", version_flags=[])
app.command(f"{_TOPICS}:create", name="create")
app.command(f"{_TOPICS}:check", name="check")
