"""Reads and compiles the flow control of a workflow or a trigger: `concurrency`, `throttle`, `debounce`, `priority`."""

from __future__ import annotations

import re
from datetime import timedelta

from trunkline.durations import format_duration, parse_duration
from trunkline.workflow.expressions import CelCompiler, Template, TemplateCompiler
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.flow_control.definition import (
    ON_LIMITS,
    PERIODS,
    Concurrency,
    Debounce,
    FlowControl,
    StartRate,
)
from trunkline.workflow.validation_report import ValidationReport

CONCURRENCY_KEYS = ("key", "limit", "on_limit")
DEBOUNCE_KEYS = ("wait", "key")
MAX_LIMIT = 1_000
MAX_RATE = 1_000_000
MAX_PRIORITY = 1_000
MAX_EXPRESSION = 10_000
SHORTEST_WAIT = timedelta(seconds=1)
LONGEST_WAIT = timedelta(days=1)

_RATE = re.compile(r"([0-9]{1,7})/([smh])")
_DEBOUNCE = re.compile(r"(\S+)(?:\s+by\s+(\S.*))?", re.DOTALL)


def read_flow_control(fields: FieldReader, report: ValidationReport) -> FlowControl | None:
    before = len(report.errors)
    flow = FlowControl(
        concurrency=_concurrency(fields, report),
        throttle=_throttle(fields),
        debounce=_debounce(fields, report),
        priority=fields.integer("priority", -MAX_PRIORITY, MAX_PRIORITY) or 0,
    )
    if (
        flow.concurrency is not None
        and flow.debounce is not None
        and flow.concurrency.key != flow.debounce.key
    ):
        fields.error("debounce", "'debounce' and 'concurrency' must have the same key, or both none")
    return flow if len(report.errors) == before else None


def _concurrency(fields: FieldReader, report: ValidationReport) -> Concurrency | None:
    value = fields.mapping("concurrency")
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


def _throttle(fields: FieldReader) -> StartRate | None:
    text = fields.text("throttle", 20)
    if text is None:
        return None
    match = _RATE.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= MAX_RATE:
        fields.error(
            "throttle",
            f"'throttle' must be runs per second, minute or hour, such as 10/m, but it is '{text}'",
        )
        return None
    return StartRate(count=int(match[1]), per=PERIODS[match[2]])


def _debounce(fields: FieldReader, report: ValidationReport) -> Debounce | None:
    value = fields.any("debounce")
    if isinstance(value, dict):
        inner = FieldReader(value, ("debounce",), DEBOUNCE_KEYS, report)
        wait, key = inner.duration("wait", positive=True), inner.text("key", MAX_EXPRESSION)
        if "wait" not in value:
            report.error(inner.path, "'wait' is missing; add it, such as wait: 30s")
    elif isinstance(value, str):
        match = _DEBOUNCE.fullmatch(value.strip())
        try:
            wait, key = (parse_duration(match[1]), match[2]) if match is not None else (None, None)
        except ValueError:
            wait, key = None, None
        if wait is None:
            fields.error(
                "debounce",
                f"'debounce' must be such as 30s or 30s by input.customer, {describe_value(value)}",
            )
    elif "debounce" in fields:
        fields.mapping("debounce")
        return None
    else:
        return None
    if wait is None:
        return None
    if not SHORTEST_WAIT <= wait <= LONGEST_WAIT:
        shortest, longest = format_duration(SHORTEST_WAIT), format_duration(LONGEST_WAIT)
        fields.error("debounce", f"'debounce' must wait {shortest} to {longest}")
        return None
    return Debounce(wait=wait, key=key)


def compile_flow_key(flow: FlowControl | None, report: ValidationReport) -> Template | None:
    """The expression by which runs count together; None: all of them do."""
    if flow is None or flow.key is None:
        return None
    text = flow.key if "${" in flow.key else f"${{{flow.key}}}"
    where = ("debounce",) if flow.concurrency is None else ("concurrency", "key")
    template, _ = TemplateCompiler(CelCompiler((), ("input",)), report).template(text, where)
    return template
