"""Reads what a step says of its compensation, the step that undoes it, and reports what no compensation can have."""

from __future__ import annotations

from msgspec import UNSET

from trunkline.jsontypes import Json
from trunkline.workflow.document.locations import Path
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.step_graph.step_names import COMPENSATE
from trunkline.workflow.validation_report import ValidationReport

# What says when a step runs, how often, and what follows: a compensation runs once, after those before it.
REFUSED_KEYS = {
    COMPENSATE: "a compensation cannot be compensated itself; remove it",
    "needs": "compensations run one after another, in the reverse order of the steps; remove it",
    "join": "compensations run one after another, in the reverse order of the steps; remove it",
    "cache": "each compensation does its own work; remove it",
    "on_error": "a compensation that fails waits for a person; remove it",
    "for_each": "use a block with a step that has 'for_each'",
    "repeat": "use a block with a step that has 'repeat'",
    "switch": "use a block with a step that has 'switch'",
}


def compensation_of(fields: FieldReader, report: ValidationReport) -> dict[str, Json] | None:
    """What a step says of its compensation, without what none can have; None: nothing."""
    value = fields.any(COMPENSATE)
    if value is UNSET or value is None:
        return None
    if not isinstance(value, dict):
        fields.error(
            COMPENSATE,
            "'compensate' must be a step, such as {agent: MyAgent, input: {id: '${ steps.book.output.data.id }'}}, "
            f"{describe_value(value)}",
        )
        return None
    if fields.any("cache") is not UNSET:
        fields.error(
            COMPENSATE,
            "a step with 'cache' cannot have 'compensate', because other steps may use what would be undone; "
            "remove one of them",
        )
    path = (*fields.path, COMPENSATE)
    for key, why in REFUSED_KEYS.items():
        if key in value:
            report.error((*path, key), f"'{key}' is not possible in a compensation: {why}", on_key=True)
    _refuse_inside(value, path, report)
    return {key: each for key, each in value.items() if key not in REFUSED_KEYS}


def _refuse_inside(value: Json, path: Path, report: ValidationReport) -> None:
    """What no step of a block can have."""
    if not isinstance(value, dict):
        return
    steps, branches = value.get("steps"), value.get("switch")
    if isinstance(branches, list):
        for index, branch in enumerate(branches):
            _refuse_inside(branch, (*path, "switch", index), report)
    if not isinstance(steps, dict):
        return
    for name, step in steps.items():
        inside = (*path, "steps", name)
        if isinstance(step, dict) and COMPENSATE in step:
            report.error(
                (*inside, COMPENSATE),
                "a step inside a compensation cannot have a compensation itself; remove it",
                on_key=True,
            )
        if isinstance(step, dict) and "cache" in step:
            why = "each compensation does its own work; remove it"
            report.error((*inside, "cache"), f"'cache' is not possible in a compensation: {why}", on_key=True)
        _refuse_inside(step, inside, report)
