"""`trunkline runs`: find, inspect and control runs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.follow import Show, exit_for, follow_run, progress_for_people
from trunkline.cli.inputs import Choice, given_json, given_text, given_value, read_json, run_input
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import (
    HERE,
    Count,
    Cursor,
    DataAnswer,
    Duration,
    Flag,
    Hidden,
    InputPairs,
    JsonText,
    Labels,
    Limit,
    LimitOrAll,
    OnlyStep,
    PartsAnswer,
    RunArgument,
    Server,
    TextAnswer,
    Time,
)
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
from trunkline.cli.rendering.run import (
    error_lines,
    labels_text,
    print_run,
    print_steps,
    question_lines,
    show_run,
)
from trunkline.cli.rendering.times import date_time, duration_between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunkline.api.resources.exchanges import ExchangeResource
    from trunkline.api.resources.runs import LogLineResource, RunResource
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
StepArgument = Annotated[str, Parameter(name="STEP", help="Name of the step.")]
Outcome = Annotated[Literal["succeeded", "failed", "call_again"], Choice]

app = App(name="runs", help="Find, inspect and control runs.", version_flags=[])


@app.command(name="list")
def list_runs(
    *,
    status: Annotated[list[Status] | None, Parameter(negative=""), Choice] = None,
    workflow: str | None = None,
    agent: str | None = None,
    labels: Labels = (),
    search: str | None = None,
    since: Time = None,
    until: Time = None,
    parent: str | None = None,
    children: bool = True,
    limit: Limit = 50,
    cursor: Cursor = None,
    server: Server = HERE,
) -> int:
    """
    List runs, newest first.

    Parameters
    ----------
    status
        List only runs with this status. Can be repeated.
    workflow
        List only runs of this workflow, by name or ID.
    agent
        List only runs of workflows that call this agent.
    labels
        List only runs with this label, such as customer:acme. Can be repeated.
    search
        List only runs whose ID or workflow name starts with this text, or with this correlation ID.
    since
        List only runs created at or after this time, such as 2026-03-01T12:00:00Z.
    until
        List only runs created before this time.
    parent
        List only child runs of this run.
    children
        Include child runs.
    """
    asked: dict[str, str | list[str] | list[Status] | None] = {
        "status": status,
        "workflow": workflow,
        "agent": agent,
        "label": [*labels] or None,
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
    labelled = any(run.get("labels") for run in page.items)
    rows = [
        [
            run["id"],
            f"{run['workflow']['name']} v{run['workflow']['version']}",
            status_cell(run["status"]),
            date_time(run["created_at"]),
            duration_between(run["started_at"], run["finished_at"]),
            harmless(run.get("started_by") or ""),
            *([labels_text(run) or ""] if labelled else []),
        ]
        for run in page.items
    ]
    columns = (
        "RUN",
        "WORKFLOW",
        "STATUS",
        "CREATED",
        "TIME",
        "STARTED BY",
        *(["LABELS"] if labelled else []),
    )
    print_table(columns, rows)
    if not page.items:
        note("No matching runs. Start one with: trunkline run FILE|NAME")
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


@app.command(name="label")
def label(
    run: RunArgument,
    labels: Annotated[
        tuple[str, ...], Parameter(name="KEY:VALUE", help="Label to set, such as customer:acme.", negative="")
    ] = (),
    /,
    *,
    remove: Annotated[
        tuple[str, ...],
        Parameter(negative="", consume_multiple=False, show_default=False, metavar="KEY"),
    ] = (),
    server: Server = HERE,
) -> int:
    """
    Change the labels of a run.

    Works for finished runs, too. Labels that are not named stay as they are.

    Parameters
    ----------
    remove
        Key of a label to remove. Can be repeated.
    """
    changes: dict[str, str | None] = dict.fromkeys(remove)
    for text in labels:
        key, separator, value = text.partition(":")
        if not separator:
            raise CliError(
                f"{text!r} is not a label",
                fix="Write it as KEY:VALUE, such as customer:acme",
                exit_code=Exit.USAGE,
            )
        changes[key] = value
    if not changes:
        raise CliError("No labels to change", fix="Add KEY:VALUE, or --remove KEY", exit_code=Exit.USAGE)
    found = server.client().change_labels(run, changes)
    if server.json:
        print_json(found)
    else:
        print_text(labels_text(found) or "no labels")
    return Exit.OK


@app.command(name="items")
def items(
    run: RunArgument,
    step: Annotated[str, Parameter(name="STEP", help="Step with for_each.")],
    /,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    server: Server = HERE,
) -> int:
    """List the started items of a loop, in order."""
    page = server.client().items(run, step, limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    print_steps(page.items)
    note_next_page(("runs", "items", run, step), {}, page.next_cursor)
    return Exit.OK


@app.command(name="watch")
def watch(run: RunArgument, /, *, wait: Duration = None, server: Server = HERE) -> int:
    """
    Watch a run until it ends or waits for a person.

    The exit code is 0 if the run completed, 10 if it failed, 11 if it was cancelled, 12 if it timed out, and 13 if it
    waits for a person.

    Parameters
    ----------
    wait
        Maximum time to watch, such as 30s.
    """
    show_as: Show = "json" if server.json else progress_for_people()
    ended = follow_run(server.client(), run, show=show_as, wait=wait)
    if not server.json and ended["output"] is not None:
        print_value(ended["output"])
    for line in error_lines(ended) + question_lines(ended):
        note(line)
    return exit_for(ended)


@app.command(name="events")
def events(run: RunArgument, /, *, server: Server = HERE) -> int:
    """List the events of a run."""
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
    limit: LimitOrAll = None,
    cursor: Cursor = None,
    server: Server = HERE,
) -> int:
    """
    Show the log of a run, oldest line first.

    It contains the run's history, the progress messages of agents, and a summary of each request. runs wire shows
    requests completely. The log of a Trunkline process is separate.

    Parameters
    ----------
    attempt
        Show only lines of this attempt, and lines that belong to none.
    """
    client = server.client()
    page = client.logs(run, {"step": step, "attempt": attempt}, limit=limit, cursor=cursor)
    if not page.items and step is not None:
        _check_step(client.run(run), step)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    if page.items:
        # On a terminal, a table would fold the texts into a narrow column.
        print_text(aligned(_LOG_COLUMNS, [_log_row(line) for line in page.items]))
    else:
        note("No matching lines.")
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
    Show the requests to agents and their responses.

    Includes streams with their events, polling, agent cards, tokens and push notifications. Secrets are redacted, and
    long bodies are truncated.

    Parameters
    ----------
    curl
        Print curl commands that repeat the requests. Secrets become environment variables. A truncated body is read
        from a file.
    har
        Print an HTTP Archive (HAR 1.2) for the developer tools of a browser.
    """
    if curl + har + server.json > 1:
        raise CliError(
            "--curl, --har and --json cannot be combined",
            fix="Use one of them.",
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
        note("No requests yet.")
    return Exit.OK


@app.command(name="file")
def file(
    run: RunArgument,
    blob: Annotated[str, Parameter(name="FILE", help="ID of the file: `blob.id` in the output of the step.")],
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    server: Server = HERE,
) -> int:
    """
    Download a file from an agent's response.

    Small files are part of the step's output. For a large file, the output has a reference with the ID of the file.

    Parameters
    ----------
    output
        File to write. Default: stdout.
    """
    content = server.client().file(run, blob)
    if output is None and not server.json:
        if sys.stdout.isatty():
            raise CliError(
                "The file can contain binary data, which is not printed to a terminal",
                fix="Write it to a file with --output, or use a pipe",
                exit_code=Exit.USAGE,
            )
        sys.stdout.buffer.write(content)
        return Exit.OK
    if output is not None:
        try:
            output.write_bytes(content)
        except OSError as error:
            raise CliError(
                f"Cannot write {output}: {error.strerror or error}",
                fix="Choose another file with --output",
                exit_code=Exit.USAGE,
            ) from error
        note(f"Wrote {len(content):,} bytes to {output}")
    if server.json:
        print_json(
            {"run": run, "id": blob, "bytes": len(content), "path": None if output is None else str(output)}
        )
    return Exit.OK


@app.command(name="export")
def export(run: RunArgument, /, *, server: Server = HERE) -> int:
    """Print a run with its items, events and requests as one JSON document."""
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

    Agents that support it receive a cancel request. The run ends when they have confirmed, after 10 seconds at most.
    """
    return _print_changed(server.client().act(run, "cancel"), server)


@app.command(name="pause")
def pause(run: RunArgument, /, *, server: Server = HERE) -> int:
    """
    Pause a run.

    Calls in progress finish, and no new ones start. To continue the run, use runs resume.
    """
    return _print_changed(server.client().act(run, "pause"), server)


@app.command(name="resume")
def resume(run: RunArgument, /, *, server: Server = HERE) -> int:
    """Resume a paused run."""
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


@app.command(name="signal")
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


@app.command(name="reply")
def reply(
    run: RunArgument,
    step: StepArgument,
    text_argument: Annotated[str | None, Parameter(name="TEXT"), Hidden] = None,
    /,
    *,
    text: TextAnswer = None,
    data: DataAnswer = None,
    parts: PartsAnswer = None,
    parts_file: Annotated[str | None, Hidden] = None,
    server: Server = HERE,
) -> int:
    """Answer an agent's question."""
    text = text if text is not None else text_argument
    parts = parts if parts is not None else parts_file
    body: JsonObject = {}
    if text is not None:
        body["text"] = given_text(text)
    if data is not None:
        body["data"] = given_json(data)
    if parts is not None:
        body["parts"] = read_json(parts)
    if not body:
        raise CliError(
            "The answer is missing",
            fix=f"trunkline runs reply {run} {shlex.quote(step)} --text 'YOUR ANSWER'",
            exit_code=Exit.USAGE,
        )
    return _print_changed(server.client().reply(run, step, body), server)


@app.command(name="resolve")
def resolve(
    run: RunArgument,
    step: StepArgument,
    outcome_argument: Annotated[Outcome | None, Parameter(name="OUTCOME"), Hidden] = None,
    /,
    *,
    outcome: Outcome | None = None,
    output: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Record the outcome of a call whose outcome is unknown.

    Parameters
    ----------
    outcome
        What you found out: the agent did the work, failed, or should be called again.
    output
        With --outcome succeeded: the agent's output, as JSON or text. @FILE reads it from a file.
    """
    outcome = outcome or outcome_argument
    if outcome is None:
        raise CliError(
            "The outcome is missing",
            fix=f"trunkline runs resolve {run} {shlex.quote(step)} --outcome succeeded|failed|call_again",
            exit_code=Exit.USAGE,
        )
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
        # A push was a request by the agent, which only the agent can repeat.
        if exchange.get("kind") != "push":
            print_text(wire_exchanges.to_curl(cast("JsonObject", exchange)))


def _print_changed(run: RunResource, server: Server) -> int:
    print_run(run, json=server.json)
    note(f"Watch it with: trunkline runs watch {run['id']}")
    return Exit.OK
