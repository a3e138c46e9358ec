"""
Reads the action that asks people (`ask`) out of a document's value, and reports everything that does not fit.

Whether its form is a valid JSON Schema is found out where it is compiled (`compile.py`).
"""

from __future__ import annotations

from msgspec import UNSET

from trunkline.workflow.actions.definitions import AFTER_TIMEOUT, AfterTimeout, Ask
from trunkline.workflow.actions.task_rules import RULE_KEYS, read_duration, read_rules
from trunkline.workflow.document.locations import Path
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.validation_report import ValidationReport

ASK_KEYS = (
    "title", "text", "form", "options", *RULE_KEYS, "timeout", "on_timeout", "required", "exclude_starter",
)  # fmt: skip
MAX_TITLE = 1_000
MAX_TEXT = 50_000
MAX_OPTION = 255
MAX_OPTIONS = 50
# All of their answers are kept with the step until it has enough.
MAX_REQUIRED = 20


def read_ask(fields: FieldReader, report: ValidationReport) -> Ask | None:
    value = fields.mapping("ask")
    if value is None:
        return Ask(title="")
    ask = FieldReader(value, (*fields.path, "ask"), ASK_KEYS, report)
    rules = read_rules(ask, report)
    return Ask(
        title=ask.required_text("title", MAX_TITLE, "Approve the order") or "",
        text=ask.text("text", MAX_TEXT),
        form=ask.mapping("form"),
        options=_options(ask, report),
        assignees=rules.assignees,
        due=rules.due,
        escalate=rules.escalate,
        timeout=read_duration(ask, "timeout"),
        on_timeout=_on_timeout(ask),
        required=ask.integer("required", 1, MAX_REQUIRED) or 1,
        exclude_starter=ask.boolean("exclude_starter") or False,
        only_assignees=rules.only_assignees,
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


def _on_timeout(ask: FieldReader) -> AfterTimeout:
    after: AfterTimeout = ask.choice("on_timeout", AFTER_TIMEOUT, "fail")
    if ask.any("on_timeout") is not UNSET and ask.any("timeout") is UNSET:
        ask.error("on_timeout", "'on_timeout' has no effect without 'timeout'; add it, such as timeout: 3d")
    return after
