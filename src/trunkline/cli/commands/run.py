"""`trunkline run`: start a workflow, and see it through if asked to."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from trunkline.cli.definition_files import is_file, save_file
from trunkline.cli.exit_codes import Exit
from trunkline.cli.follow import Show, exit_for, follow_run, progress_for_people
from trunkline.cli.inputs import run_input
from trunkline.cli.options import HERE, Duration, FileText, Flag, InputPairs, Labels, Server
from trunkline.cli.rendering.output import note, print_json, print_text, print_value
from trunkline.cli.rendering.run import error_lines, question_lines
from trunkline.cli.rest.client import Client


def run(
    workflow: Annotated[str, Parameter(name="WORKFLOW")],
    /,
    *,
    input_: InputPairs = (),
    input_file: FileText = None,
    version: int | None = None,
    follow: Annotated[Flag, Parameter(name=("--follow", "-f"))] = False,
    wait: Duration = None,
    labels: Labels = (),
    priority: int | None = None,
    idempotency_key: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Run a workflow.

    Prints the ID of the run. With --follow, prints its progress and then its output. With --wait, prints only its
    output. With either, the exit code is 0 if the run completed, 10 if it failed, 11 if it was cancelled, 12 if it
    timed out, and 13 if it waits for a person.

    Parameters
    ----------
    workflow
        Name of a saved workflow, or a file, which is saved first.
    input_
        Field of the input as key=value. Can be repeated. Values that are JSON are read as JSON. key=@FILE reads a file.
    input_file
        JSON file with the whole input. - reads stdin. --input adds to it.
    version
        Version to run. Default: the latest.
    follow
        Show the progress until the run ends or waits for a person. Ctrl-C leaves it running.
    wait
        How long to wait for the run to end, such as 30s.
    labels
        Label of the run, such as customer:acme. Can be repeated.
    priority
        Which of the runs that flow control holds back start first: those with the highest number. Default: as the
        workflow says.
    idempotency_key
        Requests with the same key and input start only one run.
    """
    client = server.client()
    given = run_input(input_, input_file)
    name, saved_version = _resolve(client, workflow)
    started = client.execute(
        name,
        given,
        version=version or saved_version,
        idempotency_key=idempotency_key,
        labels=labels,
        priority=priority,
    )
    if not follow and wait is None:
        if server.json:
            print_json(started)
        else:
            print_text(started["id"])
            note(f"Watch it with: trunkline runs watch {started['id']}")
        return Exit.OK
    show: Show = "nothing"
    if follow:
        show = "notes" if server.json else progress_for_people()
    ended = follow_run(client, started["id"], show=show, wait=wait)
    if server.json:
        print_json(ended)
    else:
        if ended["output"] is not None:
            print_value(ended["output"])
        for line in error_lines(ended) + question_lines(ended):
            note(line)
    return exit_for(ended)


def _resolve(client: Client, workflow: str) -> tuple[str, int | None]:
    """The workflow's name, and its version when it came from a file and was saved."""
    if not is_file(workflow):
        return workflow, None
    saved, _ = save_file(client, workflow)
    return saved["name"], saved["version"]
