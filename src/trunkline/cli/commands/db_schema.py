"""
The `db` commands.

They work on the store that TRUNKLINE_STORE names and need no server. PostgreSQL's tables can be upgraded while the
servers run; a SQLite file must not be in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import explained
from trunkline.cli.options import STORE_HERE, StorePlace
from trunkline.cli.rendering.output import note, print_fields, print_json

if TYPE_CHECKING:
    from trunkline.stores.schema import SchemaState


_SQLITE = "sqlite:///"


def upgrade(*, place: StorePlace = STORE_HERE) -> int:
    """
    Bring the tables up to what this version of Trunkline needs, in one transaction.

    Nothing is lost, and servers of the version before go on meanwhile. A second upgrade changes nothing.
    """
    from trunkline.stores.schema import upgrade_schema  # noqa: PLC0415  (few commands need it)

    state = _carried_out(place, upgrade_schema)
    _show(state, place)
    note(f"The tables at {state.place} are up to date.")
    return Exit.OK


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
    from trunkline.stores.schema import downgrade_schema  # noqa: PLC0415  (few commands need it)

    state = _carried_out(place, lambda url: downgrade_schema(url, to))
    _show(state, place)
    return Exit.OK


def check(*, place: StorePlace = STORE_HERE) -> int:
    """
    Check that the store can be reached, and that its tables are those that this version of Trunkline needs.

    Changes nothing. Exits with 6 when the store cannot be reached, with 7 when its tables are older, newer or missing.
    """
    from trunkline.stores.schema import schema_state  # noqa: PLC0415  (few commands need it)

    state = _carried_out(place, schema_state)
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
