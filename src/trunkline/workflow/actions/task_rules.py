"""
Reads the rules of tasks for people: whose they are, when they are due, and who else gets them.

They are part of `ask`, and of the step of an agent that may ask questions.
"""

from __future__ import annotations

from msgspec import UNSET

from trunkline.clock import parse_time
from trunkline.jsontypes import Json
from trunkline.workflow.actions.definitions import Escalation, TaskRules
from trunkline.workflow.document.locations import Path
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.secret_references import refuse_secret_references
from trunkline.workflow.validation_report import ValidationReport

RULE_KEYS = ("assignees", "only_assignees", "due", "escalate")
ESCALATION_KEYS = ("after", "to")
MAX_ASSIGNEE = 255
MAX_ASSIGNEES = 100
MAX_ESCALATIONS = 20


def read_question_rules(fields: FieldReader, report: ValidationReport) -> TaskRules | None:
    """Of a step that calls an agent: whose the agent's questions are."""
    value = fields.mapping("questions")
    if value is None:
        return None
    path = (*fields.path, "questions")
    refuse_secret_references(value, path, report)
    if not value:
        fields.error("questions", "'questions' is empty; add a rule, such as assignees: [support]")
    return read_rules(FieldReader(value, path, RULE_KEYS, report), report)


def read_rules(fields: FieldReader, report: ValidationReport) -> TaskRules:
    only_assignees = fields.boolean("only_assignees") or False
    if only_assignees and fields.any("assignees") is UNSET:
        fields.error(
            "only_assignees", "'only_assignees' needs 'assignees'; add them, such as assignees: [support]"
        )
    return TaskRules(
        assignees=_assignees(fields, "assignees", report),
        due=_due(fields),
        escalate=_escalations(fields, report),
        only_assignees=only_assignees,
    )


def _assignees(fields: FieldReader, key: str, report: ValidationReport) -> str | tuple[str, ...]:
    value = fields.any(key)
    if isinstance(value, str) and "${" in value:
        return value
    people = fields.list(key)
    if people is None:
        return ()
    if not 1 <= len(people) <= MAX_ASSIGNEES:
        fields.error(key, f"'{key}' must have 1 to {MAX_ASSIGNEES} names, but it has {len(people):,}")
        return ()
    found: list[str] = []
    for index, each in enumerate(people):
        if isinstance(each, str) and 1 <= len(each) <= MAX_ASSIGNEE:
            found.append(each)
        else:
            report.error(
                (*fields.path, key, index), f"'{key}' must list people or groups, {describe_value(each)}"
            )
    return tuple(found)


def _due(fields: FieldReader) -> str | None:
    value = fields.any("due")
    if not isinstance(value, str) or ("${" not in value and not _is_time(value)):
        fields.duration("due", positive=True)
    return value if isinstance(value, str) else None


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except ValueError:
        return False
    return True


def _escalations(fields: FieldReader, report: ValidationReport) -> tuple[Escalation, ...]:
    steps = fields.list("escalate")
    if steps is None:
        return ()
    if not 1 <= len(steps) <= MAX_ESCALATIONS:
        fields.error(
            "escalate", f"'escalate' must have 1 to {MAX_ESCALATIONS} entries, but it has {len(steps):,}"
        )
        return ()
    return tuple(
        _escalation(each, (*fields.path, "escalate", index), report) for index, each in enumerate(steps)
    )


def _escalation(value: Json, path: Path, report: ValidationReport) -> Escalation:
    if not isinstance(value, dict):
        report.error(
            path, f"an escalation must be such as {{after: 1d, to: [boss]}}, {describe_value(value)}"
        )
        return Escalation("", ())
    escalation = FieldReader(value, path, ESCALATION_KEYS, report)
    for key, example in (("after", "1d"), ("to", "[boss]")):
        if key not in value:
            report.error(path, f"'{key}' is missing; add it, such as {key}: {example}")
    return Escalation(read_duration(escalation, "after") or "", _assignees(escalation, "to", report))


def read_duration(fields: FieldReader, key: str) -> str | None:
    value = fields.any(key)
    if not isinstance(value, str) or "${" not in value:
        fields.duration(key, positive=True)
    return value if isinstance(value, str) else None
