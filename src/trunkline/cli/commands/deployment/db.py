"""
`trunkline db`: the database schema, without a server.

PostgreSQL's tables can be upgraded while the servers run; a SQLite file must not be in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import explained
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import STORE_HERE, StorePlace
from trunkline.cli.rendering.output import note, print_fields, print_json

if TYPE_CHECKING:
    from trunkline.stores import schema
    from trunkline.stores.migrations import SchemaState
else:
    schema = lazy_module("trunkline.stores.schema")

_SQLITE = "sqlite:///"

app = App(name="db", help="Upgrade, downgrade and check the database schema.", version_flags=[])


@app.command(name="upgrade")
def upgrade(*, place: StorePlace = STORE_HERE) -> int:
    """
    Upgrade the database schema for this version of Trunkline.

    Runs in one transaction and loses no data. Servers of the previous version keep working. If the schema is up to
    date, nothing changes.
    """
    state = _carried_out(place, schema.upgrade_schema)
    _show(state, place)
    note(f"The schema at {state.place} is up to date.")
    return Exit.OK


@app.command(name="downgrade")
def downgrade(
    to: Annotated[
        str, Parameter(name="REVISION", help="Revision to go back to, such as 0002. base removes all tables.")
    ],
    /,
    *,
    place: StorePlace = STORE_HERE,
) -> int:
    """
    Downgrade the database schema to an older revision.

    Data that the older schema cannot hold is lost. Stop every server first. If the schema is already at this revision
    or older, nothing changes.
    """
    state = _carried_out(place, lambda url: schema.downgrade_schema(url, to))
    _show(state, place)
    return Exit.OK


@app.command(name="check")
def check(*, place: StorePlace = STORE_HERE) -> int:
    """
    Check the database and its schema.

    Changes nothing. Exits with 6 if the database is unreachable, and with 7 if its schema is older, newer or missing.
    """
    state = _carried_out(place, schema.schema_state)
    _show(state, place)
    with explained():
        state.check()
    return Exit.OK


def _carried_out(place: StorePlace, work: Callable[[str], Awaitable[SchemaState]]) -> SchemaState:
    settings = place.settings()
    url = settings.store_url or f"{_SQLITE}{settings.sqlite_path}"

    async def run() -> SchemaState:
        return await work(url)

    with explained():
        return asyncio.run(run())


def _show(state: SchemaState, place: StorePlace) -> None:
    shown = {"store": state.place, "revision": state.revision, "needed": state.needed}
    if place.json:
        print_json(shown)
    else:
        print_fields([(name, value or "none") for name, value in shown.items()])
