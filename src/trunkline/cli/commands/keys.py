"""
`trunkline keys`: the API keys.

The commands work on the store and need no server: the first key has to exist before a server may listen on an
address that others can reach. A running server sees a change within two seconds. REST and the web UI manage keys too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from cyclopts import App, Parameter

from trunkline.cli.exit_codes import Exit
from trunkline.cli.failures import explained
from trunkline.cli.inputs import Choice
from trunkline.cli.lazy_imports import lazy_module
from trunkline.cli.options import STORE_HERE, Duration, Publications, StorePlace
from trunkline.cli.rendering.output import Cell, note, print_fields, print_json, print_table, print_text
from trunkline.cli.rendering.times import date_time

if TYPE_CHECKING:
    from trunkline import clock, system_clock, wiring
    from trunkline.clock import Instant
    from trunkline.jsontypes import JsonObject
    from trunkline.services.security import api_keys as keys_service
    from trunkline.services.security.api_keys import ApiKeys
    from trunkline.stores.base import ApiKey
else:
    keys_service = lazy_module("trunkline.services.security.api_keys")
    wiring = lazy_module("trunkline.wiring")
    clock = lazy_module("trunkline.clock")
    system_clock = lazy_module("trunkline.system_clock")

T = TypeVar("T")
Role = Annotated[Literal["caller", "viewer", "operator", "admin"], Choice]

app = App(name="keys", help="Create, list and revoke API keys, directly in the store.", version_flags=[])


@app.command(name="create")
def create(
    name: Annotated[str, Parameter(name="NAME", help="Who or what the key is for.")],
    /,
    *,
    role: Role,
    expires_in: Duration = None,
    publication: Publications = (),
    place: StorePlace = STORE_HERE,
) -> int:
    """
    Create an API key and print it.

    The key is shown only once, because only its digest is stored. Set it as TRUNKLINE_API_KEY for the command line,
    or send it in the header Authorization: Bearer KEY.

    Parameters
    ----------
    role
        What the key can do. A caller can call published agents and workflows over A2A, and see its own tasks. A viewer
        can read everything, an operator can also start and control runs, and an admin can do everything.
    expires_in
        How long the key is valid, such as 90d. By default, it never expires.
    publication
        What a caller can call: agents/NAME or workflows/NAME. Can be repeated.
    """
    key, text = _with_keys(
        place, lambda keys: keys.create(name, role, lifetime=expires_in, publications=publication)
    )
    if place.json:
        print_json({**_shown(key), "key": text})
        return Exit.OK
    note(f"Created key {key.name} with the role {key.role}. It is shown only once:")
    print_text(text)
    return Exit.OK


@app.command(name="list")
def list_keys(*, place: StorePlace = STORE_HERE) -> int:
    """
    List API keys, including revoked ones, with the time of their last use.

    The keys themselves are never shown.
    """
    keys = _with_keys(place, lambda keys: keys.list())
    if place.json:
        print_json({"items": [_shown(key) for key in keys], "next_cursor": None})
        return Exit.OK
    now = system_clock.SystemClock().now()
    rows = [
        [key.name, key.role, _state(key, now), *map(_shown_time, (key.last_used_at, key.expires_at)), key.id]
        for key in keys
    ]
    print_table(("KEY", "ROLE", "STATE", "LAST USED", "EXPIRES", "ID"), rows)
    if not rows:
        note("No keys. Create one with: trunkline keys create NAME --role admin")
    return Exit.OK


@app.command(name="revoke")
def revoke(
    key: Annotated[str, Parameter(name="KEY", help="Name or ID of the key.")],
    /,
    *,
    place: StorePlace = STORE_HERE,
) -> int:
    """
    Revoke an API key.

    It is rejected within two seconds, and stays in the list. You can use its name again.
    """
    revoked = _with_keys(place, lambda keys: keys.revoke(key))
    if place.json:
        print_json(_shown(revoked))
    else:
        fields = {**_shown(revoked), "publications": ", ".join(revoked.publications)}
        print_fields(
            [
                (name.replace("_", " "), date_time(value) if name.endswith("_at") else value)
                for name, value in fields.items()
            ]
        )
    return Exit.OK


def _with_keys(place: StorePlace, use: Callable[[ApiKeys], Awaitable[T]]) -> T:
    settings = place.settings()

    async def work() -> T:
        async with wiring.open_store(settings, allow_in_use=True) as store:
            return await use(keys_service.ApiKeys(store))

    with explained():
        return asyncio.run(work())


def _shown(key: ApiKey) -> JsonObject:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "created_at": _time(key.created_at),
        "expires_at": _time(key.expires_at),
        "last_used_at": _time(key.last_used_at),
        "revoked_at": _time(key.revoked_at),
        "publications": list(key.publications),
    }


def _state(key: ApiKey, now: Instant) -> Cell:
    if key.revoked_at is not None:
        return Cell("revoked", "dim")
    return Cell("expired", "red") if key.is_expired(now) else Cell("active", "green")


def _shown_time(at: int | None) -> str:
    return date_time(_time(at)) or "never"


def _time(at: int | None) -> str | None:
    return None if at is None else clock.rfc3339(clock.Instant(at))
