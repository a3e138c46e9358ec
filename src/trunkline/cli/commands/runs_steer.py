"""The `runs` commands that change a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import given_json, given_text, given_value, read_json, run_input
from trunkline.cli.options import HERE, Flag, InputPairs, RunArgument, Server
from trunkline.cli.rendering.output import note
from trunkline.cli.rendering.run import print_run

if TYPE_CHECKING:
    from trunkline.cli.answers import Run
    from trunkline.jsontypes import JsonObject

StepArgument = Annotated[str, Parameter(name="STEP", help="The step's name.")]
Outcome = Literal["succeeded", "failed", "call_again"]


def cancel(run: RunArgument, /, *, server: Server = HERE) -> int:
    """
    Cancel a run.

    Agents that can cancel are told; the run ends when they have confirmed, within 10 seconds at most.
    """
    return _done(server.client().act(run, "cancel"), server)


def pause(run: RunArgument, /, *, server: Server = HERE) -> int:
    """
    Let calls in flight end and start no other.

    Go on with: trunkline runs resume RUN
    """
    return _done(server.client().act(run, "pause"), server)


def resume(run: RunArgument, /, *, server: Server = HERE) -> int:
    """Let a paused run go on."""
    return _done(server.client().act(run, "resume"), server)


def retry(
    run: RunArgument,
    /,
    *,
    from_step: str | None = None,
    step_input: str | None = None,
    from_start: Flag = False,
    input_: InputPairs = (),
    input_file: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Run a finished run again, keeping completed outputs.

    The new run has an id of its own.

    Parameters
    ----------
    from_step
        Begin here again, instead of at the steps that failed.
    step_input
        With --from-step: what that step is given, as JSON, in place of what the workflow makes for it; @FILE reads it.
    from_start
        Keep nothing: run every step again.
    input_
        key=value of a new input, as often as needed; without any the old input is taken.
    input_file
        A JSON file with the new input; - is stdin.
    """
    body: JsonObject = {}
    if from_step is not None:
        body["from_step"] = from_step
    if step_input is not None:
        body["step_input"] = given_json(step_input)
    if from_start:
        body["from_start"] = True
    if input_ or input_file is not None:
        body["input"] = run_input(input_, input_file)
    return _done(server.client().act(run, "retry", body), server)


def reply(
    run: RunArgument,
    step: StepArgument,
    text: Annotated[str | None, Parameter(name="TEXT")] = None,
    /,
    *,
    data: str | None = None,
    parts_file: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Answer an agent's question.

    Parameters
    ----------
    text
        The answer; - or @FILE reads it, so that it stays out of the shell's history.
    data
        The answer as JSON data; @FILE reads it.
    parts_file
        A JSON file with a list of message parts, for agents that want more than text or data.
    """
    body: JsonObject = {}
    if text is not None:
        body["text"] = given_text(text)
    if data is not None:
        body["data"] = given_json(data)
    if parts_file is not None:
        body["parts"] = read_json(parts_file)
    if not body:
        raise CliError(
            "There is no answer to send",
            fix=f"trunkline runs reply {run} {step} 'YOUR ANSWER'",
            exit_code=Exit.USAGE,
        )
    return _done(server.client().reply(run, step, body), server)


def resolve(
    run: RunArgument,
    step: StepArgument,
    outcome: Annotated[Outcome, Parameter(name="OUTCOME")],
    /,
    *,
    output: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Say what became of a call whose outcome is unknown.

    Parameters
    ----------
    outcome
        What you found out: the agent did it, did not, or is to be called again.
    output
        What the agent answered, as JSON or text, if it succeeded; @FILE reads it.
    """
    body: JsonObject = {"outcome": outcome}
    if output is not None:
        body["output"] = given_value(output)
    return _done(server.client().resolve(run, step, body), server)


def _done(run: Run, server: Server) -> int:
    print_run(run, json=server.json)
    note(f"Watch it with: trunkline runs watch {run['id']}")
    return Exit.OK
