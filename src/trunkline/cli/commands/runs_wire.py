"""`trunkline runs wire`: every HTTP exchange of a run, or the curl commands that repeat them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.options import HERE, Flag, RunArgument, Server
from trunkline.cli.output import note, print_json, print_text
from trunkline.cli.show_wire import exchange_lines

if TYPE_CHECKING:
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
    page = server.client().wire(run)
    exchanges = [exchange for exchange in page.items if step in (None, exchange["step"])]
    if server.json:
        print_json({"items": exchanges, "next_cursor": page.next_cursor})
    elif curl:
        from trunkline.bridge.exchanges import to_curl  # noqa: PLC0415  (only --curl needs the bridge)

        for exchange in exchanges:
            print_text(to_curl(cast("JsonObject", exchange)))
    else:
        print_text("\n\n".join("\n".join(exchange_lines(exchange)) for exchange in exchanges))
    if not exchanges:
        note("Nothing has gone over the wire yet")
    return Exit.OK
