"""`trunkline subscriptions`: subscriptions report changes to other systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from trunkline.cli.definition_files import read_document, save_subscription
from trunkline.cli.exit_codes import Exit
from trunkline.cli.options import HERE, Cursor, DefinitionFiles, Limit, LimitOrAll, Server
from trunkline.cli.rendering.output import (
    note,
    note_next_page,
    print_deleted,
    print_json,
    print_table,
    status_cell,
)
from trunkline.cli.rendering.times import date_time

if TYPE_CHECKING:
    from trunkline.api.resources.automation.subscriptions import SubscriptionResource


NameArgument = Annotated[str, Parameter(name="SUBSCRIPTION", help="Name of the subscription.")]

app = App(
    name="subscriptions",
    help="Save, show, pause and test subscriptions, which report changes to other systems.",
    version_flags=[],
)


def _receiver(subscription: SubscriptionResource) -> str:
    return subscription["url"] or ", ".join(subscription["mail"])


@app.command(name="apply")
def apply(
    files: DefinitionFiles,
    /,
    *,
    server: Server = HERE,
) -> int:
    """Create or change subscriptions."""
    client = server.client()
    applied = [save_subscription(client, file, *read_document(file)) for file in files]
    if server.json:
        items = [{**subscription, "change": change} for subscription, change in applied]
        print_json({"items": items, "next_cursor": None})
        return Exit.OK
    rows = [
        [subscription["name"], status_cell(change), _receiver(subscription)]
        for subscription, change in applied
    ]
    print_table(("SUBSCRIPTION", "CHANGE", "RECEIVER"), rows)
    return Exit.OK


@app.command(name="list")
def list_subscriptions(*, limit: LimitOrAll = None, cursor: Cursor = None, server: Server = HERE) -> int:
    """List subscriptions."""
    page = server.client().subscriptions(limit=limit, cursor=cursor)
    if server.json:
        print_json(page.answer())
        return Exit.OK
    rows = [
        [
            subscription["name"],
            status_cell(subscription["status"]),
            ", ".join(subscription["types"]),
            _receiver(subscription),
        ]
        for subscription in page.items
    ]
    print_table(("SUBSCRIPTION", "STATUS", "TYPES", "RECEIVER"), rows)
    if not rows:
        note("No subscriptions. Create one with: trunkline subscriptions apply FILE")
    note_next_page(("subscriptions", "list"), {}, page.next_cursor)
    return Exit.OK


@app.command(name="show")
def show(
    subscription: NameArgument, /, *, limit: Limit = 10, cursor: Cursor = None, server: Server = HERE
) -> int:
    """Show a subscription and its deliveries, newest first."""
    client = server.client()
    found = client.subscription(subscription)
    history = client.deliveries(subscription, limit=limit, cursor=cursor)
    if server.json:
        print_json({**found, "deliveries": history.answer()})
        return Exit.OK
    note(f"{found['name']} reports {', '.join(found['types'])} to {_receiver(found)}: {found['status']}")
    if found["error"] is not None:
        note(f"Last attempt: {found['error']}")
    if found["status"] in {"paused", "disabled"}:
        note(f"Resume it with: trunkline subscriptions resume {found['name']}")
    rows = [
        [
            date_time(delivery["created_at"]),
            delivery["type"],
            status_cell(delivery["status"]),
            delivery["run_id"] or "-",
            delivery["id"],
            delivery["error"] or "",
        ]
        for delivery in history.items
    ]
    print_table(("AT", "TYPE", "STATUS", "RUN", "DELIVERY", "ERROR"), rows)
    note_next_page(("subscriptions", "show", subscription), {}, history.next_cursor)
    return Exit.OK


@app.command(name="pause")
def pause(subscription: NameArgument, /, *, server: Server = HERE) -> int:
    """Pause a subscription. Its deliveries wait for up to 24 hours."""
    return _switch(subscription, "pause", server)


@app.command(name="resume")
def resume(subscription: NameArgument, /, *, server: Server = HERE) -> int:
    """Resume a paused or disabled subscription, and send its waiting deliveries."""
    return _switch(subscription, "resume", server)


@app.command(name="test")
def send_test(subscription: NameArgument, /, *, server: Server = HERE) -> int:
    """Send a test delivery now, and show the result."""
    delivery = server.client().test_subscription(subscription)
    if server.json:
        print_json(delivery)
    elif delivery["status"] == "delivered":
        note(f"The receiver of {subscription} accepted the test delivery")
    else:
        note(f"The test delivery of {subscription} failed: {delivery['error']}")
    return Exit.OK if delivery["status"] == "delivered" else Exit.INVALID


@app.command(name="redeliver")
def redeliver(
    subscription: NameArgument,
    delivery: Annotated[str, Parameter(name="DELIVERY", help="ID of the delivery.")],
    /,
    *,
    server: Server = HERE,
) -> int:
    """Send a finished delivery again, whether it succeeded or failed."""
    renewed = server.client().redeliver(subscription, delivery)
    if server.json:
        print_json(renewed)
    else:
        note(f"Sending {renewed['type']} again. See: trunkline subscriptions show {subscription}")
    return Exit.OK


@app.command(name="delete")
def delete(subscription: NameArgument, /, *, server: Server = HERE) -> int:
    """Delete a subscription with its history. Waiting deliveries are not sent."""
    server.client().delete_subscription(subscription)
    print_deleted("subscription", subscription, as_json=server.json)
    return Exit.OK


def _switch(name: str, action: str, server: Server) -> int:
    subscription = server.client().switch_subscription(name, action)
    if server.json:
        print_json(subscription)
    else:
        note(f"{'Paused' if action == 'pause' else 'Resumed'} subscription {name}")
    return Exit.OK
