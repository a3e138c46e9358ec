"""`trunkline agents try`: one message to an agent, and what came back."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import given_json, given_text
from trunkline.cli.options import HERE, AgentArgument, Flag, Server
from trunkline.cli.rendering.exchanges import print_exchanges
from trunkline.cli.rendering.output import harmless, note, print_json, print_text, print_value

if TYPE_CHECKING:
    from trunkline.api.resources.agent_test_calls import AgentTrial
    from trunkline.jsontypes import JsonObject

_EXITS = {"success": Exit.OK, "interrupted": Exit.INPUT_REQUIRED}


def try_(
    agent: AgentArgument,
    /,
    *,
    text: str | None = None,
    data: str | None = None,
    timeout: Annotated[float | None, Parameter(validator=validators.Number(gt=0, lte=60))] = None,
    wire: Flag = False,
    server: Server = HERE,
) -> int:
    """
    Send an agent one message, as a step would, and show what it answers.

    It is no run: nothing is kept or tried again, and neither its limits nor its breaker count it. The agent does what
    it is asked to. Exits with 10 when it fails or cannot be called, with 13 when it asks something; it is told then
    that nobody answers.

    Parameters
    ----------
    text
        What to say; - or @FILE reads it, so that it stays out of the shell's history.
    data
        What to give it as JSON, in the form of a step's input; @FILE reads it.
    timeout
        How many seconds it may take, 60 at most. Default: what it is registered with.
    wire
        Show what went over the wire first, as runs wire does.
    """
    if (text is None) == (data is None):
        raise CliError(
            "There is no message to send" if text is None else "Only one of --text and --data can be sent",
            fix=f"trunkline agents try {shlex.quote(agent)} --text 'YOUR MESSAGE'",
            exit_code=Exit.USAGE,
        )
    message: JsonObject = (
        {"input": given_json(data)} if data is not None else {"text": given_text(text or "")}
    )
    if timeout is not None:
        message["timeout_ms"] = max(1, round(timeout * 1000))
    trial = server.client().try_agent(agent, message)
    if server.json:
        print_json(trial)
    else:
        _show(agent, trial, wire=wire)
    return _EXITS.get(trial["outcome"], Exit.RUN_FAILED)


def _show(agent: str, trial: AgentTrial, *, wire: bool) -> None:
    if wire and trial["exchanges"]:
        print_exchanges(trial["exchanges"])
        print_text("")
    if trial["output"] is not None:
        print_value(trial["output"])
    for words in _words(agent, trial, wire=wire):
        for line in words.splitlines():
            note(harmless(line))


def _words(agent: str, trial: AgentTrial, *, wire: bool) -> list[str]:
    lines = [f"warning: {warning}" for warning in trial["warnings"]]
    error, question = trial["error"], trial["question"]
    if error is not None:
        lines += [f"{agent} failed with {error['code']}: {error['message']}", f"fix: {error['fix']}"]
        if trial["exchanges"] and not wire:
            lines.append(f"wire: trunkline agents try {shlex.quote(agent)} … --wire")
    if question is not None:
        lines.append(f"{agent} asks: {question['text']}")
    spoken = "" if trial["protocol"] is None else f" over {trial['protocol']}"
    return [*lines, f"It took {trial['duration_ms']:,.0f} ms{spoken}"]
