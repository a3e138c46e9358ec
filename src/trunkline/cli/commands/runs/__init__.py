"""
`trunkline runs`: find, inspect and control runs.

Each part is imported only when it is used.
"""

from __future__ import annotations

from cyclopts import App

_FIND = "trunkline.cli.commands.runs.find"
_RECORDS = "trunkline.cli.commands.runs.records"
_CONTROL = "trunkline.cli.commands.runs.control"
_BULK = "trunkline.cli.commands.runs.bulk"
_PUSH_CONFIGS = "trunkline.cli.commands.runs.push_configs"

app = App(name="runs", help="Find, inspect and control runs.", version_flags=[])
app.command(f"{_FIND}:list_runs", name="list")
app.command(f"{_FIND}:show", name="show")
app.command(f"{_FIND}:label", name="label")
app.command(f"{_FIND}:items", name="items")
app.command(f"{_FIND}:watch", name="watch")
app.command(f"{_RECORDS}:events", name="events")
app.command(f"{_RECORDS}:logs", name="logs")
app.command(f"{_RECORDS}:wire", name="wire")
app.command(f"{_RECORDS}:file", name="file")
app.command(f"{_RECORDS}:export", name="export")
app.command(f"{_CONTROL}:cancel", name="cancel")
app.command(f"{_CONTROL}:pause", name="pause")
app.command(f"{_CONTROL}:resume", name="resume")
app.command(f"{_CONTROL}:retry", name="retry")
app.command(f"{_CONTROL}:compensate", name="compensate")
app.command(f"{_BULK}:bulk", name="bulk")
app.command(f"{_CONTROL}:signal", name="signal")
app.command(f"{_CONTROL}:reply", name="reply")
app.command(f"{_CONTROL}:resolve", name="resolve")
app.command(f"{_PUSH_CONFIGS}:push_configs", name="push-configs")
