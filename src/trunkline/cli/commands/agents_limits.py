"""`trunkline agents reset`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.options import HERE, Server
from trunkline.cli.output import note, print_json


def reset(
    agent: Annotated[str, Parameter(name="AGENT", help="The agent's name or id.")],
    /,
    *,
    server: Server = HERE,
) -> int:
    """
    Close an agent's breaker and fill its bucket.

    Tasks that wait for it go at once. If it still fails, its breaker opens again.
    """
    answer = server.client().reset_agent(agent)
    if server.json:
        print_json(answer)
    else:
        note(f"{answer['name']} is reset")
    return Exit.OK
