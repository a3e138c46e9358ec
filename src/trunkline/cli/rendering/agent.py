"""An agent as the commands print it: its fields, limits and detected protocol, with the evidence."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from trunkline.cli.options import Server
from trunkline.cli.rendering.migration import migration_fields
from trunkline.cli.rendering.output import print_fields, print_json, print_table, print_text
from trunkline.cli.rendering.times import date_time
from trunkline.durations import format_duration

if TYPE_CHECKING:
    from trunkline.api.resources.agents.limits import AgentLimits, BreakerState
    from trunkline.api.resources.agents.registry import AgentMetadataResource, DialectResource
    from trunkline.jsontypes import Json, JsonObject

# Shown below the fields.
_APART = frozenset({"dialect", "limits", "migration"})


def print_agent(agent: AgentMetadataResource, server: Server) -> None:
    if server.json:
        print_json(agent)
        return
    fields = cast("JsonObject", agent).items()
    print_fields([_field(name, value) for name, value in fields if name not in _APART])
    if (limits := agent.get("limits")) is not None:
        print_limits(limits)
    if agent["dialect"] is not None:
        _print_dialect(agent["dialect"])
    if (migration := agent.get("migration")) is not None:
        print_text("")
        print_fields(migration_fields(migration))


def print_limits(limits: AgentLimits) -> None:
    fields: list[tuple[str, object]] = [("in flight", limits["in_flight"]), ("queued", limits["queued"])]
    if (rate := limits["rate"]) is not None:
        fields.append(("tokens", f"{rate['tokens']} of {rate['burst']}"))
    if (breaker := limits["breaker"]) is not None:
        fields += _breaker(breaker)
    print_text("")
    print_fields(fields)


def _print_dialect(dialect: DialectResource) -> None:
    print_text("")
    print_fields(
        [
            ("detected protocol", dialect["protocol"]),
            ("endpoint", dialect["url"]),
            ("evidence", dialect["evidence"]),
            ("detected at", date_time(dialect["decided_at"])),
            ("card", dialect["card_url"]),
            ("card etag", dialect["card_etag"]),
            ("streaming", _yes(dialect["streams"])),
            ("push notifications", _yes(dialect["pushes"])),
            ("tenant", dialect["tenant"]),
        ]
    )
    if dialect["tried"]:
        print_text("")
        rows = [[date_time(probe["at"]), probe["tried"], probe["answered"]] for probe in dialect["tried"]]
        print_table(("TIME", "REQUEST", "RESPONSE"), rows)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _field(name: str, value: Json) -> tuple[str, object]:
    if name == "timeout_ms" and isinstance(value, int):
        return "timeout", format_duration(timedelta(milliseconds=value))
    if name in {"created_at", "updated_at"}:
        return name.replace("_", " "), date_time(value)
    return name.replace("_", " "), _shown(value)


def _shown(value: Json) -> object:
    match value:
        case bool():
            return _yes(value)
        case [*items] if all(isinstance(item, str) for item in items):
            return ", ".join(map(str, items))
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return value


def _breaker(breaker: BreakerState) -> list[tuple[str, object]]:
    fields: list[tuple[str, object]] = [
        ("breaker", breaker["state"].replace("_", "-")),
        ("failures in a row", breaker["failures"]),
    ]
    if breaker["state"] != "closed":
        fields += [
            ("opened at", date_time(breaker["opened_at"])),
            ("next try", date_time(breaker["retry_at"])),
            ("reason", breaker["reason"]),
        ]
    return fields
