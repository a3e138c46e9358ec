"""`trunkline runs`: the group; its commands live in the modules `runs_…` beside it."""

from __future__ import annotations

from cyclopts import App

_READ = "trunkline.cli.commands.runs_read"
_STEER = "trunkline.cli.commands.runs_steer"

app = App(name="runs", help="See and steer runs.", version_flags=[])
app.command(f"{_READ}:list_runs", name="list")
app.command(f"{_READ}:show", name="show")
app.command(f"{_READ}:items", name="items")
app.command(f"{_READ}:watch", name="watch")
app.command(f"{_READ}:events", name="events")
app.command("trunkline.cli.commands.runs_logs:logs", name="logs")
app.command("trunkline.cli.commands.runs_wire:wire", name="wire")
app.command("trunkline.cli.commands.runs_file:file", name="file")
app.command(f"{_READ}:export", name="export")
app.command(f"{_STEER}:cancel", name="cancel")
app.command(f"{_STEER}:pause", name="pause")
app.command(f"{_STEER}:resume", name="resume")
app.command(f"{_STEER}:retry", name="retry")
app.command(f"{_STEER}:reply", name="reply")
app.command(f"{_STEER}:resolve", name="resolve")
