"""`trunkline cache`: outputs that steps with `cache` reuse."""

from __future__ import annotations

from cyclopts import App

from trunkline.cli.exit_codes import Exit
from trunkline.cli.options import HERE, Server
from trunkline.cli.rendering.output import note, print_json

app = App(name="cache", help="Show and clear the cache of outputs of steps.", version_flags=[])


@app.command(name="show")
def show(*, server: Server = HERE) -> int:
    """Show the size of the cache."""
    size = server.client().cache()
    if server.json:
        print_json(size)
    else:
        note(f"{_outputs(size['outputs'])}, {size['size_bytes']:,} bytes")
    return Exit.OK


@app.command(name="clear")
def clear(*, workflow: str | None = None, agent: str | None = None, server: Server = HERE) -> int:
    """
    Clear the cache, so that steps call their agents again.

    Parameters
    ----------
    workflow
        Delete only outputs of steps of this workflow.
    agent
        Delete only outputs of steps that name this agent.
    """
    cleared = server.client().clear_cache(workflow=workflow, agent=agent)
    if server.json:
        print_json(cleared)
    else:
        note(f"Deleted {_outputs(cleared['cleared'])}")
    return Exit.OK


def _outputs(number: int) -> str:
    return f"{number:,} output{'' if number == 1 else 's'}"
