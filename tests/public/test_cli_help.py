"""
The command line's help, as checked in: a change of what users type shows up in review.

Write the files again with: TRUNKLINE_WRITE_PUBLIC=1 pytest tests/public/test_cli_help.py
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App
from rich.console import Console

from trunkline.cli.app import build_app, load_commands
from trunkline.settings import Settings

HERE = Path(__file__).parent
GROUPS = (
    "trunkline",
    "runs",
    "inbox",
    "workflows",
    "triggers",
    "agents",
    "secrets",
    "dead-letters",
    "keys",
    "zone",
    "topics",
    "db",
    "config",
)


def commands(app: App, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Those that help shows."""
    yield path
    for name in sorted(app):
        if not name.startswith("-") and app[name].show:
            yield from commands(app[name], (*path, name))


def help_of(app: App, path: tuple[str, ...]) -> str:
    text = io.StringIO()
    app.help_print(path, console=Console(file=text, width=100, no_color=True, force_terminal=False))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def group_help(group: str) -> str:
    app = build_app()
    load_commands(app)
    found = [
        path
        for path in commands(app, ())
        if (path[0] if path and path[0] in GROUPS else "trunkline") == group
    ]
    return (
        "\n\n".join(f"$ {' '.join(['trunkline', *path, '--help'])}\n{help_of(app, path)}" for path in found)
        + "\n"
    )


@pytest.mark.parametrize("group", GROUPS)
def test_the_help_is_the_one_that_is_checked_in(group: str) -> None:
    file = HERE / f"cli-{group}.txt"
    now = group_help(group)
    if os.environ.get("TRUNKLINE_WRITE_PUBLIC"):
        file.write_text(now)
    assert now == file.read_text()


def test_every_command_explains_every_option() -> None:
    app = build_app()
    load_commands(app)
    for path in commands(app, ()):
        command = app
        for name in path:
            command = command[name]
        if command.default_command is None:
            assert command.help, path
            continue
        for argument in command.assemble_argument_collection(parse_docstring=True):
            assert argument.parameter.help or argument.children, (path, argument.name)


@pytest.mark.parametrize("command", ["up", "serve"])
def test_every_setting_but_the_secrets_is_a_flag(command: str) -> None:
    names = {argument.name for argument in build_app()[command].assemble_argument_collection()}
    settings = {f"--{name.replace('_', '-')}" for name in Settings.model_fields}
    assert settings - names == {"--secret-key", "--kafka-sasl-password"}
