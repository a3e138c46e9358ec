"""`trunkline demo`: Trunkline, four agents and a workflow across them, from nothing to a result."""

from __future__ import annotations

import signal
import sys
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.follow import FollowInterrupted, exit_for
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
    Show it at work with four small agents.

    Starts Trunkline and the agents on free ports with a temporary data folder, runs a workflow across them,
    and removes everything again.

    Parameters
    ----------
    keep
        Leave it running until Ctrl-C, to look around.
    url
        Use the Trunkline at this address, which must be allowed to call agents on this machine; the demo's workflow
        and its run stay there.
    """
    # With --json the story is not the data: the run is.
    story = redirect_stdout(sys.stderr) if json else nullcontext()
    try:
        with story, processes.sigterm_as_exit(), walkthrough.demo_system(url) as client:
            run = walkthrough.run_demo(client)
            walkthrough.say_how_to_go_on(run, client.url if keep else None)
            if keep:
                note(walkthrough.where_to_look(run, client.url))
                note(f"Trunkline stays at {client.url} until Ctrl-C")
                _wait_for_ctrl_c()
    except FollowInterrupted:
        note("The demo is stopped")
        return Exit.INTERRUPTED
    if json:
        print_json(run)
    return exit_for(run)


def _wait_for_ctrl_c() -> None:
    try:
        signal.pause()
    except KeyboardInterrupt:
        note("Stopping")
