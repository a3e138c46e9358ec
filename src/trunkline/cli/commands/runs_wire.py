"""`trunkline runs wire`: every HTTP exchange of a run, as text, as an archive, or as commands that repeat them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.options import HERE, Flag, OnlyStep, RunArgument, Server
from trunkline.cli.rendering.exchanges import print_exchanges
from trunkline.cli.rendering.output import note, print_json, print_text
from trunkline.cli.run_steps import check_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunkline.cli.answers import Exchange
    from trunkline.jsontypes import JsonObject


def wire(
    run: RunArgument,
    step: OnlyStep = None,
    /,
    *,
    curl: Flag = False,
    har: Flag = False,
    server: Server = HERE,
) -> int:
    """
    Show what went over the wire.

    Calls, streams with their events, questions after long tasks, cards, tokens and pushes. Secrets are never
    shown; bodies are cut where they are long.

    Parameters
    ----------
    curl
        Print the curl commands that repeat the requests; secrets are environment variables, named, and a body that
        is cut is read from a file.
    har
        Print an HTTP Archive (HAR 1.2), for a browser's developer tools: trunkline runs wire RUN --har > run.har
    """
    if curl + har + server.json > 1:
        raise CliError(
            "Only one of --curl, --har and --json can be printed.",
            fix="Leave all but one of them out.",
            exit_code=Exit.USAGE,
        )
    client = server.client()
    page = client.wire(run, step=step)
    exchanges = page.items
    if not exchanges and step is not None:
        check_step(client.run(run), step)
    if server.json:
        print_json(page.answer())
    elif har:
        _print_har(exchanges)
    elif curl:
        _print_curl(exchanges)
    elif exchanges:
        print_exchanges(exchanges)
    if not exchanges:
        note("Nothing has gone over the wire yet")
    return Exit.OK


def _print_har(exchanges: Sequence[Exchange]) -> None:
    from trunkline.services.har import to_har  # noqa: PLC0415  (only --har needs it)
    from trunkline.services.recorded import read_exchange  # noqa: PLC0415  (as above)

    print_json(to_har(read_exchange(exchange) for exchange in exchanges))


def _print_curl(exchanges: Sequence[Exchange]) -> None:
    from trunkline.bridge.wire.exchanges import to_curl  # noqa: PLC0415  (only --curl needs the bridge)

    for exchange in exchanges:
        # A push was the agent's request: nobody else should repeat it.
        if exchange.get("kind") != "push":
            print_text(to_curl(cast("JsonObject", exchange)))
