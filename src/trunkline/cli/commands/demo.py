"""`trunkline demo`: Trunkline, four agents and a workflow that calls them."""

from __future__ import annotations

import signal
import sys
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import FollowInterrupted
from trunkline.cli.follow import exit_for
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import Flag, JsonFlag
from trunkline.cli.rendering.output import note, print_json

if TYPE_CHECKING:
    from trunkline.cli.demo import processes, walkthrough
else:
    processes = lazy_module("trunkline.cli.demo.processes")
    walkthrough = lazy_module("trunkline.cli.demo.walkthrough")


def demo(
    *, keep: Flag = False, url: Annotated[str | None, Parameter(name="--url")] = None, json: JsonFlag = False
) -> int:
    """
    Run a demo with four small agents.

    Starts Trunkline and the agents on free ports with a temporary data folder, runs a workflow that calls them and one
    that asks a person, and removes everything. The demo answers for you.

    Parameters
    ----------
    keep
        Keep the demo running until Ctrl-C.
    url
        URL of a running Trunkline to use. It must be allowed to call agents on this machine. The workflows and the
        runs stay there.
    """
    # With --json, stdout has only the run.
    output = redirect_stdout(sys.stderr) if json else nullcontext()
    try:
        with output, processes.sigterm_as_exit(), walkthrough.demo_system(url) as client:
            run = walkthrough.run_demo(client)
            if run["status"] == "COMPLETED":
                walkthrough.run_approval(client, run)
            walkthrough.print_next_steps(run, client.url if keep else None)
            if keep:
                note(walkthrough.where_to_look(run, client.url))
                note(f"Trunkline runs at {client.url} until Ctrl-C")
                _wait_for_ctrl_c()
    except FollowInterrupted:
        note("Stopped the demo")
        return Exit.INTERRUPTED
    if json:
        print_json(run)
    return exit_for(run)


def _wait_for_ctrl_c() -> None:
    try:
        signal.pause()
    except KeyboardInterrupt:
        note("Stopping")
