"""Reads the `event` or the `run` of a trigger, and reports everything that does not fit."""

from __future__ import annotations

import re

from trunkline.jsontypes import Json
from trunkline.triggers.definition import END_STATUSES, EndStatus, EventDefinition, RunEndDefinition
from trunkline.workflow.field_reader import FieldReader
from trunkline.workflow.validation_report import ValidationReport

EVENT_KEYS = ("type", "filter", "idempotency_key")
RUN_KEYS = ("workflow", "status", "filter")
# Like the types of `wait_for`.
MAX_TYPES = 16
MAX_TYPE = 255
MAX_EXPRESSION = 10_000
MAX_WORKFLOW_NAME = 255

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def read_event(trigger: FieldReader, report: ValidationReport) -> EventDefinition | None:
    value = trigger.mapping("event")
    if value is None:
        return None
    before = len(report.errors)
    fields = FieldReader(value, ("event",), EVENT_KEYS, report)
    definition = EventDefinition(
        types=_types(fields, value, report),
        filter=fields.text("filter", MAX_EXPRESSION),
        idempotency_key=fields.text("idempotency_key", MAX_EXPRESSION),
    )
    return definition if len(report.errors) == before else None


def _types(fields: FieldReader, value: dict[str, Json], report: ValidationReport) -> tuple[str, ...]:
    if "type" not in value:
        report.error(fields.path, "'type' is missing; add it, such as type: payment.received")
        return ()
    given = value["type"]
    listed = [given] if isinstance(given, str) else fields.list("type")
    if listed is None:
        return ()
    types = [each for each in listed if isinstance(each, str)]
    right = [each for each in types if 1 <= len(each) <= MAX_TYPE and not _CONTROL.search(each)]
    if len(right) != len(listed) or not 1 <= len(right) <= MAX_TYPES:
        fields.error(
            "type",
            f"'type' must be the type of an event, or a list of up to {MAX_TYPES} types, each with 1 to {MAX_TYPE} "
            "characters without control characters",
        )
    return tuple(dict.fromkeys(right))


def read_run_end(trigger: FieldReader, report: ValidationReport) -> RunEndDefinition | None:
    value = trigger.mapping("run")
    if value is None:
        return None
    before = len(report.errors)
    fields = FieldReader(value, ("run",), RUN_KEYS, report)
    definition = RunEndDefinition(
        workflow=fields.required_text("workflow", MAX_WORKFLOW_NAME, "import") or "",
        statuses=_statuses(fields, value),
        filter=fields.text("filter", MAX_EXPRESSION),
    )
    return definition if len(report.errors) == before else None


def _statuses(fields: FieldReader, value: dict[str, Json]) -> tuple[EndStatus, ...]:
    if "status" not in value:
        return ("COMPLETED",)
    given = value["status"]
    listed = [given] if isinstance(given, str) else fields.list("status")
    if listed is None:
        return ()
    found = {each.upper() if isinstance(each, str) else "" for each in listed}
    if not found or not found <= set(END_STATUSES):
        fields.error("status", f"'status' must be {', '.join(END_STATUSES)}, or a list of these")
    return tuple(status for status in END_STATUSES if status in found)
