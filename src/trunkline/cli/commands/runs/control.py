"""Control a run: cancel, pause, resume and retry it, and send it what it waits for."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from trunkline.cli.answers import NO_ANSWER, AnswerOptions, OutcomeChoice, OutcomeOutput, resolution
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import given_json, given_text, read_json, run_input
from trunkline.cli.options import (
    HERE,
    FileText,
    Flag,
    Hidden,
    InputPairs,
    JsonText,
    RunArgument,
    Server,
)
from trunkline.cli.rendering.output import (
    note,
    print_json,
    print_text,
)
from trunkline.cli.rendering.run import (
    print_run,
)

if TYPE_CHECKING:
    from trunkline.api.resources.runs import RunResource
    from trunkline.jsontypes import JsonObject

StepArgument = Annotated[str, Parameter(name="STEP", help="Name of the step.")]


def cancel(run: RunArgument, /, *, server: Server = HERE) -> int:
    """
    Cancel a run.

    Agents that support it receive a cancel request. The run ends when they have confirmed, after 10 seconds at most.
    """
    return _print_changed(server.client().act(run, "cancel"), server)


def pause(run: RunArgument, /, *, server: Server = HERE) -> int:
    """
    Pause a run.

    Calls in progress finish, and no new ones start. To continue the run, use runs resume.
    """
    return _print_changed(server.client().act(run, "pause"), server)


def resume(run: RunArgument, /, *, server: Server = HERE) -> int:
    """Resume a paused run."""
    return _print_changed(server.client().act(run, "resume"), server)


def retry(
    run: RunArgument,
    /,
    *,
    from_step: str | None = None,
    step_input: JsonText = None,
    from_start: Flag = False,
    input_: InputPairs = (),
    input_file: FileText = None,
    server: Server = HERE,
) -> int:
    """
    Retry a finished run.

    Starts a new run, with a new ID, that keeps the outputs of completed steps.

    Parameters
    ----------
    from_step
        Start again at this step instead of the steps that failed.
    step_input
        With --from-step: input for that step as JSON, instead of the one from the workflow. @FILE reads it from a file.
    from_start
        Run every step again.
    input_
        Field of a new input as key=value. Can be repeated. Default: the input of the finished run.
    input_file
        JSON file with the new input. - reads stdin.
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
    return _print_changed(server.client().act(run, "retry", body), server)


def compensate(run: RunArgument, /, *, server: Server = HERE) -> int:
    """
    Undo the work of a run that failed or was cancelled.

    Runs the compensations of its completed steps, the last completed step first. Only for a run whose work was not
    undone when it ended.
    """
    return _print_changed(server.client().act(run, "compensate"), server)


def signal(
    run: RunArgument,
    name: Annotated[str, Parameter(name="NAME", help="Name of the signal.")],
    /,
    *,
    data: JsonText = None,
    server: Server = HERE,
) -> int:
    """
    Send a signal to a run. It completes a step that waits for it.

    Prints the ID of the signal.

    Parameters
    ----------
    data
        Data of the signal, as JSON. @FILE reads it from a file.
    """
    received = server.client().signal(run, name, None if data is None else given_json(data))
    if server.json:
        print_json(received)
    else:
        print_text(received["id"])
    return Exit.OK


def reply(
    run: RunArgument,
    step: StepArgument,
    text_argument: Annotated[str | None, Parameter(name="TEXT"), Hidden] = None,
    /,
    *,
    answer: AnswerOptions = NO_ANSWER,
    parts_file: Annotated[str | None, Hidden] = None,
    server: Server = HERE,
) -> int:
    """Answer a question of an agent, or a human task."""
    client = server.client()
    body = answer.body(lambda: client.waiting_step(run, step))
    if text_argument is not None:
        body.setdefault("text", given_text(text_argument))
    if parts_file is not None:
        body.setdefault("parts", read_json(parts_file))
    if not body:
        raise CliError(
            "The answer is missing",
            fix=f"trunkline runs reply {run} {shlex.quote(step)} --text 'YOUR ANSWER'",
            exit_code=Exit.USAGE,
        )
    return _print_changed(client.reply(run, step, body), server)


def resolve(
    run: RunArgument,
    step: StepArgument,
    outcome_argument: Annotated[OutcomeChoice, Parameter(name="OUTCOME"), Hidden] = None,
    /,
    *,
    outcome: OutcomeChoice = None,
    output: OutcomeOutput = None,
    server: Server = HERE,
) -> int:
    """Record the outcome of a call whose outcome is unknown, or decide about a compensation that has failed."""
    outcome = outcome or outcome_argument
    if outcome is None:
        raise CliError(
            "The outcome is missing",
            fix=f"trunkline runs resolve {run} {shlex.quote(step)} --outcome succeeded|failed|call_again, or after a "
            "failed compensation retry|skip|give_up",
            exit_code=Exit.USAGE,
        )
    return _print_changed(server.client().resolve(run, step, resolution(outcome, output)), server)


def _print_changed(run: RunResource, server: Server) -> int:
    print_run(run, json=server.json)
    note(f"Watch it with: trunkline runs watch {run['id']}")
    return Exit.OK
