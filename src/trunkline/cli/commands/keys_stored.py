"""
The `keys` commands.

They work on the store and need no server: the first key has to be there before one may be reached from outside. A
server that runs goes on, and takes notice within two seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from cyclopts import Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import explained
from trunkline.cli.options import STORE_HERE, StorePlace
from trunkline.cli.rendering.output import Cell, note, print_fields, print_json, print_table, print_text

if TYPE_CHECKING:
    from trunkline.services.keys import Keys
    from trunkline.stores.base import ApiKey

T = TypeVar("T")
Role = Literal["viewer", "operator", "admin"]


def create(
    name: Annotated[str, Parameter(name="NAME", help="Whose it is, or what for.")],
    /,
    *,
    role: Role,
    place: StorePlace = STORE_HERE,
) -> int:
    """
    Make a key, and print it: this once, since only its digest is kept.

    Give it to programs as TRUNKLINE_API_KEY, or as the header Authorization: Bearer KEY.

    Parameters
    ----------
    role
        viewer sees everything, operator also starts and steers runs, admin may do everything.
    """
    key, text = _with_keys(place, lambda keys: keys.create(name, role))
    if place.json:
        print_json({**_shown(key), "key": text})
        return Exit.OK
    note(f"{key.name} is a key with the role {key.role}. It is shown this once:")
    print_text(text)
    return Exit.OK


def list_keys(*, place: StorePlace = STORE_HERE) -> int:
    """List the keys, revoked ones too; never the keys themselves."""
    keys = _with_keys(place, lambda keys: keys.list())
    if place.json:
        print_json({"items": [_shown(key) for key in keys], "next_cursor": None})
        return Exit.OK
    rows = [[key.name, key.role, _state(key), _time(key.created_at) or "", key.id] for key in keys]
    print_table(("KEY", "ROLE", "STATE", "CREATED", "ID"), rows)
    if not rows:
        note("There are no keys. Make one with: trunkline keys create NAME --role admin")
    return Exit.OK


def revoke(
    key: Annotated[str, Parameter(name="KEY", help="The key's name or id.")],
    /,
    *,
    place: StorePlace = STORE_HERE,
) -> int:
    """
    Revoke a key: within two seconds nobody comes in with it any more.

    Its name can be used again.
    """
    revoked = _with_keys(place, lambda keys: keys.revoke(key))
    if place.json:
        print_json(_shown(revoked))
    else:
        print_fields([(name.replace("_", " "), value) for name, value in _shown(revoked).items()])
    return Exit.OK


def _with_keys(place: StorePlace, use: Callable[[Keys], Awaitable[T]]) -> T:
    settings = place.settings()
    from trunkline.services.keys import Keys  # noqa: PLC0415  (heavy; few commands need it)
    from trunkline.wiring import open_store  # noqa: PLC0415

    async def work() -> T:
        async with open_store(settings, beside=True) as store:
            return await use(Keys(store))

    with explained():
        return asyncio.run(work())


def _shown(key: ApiKey) -> dict[str, str | None]:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "created_at": _time(key.created_at),
        "revoked_at": _time(key.revoked_at),
    }


def _state(key: ApiKey) -> Cell:
    return Cell("in use", "green") if key.revoked_at is None else Cell("revoked", "dim")


def _time(at: int | None) -> str | None:
    from trunkline.clock import Instant, rfc3339  # noqa: PLC0415

    return None if at is None else rfc3339(Instant(at))
