"""`trunkline agents reset`."""

from __future__ import annotations

from trunkline.cli.exit_codes import Exit
from trunkline.cli.options import HERE, AgentArgument, Server
from trunkline.cli.rendering.output import note, print_json


def reset(agent: AgentArgument, /, *, server: Server = HERE) -> int:
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
