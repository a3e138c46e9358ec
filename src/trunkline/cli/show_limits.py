"""What an agent has to do, and how its limits stand, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.cli.rendering.output import print_fields, print_text

if TYPE_CHECKING:
    from trunkline.cli.answers import AgentLimits, BreakerState


def print_limits(limits: AgentLimits) -> None:
    fields: list[tuple[str, object]] = [("in flight", limits["in_flight"]), ("queued", limits["queued"])]
    if (rate := limits["rate"]) is not None:
        fields.append(("tokens", f"{rate['tokens']} of {rate['burst']}"))
    if (breaker := limits["breaker"]) is not None:
        fields += _breaker(breaker)
    print_text("")
    print_fields(fields)


def _breaker(breaker: BreakerState) -> list[tuple[str, object]]:
    fields: list[tuple[str, object]] = [
        ("breaker", breaker["state"].replace("_", "-")),
        ("failures in a row", breaker["failures"]),
    ]
    if breaker["state"] != "closed":
        fields += [
            ("opened at", breaker["opened_at"]),
            ("tried again from", breaker["retry_at"]),
            ("because of", breaker["reason"]),
        ]
    return fields
