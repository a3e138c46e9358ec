"""`trunkline triggers`: triggers start runs by schedule, by webhook, or when something has happened."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import App, Parameter

from trunkline.cli.definition_files import read_document, save_trigger
from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import CliError
from trunkline.cli.inputs import run_input
from trunkline.cli.options import (
    HERE,
    Cursor,
    DefinitionFiles,
    FileText,
    Hidden,
    InputPairs,
    JsonFlag,
    Limit,
    LimitOrAll,
    Server,
    Time,
)
from trunkline.cli.rendering.output import (
    note,
    note_next_page,
    print_deleted,
    print_json,
    print_table,
    print_text,
    status_cell,
)
from trunkline.cli.rendering.times import date_time

if TYPE_CHECKING:
    from trunkline.api.resources.automation.triggers import TriggerSummary
    from trunkline.jsontypes import JsonObject

NameArgument = Annotated[str, Parameter(name="TRIGGER", help="Name of the trigger.")]

app = App(
    name="triggers",
    help="Save, show, pause and fire triggers, which start runs automatically.",
    version_flags=[],
)


@app.command(name="apply")
def apply(
    files: DefinitionFiles,
    /,
    *,
    server: Server = HERE,
) -> int:
    """
    Create or change triggers.

    If the schedule of a trigger has not changed, its next firing stays as it is.
    """
    client = server.client()
    applied = [save_trigger(client, file, *read_document(file)) for file in files]
    if server.json:
        items = [{**trigger, "change": change} for trigger, change in applied]
        print_json({"items": items, "next_cursor": None})
        return Exit.OK
    rows = [[trigger["name"], status_cell(change), _next(trigger)] for trigger, change in applied]
    print_table(("TRIGGER", "CHANGE", "NEXT"), rows)
    return Exit.OK


@app.command(name="list")
def list_triggers(*, limit: LimitOrAll = None, cursor: Cursor = None, server: Server = HERE) -> int:
    """List triggers with their next firings."""
    page = server.client().triggers(limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [
            trigger["name"],
            trigger["workflow"],
            _source_text(trigger),
            _next(trigger) if trigger["enabled"] else "paused",
        ]
        for trigger in page.items
    ]
    print_table(("TRIGGER", "WORKFLOW", "FIRES", "NEXT"), rows)
    if not rows:
        note("No triggers. Create one with: trunkline triggers apply FILE")
    note_next_page(("triggers", "list"), {}, page.next_cursor)
    return Exit.OK


@app.command(name="show")
def show(trigger: NameArgument, /, *, limit: Limit = 10, cursor: Cursor = None, server: Server = HERE) -> int:
    """Show a trigger with its next firings and its history, newest first."""
    client = server.client()
    found = client.trigger(trigger)
    history = client.firings(trigger, limit=limit, cursor=cursor)
    if server.json:
        print_json({**found, "firings": history.answer()})
        return Exit.OK
    state = "enabled" if found["enabled"] else "paused"
    note(f"{found['name']} starts {found['workflow']}: {_source_text(found)}, {state}")
    webhook = found.get("webhook")
    if webhook is not None:
        note(f"Webhook ({webhook['verify']['scheme']}): {webhook['url'] or 'shown only to operators'}")
    elif "schedule" in found:
        print_table(("NEXT",), [[date_time(time)] for time in found["next_firings"]])
    rows = [
        [
            date_time(firing["at"]),
            date_time(firing["scheduled_at"]) if firing["scheduled_at"] else "-",
            status_cell(firing["outcome"]),
            firing["run_id"] or firing["reason"] or "",
        ]
        for firing in history.items
    ]
    print_table(("FIRED", "SCHEDULED", "OUTCOME", "RUN OR REASON"), rows)
    note_next_page(("triggers", "show", trigger), {}, history.next_cursor)
    return Exit.OK


@app.command(name="preview")
def preview(
    file: Annotated[str, Parameter(name="FILE", help="Trigger file. - reads stdin.")],
    /,
    *,
    server: Server = HERE,
) -> int:
    """Show when a trigger file would fire next, without saving it."""
    _, document = read_document(file)
    schedule = document.get("schedule")
    if not isinstance(schedule, dict):
        raise CliError(
            f"{file} has no schedule", fix="Add one, such as schedule: {every: 15m}", exit_code=Exit.INVALID
        )
    found = server.client().preview_schedule(schedule)
    if server.json:
        print_json(found)
    else:
        print_table(("NEXT",), [[date_time(time)] for time in found["firings"]])
    return Exit.OK


@app.command(name="pause")
def pause(trigger: NameArgument, /, *, server: Server = HERE) -> int:
    """Pause a trigger. It starts no runs until you resume it."""
    return _switch(trigger, "pause", server)


@app.command(name="resume")
def resume(trigger: NameArgument, /, *, server: Server = HERE) -> int:
    """Resume a paused trigger. It fires at its next scheduled time, or for the next event."""
    return _switch(trigger, "resume", server)


@app.command(name="fire")
def fire(
    trigger: NameArgument,
    /,
    *,
    input_: InputPairs = (),
    input_file: FileText = None,
    idempotency_key: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Start a run of a trigger's workflow now.

    Parameters
    ----------
    input_
        Field of the input as key=value, instead of the input that the trigger creates. Can be repeated.
    input_file
        JSON file with the whole input. - reads stdin. --input adds to it.
    idempotency_key
        Requests with the same key and input start only one run.
    """
    body: JsonObject = {}
    if input_ or input_file is not None:
        body["input"] = run_input(input_, input_file)
    run = server.client().fire_trigger(trigger, body, idempotency_key)
    if server.json:
        print_json(run)
    else:
        print_text(run["id"])
        note(f"Watch it with: trunkline runs watch {run['id']}")
    return Exit.OK


@app.command(name="backfill")
def backfill(
    trigger: NameArgument,
    /,
    *,
    since: Time = None,
    until: Time = None,
    from_: Annotated[Time, Parameter(name="--from"), Hidden] = None,
    to: Annotated[Time, Hidden] = None,
    server: Server = HERE,
) -> int:
    """
    Start a run for each scheduled time of a past period.

    A time that has already started a run does not start another one.

    Parameters
    ----------
    since
        Start of the period, such as 2026-03-01T00:00:00Z.
    until
        End of the period. A firing at exactly this time is not included.
    """
    start, end = since or from_, until or to
    if start is None or end is None:
        raise CliError(
            "The period is missing",
            fix=f"trunkline triggers backfill {shlex.quote(trigger)} --since TIME --until TIME",
            exit_code=Exit.USAGE,
        )
    found = server.client().backfill_trigger(trigger, start, end)
    if server.json:
        print_json(found)
        return Exit.OK
    rows = [
        [
            date_time(run["scheduled_at"]),
            status_cell("created" if run["created"] else "unchanged"),
            run["run_id"],
        ]
        for run in found["items"]
    ]
    print_table(("SCHEDULED", "CHANGE", "RUN"), rows)
    return Exit.OK


@app.command(name="delete")
def delete(trigger: NameArgument, /, *, server: Server = HERE) -> int:
    """Delete a trigger and its history. Its runs continue."""
    server.client().delete_trigger(trigger)
    print_deleted("trigger", trigger, as_json=server.json)
    return Exit.OK


def _switch(name: str, action: str, server: Server) -> int:
    trigger = server.client().switch_trigger(name, action)
    if server.json:
        print_json(trigger)
    elif trigger["enabled"]:
        following = f" Next: {_next(trigger)}" if trigger["next_at"] else ""
        note(f"Resumed trigger {name}.{following}")
    else:
        note(f"Paused trigger {name}")
    return Exit.OK


def _next(trigger: TriggerSummary) -> str:
    return date_time(trigger["next_at"]) if trigger["next_at"] else "-"


def _source_text(trigger: TriggerSummary) -> str:
    schedule = trigger.get("schedule")
    event, run = trigger.get("event"), trigger.get("run")
    if event is not None:
        return f"event {', '.join(event['type'])}"
    if run is not None:
        return f"run of {run['workflow']}: {', '.join(run['status'])}"
    if schedule is None:
        return "webhook"
    if "cron" in schedule:
        return f"{schedule['cron']} ({schedule['timezone']})"
    if "every" in schedule:
        return f"every {schedule['every']}"
    return f"at {len(cast('list[str]', schedule.get('at', [])))} times"


@app.command(name="schema")
def schema(*, json: JsonFlag = False) -> int:
    """
    Print the JSON Schema of trigger files.

    Use it in an editor, for completion and validation.
    """
    # No other command needs the classes that it is made of.
    from trunkline.api.resources.automation.trigger_schema import trigger_json_schema  # noqa: PLC0415

    del json  # a schema has no other form
    print_json(trigger_json_schema())
    return Exit.OK
