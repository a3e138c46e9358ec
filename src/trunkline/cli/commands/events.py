"""`trunkline events`: send events to waiting steps, and list the events that arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.inputs import given_json, run_input
from trunkline.cli.options import HERE, Cursor, InputPairs, JsonText, LimitOrAll, Server
from trunkline.cli.rendering.output import (
    note,
    note_next_page,
    print_fields,
    print_json,
    print_table,
    print_text,
    print_value,
)
from trunkline.cli.rendering.times import date_time

if TYPE_CHECKING:
    from trunkline.jsontypes import JsonObject

app = App(name="events", help="Send events to steps that wait for them, and list events.", version_flags=[])


@app.command(name="send")
def send(
    type_: Annotated[str, Parameter(name="TYPE", help="Type of the event, such as payment.received.")],
    /,
    *,
    key: str | None = None,
    field: Annotated[InputPairs, Parameter(name=("--input", "-i"))] = (),
    data: JsonText = None,
    id_: Annotated[str | None, Parameter(name="--id")] = None,
    source: str | None = None,
    server: Server = HERE,
) -> int:
    """
    Send an event. It completes the steps that wait for it.

    Prints the ID of the event. An event with the same source and ID as an earlier one changes nothing.

    Parameters
    ----------
    key
        What the event is about, such as the number of an order.
    field
        Field of the data as key=value. Can be repeated. Values that are JSON are read as JSON. key=@FILE reads a file.
    data
        The whole data, as JSON. @FILE reads it from a file.
    id_
        ID of the event. Default: a new one.
    source
        Name of the sender. Default: trunkline.
    """
    event: JsonObject = {"type": type_}
    if data is not None:
        event["data"] = given_json(data)
    elif field:
        event["data"] = run_input(field, None)
    event |= {
        name: value for name, value in (("key", key), ("id", id_), ("source", source)) if value is not None
    }
    received = server.client().send_event(event)
    if server.json:
        print_json(received)
    else:
        print_text(received["id"])
    return Exit.OK


@app.command(name="list")
def list_events(
    *,
    type_: Annotated[str | None, Parameter(name="--type")] = None,
    key: str | None = None,
    run: str | None = None,
    limit: LimitOrAll = None,
    cursor: Cursor = None,
    server: Server = HERE,
) -> int:
    """
    List events and signals, newest first.

    Parameters
    ----------
    type_
        List only events of this type, or signals of this name.
    key
        List only events with this key. Needs --type.
    run
        List only signals to this run.
    """
    query = {"type": type_, "key": key, "run": run}
    page = server.client().received_events(query, limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [event["id"], event["type"], event["key"] or "", date_time(event["at"]), event["source"]]
        for event in page.items
    ]
    print_table(("EVENT", "TYPE", "KEY", "AT", "SOURCE"), rows)
    if not rows:
        note("No events.")
    given = {f"--{name}": value for name, value in query.items() if value is not None}
    note_next_page(("events", "list"), given, page.next_cursor)
    return Exit.OK


@app.command(name="show")
def show(
    event: Annotated[str, Parameter(name="EVENT", help="ID of the event.")], /, *, server: Server = HERE
) -> int:
    """Show an event with its data."""
    found = server.client().received_event(event)
    if server.json:
        print_json(found)
        return Exit.OK
    print_fields(
        [
            ("event", found["id"]),
            ("type", found["type"]),
            ("key", found["key"]),
            ("source", found["source"]),
            ("run", found["run_id"]),
            ("arrived", date_time(found["at"])),
        ]
    )
    print_text("")
    print_value(found["data"])
    return Exit.OK
