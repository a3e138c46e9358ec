"""Reads the flow control of a trigger: `concurrency`, `throttle`, `debounce` and `priority`."""

from __future__ import annotations

import re
from datetime import timedelta

from trunkline.durations import format_duration, parse_duration
from trunkline.triggers.definition import Concurrency, Debounce, FlowControl
from trunkline.triggers.flow_control import ON_LIMITS, StartRate
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.validation_report import ValidationReport

FLOW_KEYS = ("concurrency", "throttle", "debounce", "priority")
CONCURRENCY_KEYS = ("key", "limit", "on_limit")
DEBOUNCE_KEYS = ("wait", "key")
MAX_LIMIT = 1_000
MAX_RATE = 1_000_000
MAX_PRIORITY = 1_000
MAX_EXPRESSION = 10_000
SHORTEST_WAIT = timedelta(seconds=1)
LONGEST_WAIT = timedelta(days=1)

_RATE = re.compile(r"([0-9]{1,7})/([smh])")
_PERIODS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1)}
_DEBOUNCE = re.compile(r"(\S+)(?:\s+by\s+(\S.*))?", re.DOTALL)


def read_flow_control(trigger: FieldReader, report: ValidationReport) -> FlowControl | None:
    before = len(report.errors)
    flow = FlowControl(
        concurrency=_concurrency(trigger, report),
        throttle=_throttle(trigger),
        debounce=_debounce(trigger, report),
        priority=trigger.integer("priority", -MAX_PRIORITY, MAX_PRIORITY) or 0,
    )
    if (
        flow.concurrency is not None
        and flow.debounce is not None
        and flow.concurrency.key != flow.debounce.key
    ):
        trigger.error("debounce", "'debounce' and 'concurrency' must have the same key, or both none")
    return flow if len(report.errors) == before else None


def _concurrency(trigger: FieldReader, report: ValidationReport) -> Concurrency | None:
    value = trigger.mapping("concurrency")
    if value is None:
        return None
    fields = FieldReader(value, ("concurrency",), CONCURRENCY_KEYS, report)
    limit = fields.integer("limit", 1, MAX_LIMIT)
    if "limit" not in value:
        report.error(fields.path, "'limit' is missing; add it, such as limit: 1")
    return Concurrency(
        key=fields.text("key", MAX_EXPRESSION),
        limit=limit or 1,
        on_limit=fields.choice("on_limit", ON_LIMITS, "queue"),
    )


def _throttle(trigger: FieldReader) -> StartRate | None:
    text = trigger.text("throttle", 20)
    if text is None:
        return None
    match = _RATE.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= MAX_RATE:
        trigger.error(
            "throttle",
            f"'throttle' must be runs per second, minute or hour, such as 10/m, but it is '{text}'",
        )
        return None
    return StartRate(count=int(match[1]), per=_PERIODS[match[2]])


def _debounce(trigger: FieldReader, report: ValidationReport) -> Debounce | None:
    value = trigger.any("debounce")
    if isinstance(value, dict):
        fields = FieldReader(value, ("debounce",), DEBOUNCE_KEYS, report)
        wait, key = fields.duration("wait", positive=True), fields.text("key", MAX_EXPRESSION)
        if "wait" not in value:
            report.error(fields.path, "'wait' is missing; add it, such as wait: 30s")
    elif isinstance(value, str):
        match = _DEBOUNCE.fullmatch(value.strip())
        try:
            wait, key = (parse_duration(match[1]), match[2]) if match is not None else (None, None)
        except ValueError:
            wait, key = None, None
        if wait is None:
            trigger.error(
                "debounce",
                f"'debounce' must be such as 30s or 30s by input.customer, {describe_value(value)}",
            )
    elif "debounce" in trigger:
        trigger.mapping("debounce")
        return None
    else:
        return None
    if wait is None:
        return None
    if not SHORTEST_WAIT <= wait <= LONGEST_WAIT:
        shortest, longest = format_duration(SHORTEST_WAIT), format_duration(LONGEST_WAIT)
        trigger.error("debounce", f"'debounce' must wait {shortest} to {longest}")
        return None
    return Debounce(wait=wait, key=key)
