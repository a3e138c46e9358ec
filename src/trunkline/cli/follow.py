"""
Following a run to its end, or to the point where it waits for a person.

On a terminal a live picture, elsewhere one line per event. Ctrl-C ends the following, never the run.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Literal

from trunkline.cli.exit_codes import Exit, exit_for_run
from trunkline.cli.failures import FollowInterrupted
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.rendering.followed_run import FollowedRun
from trunkline.cli.rendering.output import note, on_terminal, print_now
from trunkline.cli.rest.client import Client, WaitOver

if TYPE_CHECKING:
    from datetime import timedelta

    from trunkline.api.resources.runs import EventResource, RunResource
    from trunkline.cli.rendering import live_view
else:
    live_view = lazy_module("trunkline.cli.rendering.live_view")

# `lines` go to stdout, and `json` events too; `notes` are the lines on stderr, for commands with other data.
Show = Literal["picture", "lines", "notes", "json", "nothing"]


def progress_for_people() -> Show:
    return "picture" if on_terminal() else "lines"


def follow_run(client: Client, run_id: str, *, show: Show, wait: timedelta | None = None) -> RunResource:
    """Returns the run as it is when it is final, waits for a person, or the time is up."""
    progress = FollowedRun.of(client.run(run_id))
    seconds = None if wait is None else wait.total_seconds()
    try:
        with _view(progress, show):
            for event in client.follow(run_id, seconds=seconds):
                _print_line(progress.apply(event), event, show)
                if progress.waits_for_a_person and _still_waits(client, run_id):
                    break
    except WaitOver:
        pass
    except KeyboardInterrupt as error:
        raise FollowInterrupted(run_id) from error
    return client.run(run_id)


def _print_line(line: str, event: EventResource, show: Show) -> None:
    match show:
        case "lines":
            print_now(line)
        case "notes":
            note(line)
        case "json":
            print_now(json.dumps(event, ensure_ascii=False))
        case "picture" | "nothing":
            pass


def exit_for(run: RunResource) -> Exit:
    error = run["error"]
    return exit_for_run(run["status"], error["code"] if error else None)


def _view(progress: FollowedRun, show: Show) -> AbstractContextManager[None]:
    if show != "picture":
        return nullcontext()
    return live_view.live_view(progress)


def _still_waits(client: Client, run_id: str) -> bool:
    # The event may be an old one: a run that is followed from its beginning has perhaps been answered since.
    return client.run(run_id)["status"] == "WAITING"
