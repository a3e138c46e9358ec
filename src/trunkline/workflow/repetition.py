"""Reads `repeat` and the conditions of `switch`, and reports what does not fit."""

from __future__ import annotations

from msgspec import UNSET

from trunkline.jsontypes import Json
from trunkline.workflow.definition import AFTER_ROUNDS, DEFAULT_ROUNDS, Repeat
from trunkline.workflow.expressions import strip_delimiters
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.validation_report import ValidationReport

REPEAT_KEYS = ("until", "max_rounds", "delay", "on_max")
BRANCH_KEYS = ("when", "else", "steps", "output")
# Each of them is a run of its own that is kept.
MAX_ROUNDS = 100_000
MAX_BRANCHES = 100


def read_repeat(fields: FieldReader, report: ValidationReport) -> Repeat | None:
    value = fields.mapping("repeat")
    if value is None:
        return None
    repeat = FieldReader(value, (*fields.path, "repeat"), REPEAT_KEYS, report)
    until = read_condition(repeat, "until", "steps.review.output.data.score > 0.9")
    if until is None and "until" not in value:
        fields.error("repeat", "'until' is missing; add it, such as until: steps.review.output.data.good")
    repeat.duration("delay", positive=False)
    delay = value.get("delay")
    return Repeat(
        until or "true",
        repeat.integer("max_rounds", 1, MAX_ROUNDS) or DEFAULT_ROUNDS,
        delay if isinstance(delay, str) else "0s",
        repeat.choice("on_max", AFTER_ROUNDS, "fail"),
    )


def read_condition(fields: FieldReader, key: str, example: str) -> str | None:
    """A CEL condition without its delimiters; None: left out, or not one."""
    value = fields.any(key)
    if value is UNSET:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str) or not value.strip():
        fields.error(key, f"'{key}' must be an expression such as {example}, {describe_value(value)}")
        return None
    return strip_delimiters(value)


def read_branch_condition(branch: FieldReader, *, is_last: bool) -> str | None:
    """When the branch of a switch runs; None: when no other does."""
    otherwise = branch.any("else")
    when = read_condition(branch, "when", "input.count > 3")
    if otherwise is UNSET:
        if branch.any("when") is UNSET:
            branch.error(
                "when", "a branch needs 'when', or 'else: true' if it is the last one; add one of them"
            )
        return when or "true"
    if otherwise is not True:
        branch.error("else", f"'else' must be true, {describe_value(otherwise)}")
    if branch.any("when") is not UNSET:
        branch.error("when", "a branch has either 'when' or 'else'; remove one of them")
    elif not is_last:
        branch.error("else", "the branch with 'else' must be the last one; move it to the end")
    return None


def branches_of(fields: FieldReader) -> list[Json]:
    """Those of a switch, as many as there may be."""
    branches = fields.list("switch") or []
    if not 1 <= len(branches) <= MAX_BRANCHES:
        fields.error("switch", f"'switch' must have 1 to {MAX_BRANCHES} branches, but it has {len(branches)}")
        return []
    return branches
