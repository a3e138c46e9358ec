"""What a run leaves behind: its events, its log, its requests to agents, and files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import (
    HERE,
    Count,
    Cursor,
    Flag,
    LimitOrAll,
    OnlyStep,
    RunArgument,
    Server,
)
from trunkline.cli.rendering.followed_run import FollowedRun
from trunkline.cli.rendering.output import (
    aligned,
    harmless,
    note,
    note_next_page,
    print_json,
    print_text,
)
from trunkline.cli.rendering.times import date_time

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

_LOG_COLUMNS = ("AT", "LEVEL", "FROM", "STEP", "ATTEMPT", "TEXT")


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
        Show only lines of this attempt, and lines that belong to no attempt.
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


def file(
    run: RunArgument,
    blob: Annotated[str, Parameter(name="FILE", help="ID of the file: `blob.id` in the output of the step.")],
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], metavar="FILE")] = None,
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
        # Requests to Trunkline can only be repeated by those that have sent them.
        if exchange.get("kind") not in ("push", "caller"):
            print_text(wire_exchanges.to_curl(cast("JsonObject", exchange)))
