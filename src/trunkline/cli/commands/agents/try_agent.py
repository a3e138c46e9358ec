"""`trunkline agents try`: one message to an agent, and its response."""

from __future__ import annotations

import shlex
from datetime import timedelta
from typing import TYPE_CHECKING

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import given_json, given_text
from trunkline.cli.options import HERE, AgentArgument, Duration, Flag, JsonText, Server, check_at_most
from trunkline.cli.rendering.exchanges import print_exchanges
from trunkline.cli.rendering.output import harmless, note, print_json, print_text, print_value

if TYPE_CHECKING:
    from trunkline.api.resources.agents.test_calls import TestCallResult
    from trunkline.jsontypes import JsonObject

MAX_TIMEOUT = timedelta(minutes=1)
_EXITS = {"success": Exit.OK, "interrupted": Exit.INPUT_REQUIRED}


def try_(
    agent: AgentArgument,
    /,
    *,
    text: str | None = None,
    data: JsonText = None,
    timeout: Duration = None,
    wire: Flag = False,
    server: Server = HERE,
) -> int:
    """
    Send one message to an agent and show the response.

    The agent does the work, as it would for a step. This is not a run: nothing is stored or retried, and it does not
    count for the limits and the circuit breaker. Exits with 10 if the agent fails or cannot be called, and with 13 if
    it asks a question, which is then cancelled.

    Parameters
    ----------
    text
        Message as text. - or @FILE reads it, which keeps it out of the shell history.
    data
        Message as JSON, in the form of a step's input. @FILE reads it from a file.
    timeout
        Timeout of the call, such as 10s, up to 1m. Default: the timeout of the agent.
    wire
        Also show the requests and responses, as runs wire does.
    """
    if (text is None) == (data is None):
        raise CliError(
            "The message is missing" if text is None else "--text and --data cannot be combined",
            fix=f"trunkline agents try {shlex.quote(agent)} --text 'YOUR MESSAGE'",
            exit_code=Exit.USAGE,
        )
    message: JsonObject = (
        {"input": given_json(data)} if data is not None else {"text": given_text(text or "")}
    )
    check_at_most("--timeout", timeout, MAX_TIMEOUT)
    if timeout is not None:
        message["timeout_ms"] = round(timeout.total_seconds() * 1000)
    result = server.client().try_agent(agent, message)
    if server.json:
        print_json(result)
    else:
        _show(agent, result, wire=wire)
    return _EXITS.get(result["outcome"], Exit.RUN_FAILED)


def _show(agent: str, result: TestCallResult, *, wire: bool) -> None:
    if wire and result["exchanges"]:
        print_exchanges(result["exchanges"])
        print_text("")
    if result["output"] is not None:
        print_value(result["output"])
    for words in _words(agent, result, wire=wire):
        for line in words.splitlines():
            note(harmless(line))


def _words(agent: str, result: TestCallResult, *, wire: bool) -> list[str]:
    lines = [f"warning: {warning}" for warning in result["warnings"]]
    error, question = result["error"], result["question"]
    if error is not None:
        lines += [f"{agent} failed with {error['code']}: {error['message']}", f"fix: {error['fix']}"]
        if result["exchanges"] and not wire:
            lines.append(f"wire: trunkline agents try {shlex.quote(agent)} … --wire")
    if question is not None:
        lines.append(f"{agent} asks: {question['text']}")
    protocol = "" if result["protocol"] is None else f" over {result['protocol']}"
    return [*lines, f"Took {result['duration_ms']:,.0f} ms{protocol}"]
