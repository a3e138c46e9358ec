"""
The tree of commands, and the one place that turns a failure into words and an exit code.

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
from trunkline.cli.failures import CliError
from trunkline.cli.follow import FollowInterrupted, say_that_it_goes_on
from trunkline.cli.inputs import HYPHEN, STDIN
from trunkline.cli.rendering.output import note

HELP = "Trunkline runs workflows whose steps are AI agents reached over HTTP, durably."

HELP_FLAGS = frozenset({"--help", "-h"})
_COMMANDS = "trunkline.cli.commands"


def build_app() -> App:
    app = App(name="trunkline", help=HELP, version=__version__)
    app.command(f"{_COMMANDS}.deployment.serve:up", name="up")
    app.command(f"{_COMMANDS}.deployment.serve:serve", name="serve")
    app.command(f"{_COMMANDS}.demo:demo", name="demo")
    app.command(f"{_COMMANDS}.deployment.doctor:doctor", name="doctor")
    app.command(f"{_COMMANDS}.system:system", name="system")
    app.command(f"{_COMMANDS}.run:run", name="run")
    app.command(f"{_COMMANDS}.runs:app", name="runs")
    app.command(f"{_COMMANDS}.inbox:app", name="inbox")
    app.command(f"{_COMMANDS}.workflows:app", name="workflows")
    app.command(f"{_COMMANDS}.agents:app", name="agents")
    app.command(f"{_COMMANDS}.secrets:app", name="secrets")
    app.command(f"{_COMMANDS}.dead_letters:app", name="dead-letters")
    app.command(f"{_COMMANDS}.audit:audit", name="audit")
    app.command(f"{_COMMANDS}.zone:app", name="zone")
    app.command(f"{_COMMANDS}.keys:app", name="keys")
    app.command(f"{_COMMANDS}.deployment.topics:app", name="topics")
    app.command(f"{_COMMANDS}.deployment.db:app", name="db")
    app.command(f"{_COMMANDS}.deployment.transfer:export_", name="export")
    app.command(f"{_COMMANDS}.deployment.transfer:import_", name="import")
    app.command(f"{_COMMANDS}.deployment.config:app", name="config")
    return app


def load_commands(app: App) -> None:
    """Imports every command: an overview of them shows what each says about itself."""
    for name in app:
        if not name.startswith("-"):
            load_commands(app[name])


def run_command_line(arguments: Sequence[str]) -> int:
    """Runs one command; returns the exit code."""
    # A terminal that cannot show an icon shows a question mark instead of a traceback.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app = build_app()
    if not HELP_FLAGS.isdisjoint(arguments) or len(arguments) < 2:
        load_commands(app)
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
        return say_that_it_goes_on(str(interrupted))
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
