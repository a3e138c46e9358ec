"""
Reads the action that asks people (`ask`) out of a document's value, and reports everything that does not fit.

Whether its form is a valid JSON Schema is found out where it is compiled (`compile.py`).
"""

from __future__ import annotations

from msgspec import UNSET

from trunkline.clock import parse_time
from trunkline.jsontypes import Json
from trunkline.workflow.actions.definitions import AFTER_TIMEOUT, AfterTimeout, Ask, Escalation
from trunkline.workflow.document.locations import Path
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.validation_report import ValidationReport

ASK_KEYS = (
    "title", "text", "form", "options", "assignees", "due", "escalate", "timeout", "on_timeout", "required",
    "exclude_starter",
)  # fmt: skip
ESCALATION_KEYS = ("after", "to")
MAX_TITLE = 1_000
MAX_TEXT = 50_000
MAX_OPTION = 255
MAX_OPTIONS = 50
MAX_ASSIGNEE = 255
MAX_ASSIGNEES = 100
MAX_ESCALATIONS = 20
# All of their answers are kept with the step until it has enough.
MAX_REQUIRED = 20


def read_ask(fields: FieldReader, report: ValidationReport) -> Ask | None:
    value = fields.mapping("ask")
    if value is None:
        return Ask(title="")
    ask = FieldReader(value, (*fields.path, "ask"), ASK_KEYS, report)
    return Ask(
        title=ask.required_text("title", MAX_TITLE, "Approve the order") or "",
        text=ask.text("text", MAX_TEXT),
        form=ask.mapping("form"),
        options=_options(ask, report),
        assignees=_assignees(ask, "assignees", report),
        due=_due(ask),
        escalate=_escalations(ask, report),
        timeout=_duration(ask, "timeout"),
        on_timeout=_on_timeout(ask),
        required=ask.integer("required", 1, MAX_REQUIRED) or 1,
        exclude_starter=ask.boolean("exclude_starter") or False,
    )


def _options(ask: FieldReader, report: ValidationReport) -> tuple[str, ...]:
    options = ask.list("options")
    if options is None:
        return ()
    if not 1 <= len(options) <= MAX_OPTIONS:
        ask.error("options", f"'options' must have 1 to {MAX_OPTIONS} answers, but it has {len(options):,}")
        return ()
    found: list[str] = []
    for index, each in enumerate(options):
        path: Path = (*ask.path, "options", index)
        if not isinstance(each, str) or not 1 <= len(each) <= MAX_OPTION:
            report.error(
                path, f"'options' must list strings of 1 to {MAX_OPTION} characters, {describe_value(each)}"
            )
        elif each in found:
            report.error(path, f"'options' has '{each}' twice; remove one of them")
        else:
            found.append(each)
    return tuple(found)


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


def _due(ask: FieldReader) -> str | None:
    value = ask.any("due")
    if not isinstance(value, str) or ("${" not in value and not _is_time(value)):
        ask.duration("due", positive=True)
    return value if isinstance(value, str) else None


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except ValueError:
        return False
    return True


def _escalations(ask: FieldReader, report: ValidationReport) -> tuple[Escalation, ...]:
    steps = ask.list("escalate")
    if steps is None:
        return ()
    if not 1 <= len(steps) <= MAX_ESCALATIONS:
        ask.error(
            "escalate", f"'escalate' must have 1 to {MAX_ESCALATIONS} entries, but it has {len(steps):,}"
        )
        return ()
    return tuple(
        _escalation(each, (*ask.path, "escalate", index), report) for index, each in enumerate(steps)
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
    return Escalation(_duration(escalation, "after") or "", _assignees(escalation, "to", report))


def _duration(fields: FieldReader, key: str) -> str | None:
    value = fields.any(key)
    if not isinstance(value, str) or "${" not in value:
        fields.duration(key, positive=True)
    return value if isinstance(value, str) else None


def _on_timeout(ask: FieldReader) -> AfterTimeout:
    after: AfterTimeout = ask.choice("on_timeout", AFTER_TIMEOUT, "fail")
    if ask.any("on_timeout") is not UNSET and ask.any("timeout") is UNSET:
        ask.error("on_timeout", "'on_timeout' has no effect without 'timeout'; add it, such as timeout: 3d")
    return after
