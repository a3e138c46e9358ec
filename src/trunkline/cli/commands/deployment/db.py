"""
`trunkline db`: the schema of the store, without a server.

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

app = App(name="db", help="Upgrade and check the store's tables.", version_flags=[])


@app.command(name="upgrade")
def upgrade(*, place: StorePlace = STORE_HERE) -> int:
    """
    Bring the tables up to what this version of Trunkline needs, in one transaction.

    Nothing is lost, and servers of the version before go on meanwhile. A second upgrade changes nothing.
    """
    state = _carried_out(place, schema.upgrade_schema)
    _show(state, place)
    note(f"The tables at {state.place} are up to date.")
    return Exit.OK


@app.command(name="downgrade")
def downgrade(
    to: Annotated[
        str, Parameter(name="REVISION", help="Where to go back to, e.g. 0002; base: no tables at all.")
    ],
    /,
    *,
    place: StorePlace = STORE_HERE,
) -> int:
    """
    Bring the tables back to an older revision. What only newer ones can hold is lost.

    Stop every server first. Tables that are at this revision or below stay as they are.
    """
    state = _carried_out(place, lambda url: schema.downgrade_schema(url, to))
    _show(state, place)
    return Exit.OK


@app.command(name="check")
def check(*, place: StorePlace = STORE_HERE) -> int:
    """
    Check that the store can be reached, and that its tables are those that this version of Trunkline needs.

    Changes nothing. Exits with 6 when the store cannot be reached, with 7 when its tables are older, newer or missing.
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
