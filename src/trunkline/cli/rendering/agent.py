"""An agent on the terminal: its fields, what it speaks, and how we know."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from trunkline.cli.options import Server
from trunkline.cli.rendering.migration import migration_fields
from trunkline.cli.rendering.output import print_fields, print_json, print_table, print_text
from trunkline.cli.show_limits import print_limits

if TYPE_CHECKING:
    from trunkline.cli.answers import Agent, Dialect
    from trunkline.jsontypes import Json, JsonObject

# Shown below the fields.
_APART = frozenset({"dialect", "limits", "migration"})


def print_agent(agent: Agent, server: Server) -> None:
    if server.json:
        print_json(agent)
        return
    fields = cast("JsonObject", agent).items()
    print_fields([(name.replace("_", " "), _shown(value)) for name, value in fields if name not in _APART])
    if (limits := agent.get("limits")) is not None:
        print_limits(limits)
    if agent["dialect"] is not None:
        _print_dialect(agent["dialect"])
    if (migration := agent.get("migration")) is not None:
        print_text("")
        print_fields(migration_fields(migration))


def _print_dialect(dialect: Dialect) -> None:
    print_text("")
    print_fields(
        [
            ("speaks", dialect["protocol"]),
            ("at", dialect["url"]),
            ("because", dialect["evidence"]),
            ("since", dialect["decided_at"]),
            ("card", dialect["card_url"]),
            ("card etag", dialect["card_etag"]),
            ("streams", _yes(dialect["streams"])),
            ("pushes", _yes(dialect["pushes"])),
            ("tenant", dialect["tenant"]),
        ]
    )
    if dialect["tried"]:
        print_text("")
        rows = [[probe["at"], probe["tried"], probe["answered"]] for probe in dialect["tried"]]
        print_table(("WHEN", "TRIED", "ANSWERED"), rows)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _shown(value: Json) -> object:
    match value:
        case [*items] if all(isinstance(item, str) for item in items):
            return ", ".join(map(str, items))
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return value
