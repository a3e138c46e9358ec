"""`trunkline runs wire`: every HTTP exchange of a run, or the curl commands that repeat them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.options import HERE, Flag, RunArgument, Server
from trunkline.cli.output import note, print_json, print_text
from trunkline.cli.show_wire import exchange_lines

if TYPE_CHECKING:
    from trunkline.cli.answers import Run
    from trunkline.jsontypes import JsonObject


def wire(
    run: RunArgument,
    step: Annotated[str | None, Parameter(name="STEP", help="Only this step's.")] = None,
    /,
    *,
    curl: Flag = False,
    server: Server = HERE,
) -> int:
    """
    Show what went over the wire.

    Secrets are never shown; bodies are cut where they are long.

    Parameters
    ----------
    curl
        Print the curl commands that repeat the requests; secrets are environment variables, named.
    """
    client = server.client()
    page = client.wire(run, step=step)
    exchanges = page.items
    if not exchanges and step is not None:
        _check_step(client.run(run), step)
    if server.json:
        print_json(page.answer())
    elif curl:
        from trunkline.bridge.exchanges import to_curl  # noqa: PLC0415  (only --curl needs the bridge)

        for exchange in exchanges:
            print_text(to_curl(cast("JsonObject", exchange)))
    elif exchanges:
        print_text("\n\n".join("\n".join(exchange_lines(exchange)) for exchange in exchanges))
    if not exchanges:
        note("Nothing has gone over the wire yet")
    return Exit.OK


def _check_step(run: Run, step: str) -> None:
    names = [known["name"] for known in run["steps"]]
    if step not in names:
        raise CliError(
            f"Run {run['id']} has no step {step}.",
            fix=f"Choose one of: {', '.join(names)}",
            exit_code=Exit.NOT_FOUND,
        )
