"""What `runs show` prints of the agents that steps have chosen."""

from __future__ import annotations

from typing import cast

from trunkline.api.resources.runs import RunResource
from trunkline.api.resources.step_routing import RoutingResource
from trunkline.cli.rendering.run import choice_lines

ROUTING: RoutingResource = {
    "agent": "Cheap",
    "reason": "cheapest: cost 0.5",
    "candidates": [
        {"agent": "Cheap", "status": "chosen", "reason": "cost 0.5"},
        {"agent": "Dear\u202e", "status": "busy", "reason": "5 of 5 calls in progress or queued"},
    ],
    "others": 3,
    "tried": ["Gone"],
    "hedges": [],
}


def run_with(routing: RoutingResource | None) -> RunResource:
    step = {"name": "translate", **({} if routing is None else {"routing": routing})}
    return cast("RunResource", {"steps": [step]})


def test_the_choice_is_shown_with_what_was_compared() -> None:
    lines = choice_lines(run_with(ROUTING))
    assert lines[:3] == [
        "",
        "translate calls Cheap (cheapest: cost 0.5)",
        "  Cheap: chosen, cost 0.5",
    ]
    assert lines[4:] == ["  3 others", "  tried before: Gone"]
    assert "\u202e" not in "".join(lines)


def test_steps_without_a_choice_print_nothing() -> None:
    assert choice_lines(run_with(None)) == []
    assert choice_lines(run_with({**ROUTING, "agent": None, "reason": None, "candidates": []})) == []
