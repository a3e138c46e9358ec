"""`trunkline runs`: what runs do and have done, and the commands that change a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.follow import Show, exit_for, follow_run, progress_for_people
from trunkline.cli.inputs import given_json, given_text, given_value, read_json, run_input
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import HERE, Count, Flag, InputPairs, OnlyStep, RunArgument, Server
from trunkline.cli.rendering.followed_run import FollowedRun
from trunkline.cli.rendering.output import (
    aligned,
    harmless,
    note,
    note_next_page,
    print_json,
    print_table,
    print_text,
    print_value,
    status_cell,
)
from trunkline.cli.rendering.run import error_lines, print_run, print_steps, question_lines, show_run
from trunkline.cli.rendering.times import date_time, duration_between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunkline.api.resources.exchanges import ExchangeResource
    from trunkline.api.resources.run_logs import LogLineResource
    from trunkline.api.resources.runs import RunResource
    from trunkline.bridge.wire import exchanges as wire_exchanges
    from trunkline.cli.rendering import exchanges as rendered_exchanges
    from trunkline.jsontypes import JsonObject
    from trunkline.services.runs import har as har_archive
    from trunkline.services.runs import stored_exchanges
else:
    har_archive = lazy_module("trunkline.services.runs.har")
    rendered_exchanges = lazy_module("trunkline.cli.rendering.exchanges")
    stored_exchanges = lazy_module("trunkline.services.runs.stored_exchanges")
    wire_exchanges = lazy_module("trunkline.bridge.wire.exchanges")

Status = Literal["PENDING", "RUNNING", "WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"]
_LOG_COLUMNS = ("AT", "LEVEL", "FROM", "STEP", "ATTEMPT", "TEXT")
StepArgument = Annotated[str, Parameter(name="STEP", help="The step's name.")]
Outcome = Literal["succeeded", "failed", "call_again"]

app = App(name="runs", help="See and steer runs.", version_flags=[])


@app.command(name="list")
def list_runs(
    *,
    status: Annotated[list[Status] | None, Parameter(negative="")] = None,
    workflow: str | None = None,
    agent: str | None = None,
    search: str | None = None,
    since: str | None = None,
    until: str | None = None,
    parent: str | None = None,
    children: bool = True,
    limit: int = 50,
    cursor: str | None = None,
    server: Server = HERE,
) -> int:
    """
    List runs, newest first.

    Parameters
    ----------
    status
        Only runs in this state; may be given several times: in any of them.
    workflow
        Only runs of this workflow, by name or id.
    agent
        Only runs of workflows that call this agent.
    search
        Only runs whose id or workflow's name begins with this text, or whose correlation id it is.
    since
        Only runs created at this time or later, e.g. 2026-03-01T12:00:00Z.
    until
        Only runs created before this time.
    parent
        Only runs that steps of this run have begun.
    children
        Runs that steps of other runs have begun, too.
    limit
        At most this many.
    cursor
        Go on where an earlier list ended: its next_cursor.
    """
    asked: dict[str, str | list[Status] | None] = {
        "status": status,
        "workflow": workflow,
        "agent": agent,
        "search": search,
        "since": since,
        "until": until,
        "parent": parent,
    }
    query = {"q" if name == "search" else name: value for name, value in asked.items()}
    if not children:
        query["children"] = "false"
    page = server.client().runs(query, limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [
            run["id"],
            f"{run['workflow']['name']} v{run['workflow']['version']}",
            status_cell(run["status"]),
            date_time(run["created_at"]),
            duration_between(run["started_at"], run["finished_at"]),
            harmless(run.get("started_by") or ""),
        ]
        for run in page.items
    ]
    print_table(("RUN", "WORKFLOW", "STATUS", "CREATED", "TIME", "STARTED BY"), rows)
    if not page.items:
        note("There are no such runs. Start one with: trunkline run FILE|NAME")
    note_next_page(("runs", "list"), {**asked, "no-children": not children}, page.next_cursor)
    return Exit.OK


@app.command(name="show")
def show(run: RunArgument, /, *, server: Server = HERE) -> int:
    """Show a run with its steps, errors and questions."""
    found = server.client().run(run)
    if server.json:
        print_json(found)
    else:
        show_run(found)
    return Exit.OK


@app.command(name="items")
def items(
    run: RunArgument,
    step: Annotated[str, Parameter(name="STEP", help="A step with for_each.")],
    /,
    *,
    limit: int = 50,
    cursor: str | None = None,
    server: Server = HERE,
) -> int:
    """
    List the items of a step that have begun, in their order.

    Parameters
    ----------
    limit
        At most this many.
    cursor
        Go on where an earlier list ended: its next_cursor.
    """
    page = server.client().items(run, step, limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    print_steps(page.items)
    note_next_page(("runs", "items", run, step), {}, page.next_cursor)
    return Exit.OK


@app.command(name="watch")
def watch(run: RunArgument, /, *, wait: float | None = None, server: Server = HERE) -> int:
    """
    Watch a run until it ends or waits for a person.

    Its exit code is the run's: 0 completed, 10 failed, 11 cancelled, 12 timed out, 13 it waits for a person.

    Parameters
    ----------
    wait
        Watch for this many seconds at most.
    """
    show_as: Show = "json" if server.json else progress_for_people()
    ended = follow_run(server.client(), run, show=show_as, seconds=wait)
    if not server.json and ended["output"] is not None:
        print_value(ended["output"])
    for line in error_lines(ended) + question_lines(ended):
        note(line)
    return exit_for(ended)


@app.command(name="events")
def events(run: RunArgument, /, *, server: Server = HERE) -> int:
    """List what has happened in a run."""
    client = server.client()
    happened = client.events(run)
    if server.json:
        print_json(happened.answer())
        return Exit.OK
    progress = FollowedRun.of(client.run(run))
    for event in happened.items:
        print_text(f"{event['seq']:>4} {progress.apply(event)}")
    return Exit.OK


@app.command(name="logs")
def logs(
    run: RunArgument,
    step: OnlyStep = None,
    /,
    *,
    attempt: Count | None = None,
    limit: Count | None = None,
    cursor: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Show what is known of a run, line by line, oldest first.

    Its history, what its agents have said meanwhile, and every exchange with them in short; all of an exchange is in
    runs wire. What a process writes to its own log beside that is where its log goes.

    Parameters
    ----------
    attempt
        Only lines of this attempt, or of none.
    limit
        At most this many. Default: all.
    cursor
        Go on where an earlier list ended: its next_cursor.
    """
    client = server.client()
    page = client.logs(run, {"step": step, "attempt": attempt}, limit=limit, cursor=cursor)
    if not page.items and step is not None:
        _check_step(client.run(run), step)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    if page.items:
        # As in a pipe on a terminal, too, where a table would fold the texts into a narrow column.
        print_text(aligned(_LOG_COLUMNS, [_log_row(line) for line in page.items]))
    else:
        note("There are no such lines.")
    place = (run,) if step is None else (run, step)
    note_next_page(("runs", "logs", *place), {"attempt": attempt}, page.next_cursor)
    return Exit.OK


@app.command(name="wire")
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
        _check_step(client.run(run), step)
    if server.json:
        print_json(page.answer())
    elif har:
        _print_har(exchanges)
    elif curl:
        _print_curl(exchanges)
    elif exchanges:
        rendered_exchanges.print_exchanges(exchanges)
    if not exchanges:
        note("Nothing has gone over the wire yet")
    return Exit.OK


@app.command(name="file")
def file(
    run: RunArgument,
    blob: Annotated[str, Parameter(name="FILE", help="The file's id: `blob.id` in the step's output.")],
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    server: Server = HERE,
) -> int:
    """
    Get a file that an agent has answered with.

    Short ones are in the step's output itself; of long ones it has a reference, whose id this takes.

    Parameters
    ----------
    output
        Where to write it. Default: stdout.
    """
    content = server.client().file(run, blob)
    if output is None and not server.json:
        if sys.stdout.isatty():
            raise CliError(
                "The file is not text that a terminal should show",
                fix="Give it a name with --output, or send it on with |",
                exit_code=Exit.USAGE,
            )
        sys.stdout.buffer.write(content)
        return Exit.OK
    if output is not None:
        try:
            output.write_bytes(content)
        except OSError as error:
            raise CliError(
                f"{output} cannot be written: {error.strerror or error}",
                fix="Choose another place with --output",
                exit_code=Exit.USAGE,
            ) from error
        note(f"{len(content)} bytes are in {output}")
    if server.json:
        print_json(
            {"run": run, "id": blob, "bytes": len(content), "path": None if output is None else str(output)}
        )
    return Exit.OK


@app.command(name="export")
def export(run: RunArgument, /, *, server: Server = HERE) -> int:
    """Print everything there is about a run, as one JSON document: the run, its items, events and wire."""
    client = server.client()
    found = client.run(run)
    print_json(
        {
            "run": found,
            "items": {
                step["name"]: client.items(run, step["name"]).items
                for step in found["steps"]
                if "items" in step
            },
            "events": client.events(run).items,
            "wire": client.wire(run).items,
        }
    )
    return Exit.OK


@app.command(name="cancel")
def cancel(run: RunArgument, /, *, server: Server = HERE) -> int:
    """
    Cancel a run.

    Agents that can cancel are told; the run ends when they have confirmed, within 10 seconds at most.
    """
    return _print_changed(server.client().act(run, "cancel"), server)


@app.command(name="pause")
def pause(run: RunArgument, /, *, server: Server = HERE) -> int:
    """
    Let calls in flight end and start no other.

    Go on with: trunkline runs resume RUN
    """
    return _print_changed(server.client().act(run, "pause"), server)


@app.command(name="resume")
def resume(run: RunArgument, /, *, server: Server = HERE) -> int:
    """Let a paused run go on."""
    return _print_changed(server.client().act(run, "resume"), server)


@app.command(name="retry")
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
    return _print_changed(server.client().act(run, "retry", body), server)


@app.command(name="reply")
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
    return _print_changed(server.client().reply(run, step, body), server)


@app.command(name="resolve")
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
    return _print_changed(server.client().resolve(run, step, body), server)


def _check_step(run: RunResource, step: str) -> None:
    names = [known["name"] for known in run["steps"]]
    if step not in names:
        raise CliError(
            f"Run {run['id']} has no step {step}.",
            fix=f"Choose one of: {', '.join(names)}",
            exit_code=Exit.NOT_FOUND,
        )


def _log_row(line: LogLineResource) -> list[str]:
    return [
        date_time(line["at"]),
        line["level"],
        line["source"],
        line["step"] or "",
        str(line["attempt"] or ""),
        "\n".join(map(harmless, line["text"].splitlines())),
    ]


def _print_har(exchanges: Sequence[ExchangeResource]) -> None:
    print_json(har_archive.to_har(stored_exchanges.convert_exchange(exchange) for exchange in exchanges))


def _print_curl(exchanges: Sequence[ExchangeResource]) -> None:
    for exchange in exchanges:
        # A push was the agent's request: nobody else should repeat it.
        if exchange.get("kind") != "push":
            print_text(wire_exchanges.to_curl(cast("JsonObject", exchange)))


def _print_changed(run: RunResource, server: Server) -> int:
    print_run(run, json=server.json)
    note(f"Watch it with: trunkline runs watch {run['id']}")
    return Exit.OK
