"""
The tree of commands, and the one place that turns a failure into a message and an exit code.

Commands are named by import path: only the one that is used is imported.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from cyclopts import App, CycloptsError

from trunkline import __version__
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError, FollowInterrupted
from trunkline.cli.inputs import HYPHEN, STDIN
from trunkline.cli.rendering.output import note

HELP = "Trunkline runs durable workflows of AI agents."

HELP_FLAGS = frozenset({"--help", "-h"})
_COMMANDS = "trunkline.cli.commands"
# The commands, each with its summary: the overview of all commands shows it without importing them.
# A test compares it with what the command says about itself.
COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("deployment.serve:up", "Run everything in one process."),
    "serve": ("deployment.serve:serve", "Run one or more roles in this process."),
    "demo": ("demo:demo", "Run a demo with four small agents."),
    "doctor": ("deployment.doctor:doctor", "Check this machine and the server."),
    "system": ("system:system", "Show the status of the system: dependencies, processes and queues."),
    "run": ("run:run", "Run a workflow."),
    "runs": ("runs:app", "Find, inspect and control runs."),
    "jobs": ("jobs:app", "List, show and cancel jobs, which do bulk operations on runs."),
    "inbox": ("inbox:app", "List and answer steps that wait for a person."),
    "apply": ("apply:apply", "Apply agents, workflows, triggers and subscriptions from files and folders."),
    "events": ("events:app", "Send events to steps that wait for them, and list events."),
    "workflows": ("workflows:app", "Save, validate and show workflows."),
    "schemas": ("schemas:app", "Save, list, show and delete JSON Schemas for outputs of steps."),
    "cache": ("deployment.cache:app", "Show and clear the cache of outputs of steps."),
    "triggers": ("triggers:app", "Save, show, pause and fire triggers, which start runs automatically."),
    "subscriptions": (
        "subscriptions:app",
        "Save, show, pause and test subscriptions, which report changes to other systems.",
    ),
    "agents": ("agents:app", "Register, check and migrate agents."),
    "secrets": ("secrets:app", "Set, list and delete secrets that workflows use by name."),
    "dead-letters": (
        "dead_letters:app",
        "Inspect, replay and delete messages that could not be read or applied.",
    ),
    "audit": ("audit:audit", "Show who changed what, newest first."),
    "zone": ("zone:app", "Serve a zone: Python functions as JSON-RPC methods at one URL."),
    "keys": ("keys:app", "Create, list and revoke API keys, directly in the store."),
    "topics": ("deployment.topics:app", "Create and check Kafka topics."),
    "db": ("deployment.db:app", "Upgrade, downgrade and check the database schema."),
    "export": ("deployment.transfer:export_", "Write everything to a file, to import it into another store."),
    "import": (
        "deployment.transfer:import_",
        "Import an exported file into an empty store, or definitions of another system.",
    ),
    "config": ("deployment.config:app", "Show the settings."),
}


def build_app(*, with_summaries: bool = False) -> App:
    """With summaries, the overview needs no command's module, and help of a command has its summary alone."""
    # Summaries are plain text: the parser of Markdown imports eighty modules.
    form = "plaintext" if with_summaries else "markdown"
    app = App(name="trunkline", help=HELP, version=__version__, help_format=form)
    for name, (path, summary) in COMMANDS.items():
        app.command(f"{_COMMANDS}.{path}", name=name, help=summary if with_summaries else None)
    return app


def load_commands(app: App) -> None:
    """Imports every command of a group: the overview of them shows what each says about itself."""
    for name in app:
        if not name.startswith("-"):
            load_commands(app[name])


def app_for(arguments: Sequence[str]) -> App:
    """The commands, of which only those are imported that the arguments name."""
    if not arguments or arguments[0] in HELP_FLAGS:
        return build_app(with_summaries=True)
    app = build_app()
    group = app
    for word in arguments:
        # Flags of help and version are in a group, too.
        if word.startswith("-") or word not in group:
            break
        group = group[word]
    if group is not app and (group.default_command is None or not HELP_FLAGS.isdisjoint(arguments)):
        load_commands(group)
    return app


def run_command_line(arguments: Sequence[str]) -> int:
    """Runs one command; returns the exit code."""
    # A terminal that cannot show an icon shows a question mark instead of a traceback.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app = app_for(arguments)
    try:
        # The parser takes a hyphen for an option that it does not know.
        words = [STDIN if argument == HYPHEN else argument for argument in arguments]
        result = app(words, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        return _report(_usage(error), arguments)
    except CliError as error:
        return _report(error, arguments)
    except FollowInterrupted as interrupted:
        note(f"The run continues. Watch it with: trunkline runs watch {interrupted}")
        return Exit.INTERRUPTED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`| head`): what is left in the buffer has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    return int(result) if isinstance(result, int) else Exit.OK


def _usage(error: CycloptsError) -> CliError:
    chain = " ".join(["trunkline", *(error.command_chain or ())])
    return CliError(str(error), fix=f"See: {chain} --help", exit_code=Exit.USAGE)


def _report(error: CliError, arguments: Sequence[str]) -> int:
    if "--json" in arguments:
        note(json.dumps(error.as_problem(), ensure_ascii=False))
    else:
        for line in error.lines():
            note(line)
    return error.exit_code
