"""
Reads a trigger out of a document's value, and reports everything that does not fit.

What is wrong is left out, so that one mistake is reported once and the rest is still looked at. Expressions are
compiled later (`load.py`).
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta, tzinfo

from msgspec import UnsetType

from trunkline.clock import Instant
from trunkline.durations import format_duration
from trunkline.jsontypes import Json
from trunkline.triggers.cron import MAX_CHARACTERS, CronError, check_cron
from trunkline.triggers.definition import (
    CATCH_UPS,
    DEFAULT_WINDOW,
    OVERLAPS,
    ScheduleDefinition,
    TriggerDefinition,
)
from trunkline.triggers.schedule import zone_of
from trunkline.triggers.validate_listening import read_event, read_run_end
from trunkline.triggers.validate_webhook import read_webhook
from trunkline.workflow.document.locations import ExpressionPosition
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.flow_control.definition import FLOW_KEYS, FlowControl
from trunkline.workflow.flow_control.reader import read_flow_control
from trunkline.workflow.validation_report import ValidationReport, did_you_mean

KIND = "trigger"
TRIGGER_KEYS = (
    "name",
    "description",
    "workflow",
    "version",
    "input",
    "enabled",
    "schedule",
    "webhook",
    "event",
    "run",
    *FLOW_KEYS,
    "kind",
    "$schema",
)
SCHEDULE_KEYS = (
    "cron", "every", "at", "timezone", "jitter", "overlap", "catch_up", "catch_up_window", "start", "end",
)  # fmt: skip
# What starts it: a trigger has exactly one of them.
SOURCES = ("schedule", "webhook", "event", "run")
TIMINGS = ("cron", "every", "at")

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$"
MAX_DESCRIPTION = 10_000
MAX_WORKFLOW_NAME = 255
MAX_VERSION = 2**31 - 1
MAX_TIMES = 1_000
SHORTEST_INTERVAL = timedelta(seconds=1)
LONGEST_JITTER = timedelta(hours=1)
LONGEST_WINDOW = timedelta(days=30)

_NAME = re.compile(NAME_PATTERN)
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}")
_COMMON_ZONES = (
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Los_Angeles",
    "Asia/Tokyo",
)
# What every database and calendar can hold.
_FIRST_YEAR, _LAST_YEAR = 1970, 9990


def read_trigger(value: Json, report: ValidationReport) -> TriggerDefinition | None:
    """The definition, as far as it can be read; None if something essential is missing."""
    if not isinstance(value, dict):
        report.error((), f"a trigger must be a mapping with 'name' and 'workflow', {describe_value(value)}")
        return None
    fields = FieldReader(value, (), TRIGGER_KEYS, report)
    if value.get("kind", KIND) != KIND:
        fields.error("kind", f"'kind' must be {KIND}, {describe_value(value['kind'])}")
    name = _name(fields)
    workflow = fields.required_text("workflow", MAX_WORKFLOW_NAME, "nightly-report")
    schedule = _schedule(fields, report)
    given = [source for source in SOURCES if source in value]
    if len(given) != 1:
        report.error((), f"a trigger needs exactly one of {', '.join(SOURCES)}; add schedule: {{every: 15m}}")
    enabled = fields.boolean("enabled")
    run_input = fields.any("input")
    version = fields.integer("version", 1, MAX_VERSION)
    description = fields.text("description", MAX_DESCRIPTION)
    webhook = read_webhook(fields, report)
    event, run = read_event(fields, report), read_run_end(fields, report)
    source = schedule or webhook or event or run
    flow = read_flow_control(fields, report)
    if name is None or workflow is None or len(given) != 1 or source is None or flow is None:
        return None
    return TriggerDefinition(
        name=name,
        description=description,
        workflow=workflow,
        version=version,
        input={} if isinstance(run_input, UnsetType) else run_input,
        enabled=enabled is not False,
        schedule=schedule,
        webhook=webhook,
        event=event,
        run=run,
        flow=None if flow == FlowControl() else flow,
    )


def read_schedule(value: Json, report: ValidationReport) -> ScheduleDefinition | None:
    """A schedule by itself, for a preview."""
    if not isinstance(value, dict):
        report.error((), f"a schedule must be a mapping, {describe_value(value)}")
        return None
    return _read_schedule(FieldReader(value, (), SCHEDULE_KEYS, report), value, report)


def _name(fields: FieldReader) -> str | None:
    name = fields.required_text("name", 128, "nightly")
    if name is not None and not _NAME.fullmatch(name):
        fields.error(
            "name",
            f"'{name[:40]}' is not a valid name; use letters, digits, '.', '_' and '-', and begin with a letter "
            "or a digit",
        )
        return None
    return name


def _schedule(fields: FieldReader, report: ValidationReport) -> ScheduleDefinition | None:
    schedule = fields.mapping("schedule")
    if schedule is None:
        return None
    return _read_schedule(FieldReader(schedule, ("schedule",), SCHEDULE_KEYS, report), schedule, report)


def _read_schedule(
    fields: FieldReader, value: dict[str, Json], report: ValidationReport
) -> ScheduleDefinition | None:
    before = len(report.errors)
    given = [key for key in TIMINGS if key in value]
    if len(given) != 1:
        report.error(fields.path, "a schedule needs exactly one of cron, every and at; such as every: 15m")
    zone_name, zone = _timezone(fields)
    cron = _cron(fields, report)
    every = fields.duration("every", positive=True)
    if every is not None and every < SHORTEST_INTERVAL:
        fields.error("every", f"'every' must be at least {format_duration(SHORTEST_INTERVAL)}")
    at = _times(fields, value, zone)
    jitter = _up_to(fields, "jitter", LONGEST_JITTER)
    window = _up_to(fields, "catch_up_window", LONGEST_WINDOW)
    start, end = _moment(fields, "start", zone), _moment(fields, "end", zone)
    if start is not None and end is not None and end <= start:
        fields.error("end", "'end' must be later than 'start'")
    definition = ScheduleDefinition(
        cron=cron,
        every=every,
        at=at,
        timezone=zone_name,
        jitter=jitter or timedelta(0),
        overlap=fields.choice("overlap", OVERLAPS, "skip"),
        catch_up=fields.choice("catch_up", CATCH_UPS, "last"),
        # The same object, so that a definition that names the default has the same canonical form.
        catch_up_window=DEFAULT_WINDOW if window is None or window == DEFAULT_WINDOW else window,
        start=start,
        end=end,
    )
    return definition if len(report.errors) == before else None


def _cron(fields: FieldReader, report: ValidationReport) -> str | None:
    cron = fields.text("cron", MAX_CHARACTERS)
    if cron is None:
        return None
    try:
        check_cron(cron)
    except CronError as exc:
        place = ExpressionPosition(cron, 1, exc.column)
        report.error((*fields.path, "cron"), exc.message, excerpt=place)
        return None
    return cron


def _timezone(fields: FieldReader) -> tuple[str, tzinfo]:
    name = fields.text("timezone", 64)
    if name is None:
        return "UTC", zone_of("UTC")
    with suppress(ValueError):
        # A name such as ../UTC would leave the folder of time zones.
        if _ZONE.fullmatch(name):
            # The same text as the default has, so that naming it does not change the canonical form.
            return ("UTC" if name == "UTC" else name), zone_of(name)
    hint = did_you_mean(name, _COMMON_ZONES) or "; use a name such as Europe/Berlin or UTC"
    fields.error("timezone", f"'{name}' is not a known time zone{hint}")
    return "UTC", zone_of("UTC")


def _times(fields: FieldReader, value: dict[str, Json], zone: tzinfo) -> tuple[Instant, ...] | None:
    given = value.get("at")
    listed = [given] if isinstance(given, str) else fields.list("at")
    if listed is None:
        return None
    if not 1 <= len(listed) <= MAX_TIMES:
        fields.error("at", f"'at' must have 1 to {MAX_TIMES:,} times, but it has {len(listed):,}")
        return None
    found = [_instant(fields, "at", time, zone) for time in listed]
    return tuple(sorted({time for time in found if time is not None}))


def _moment(fields: FieldReader, key: str, zone: tzinfo) -> Instant | None:
    text = fields.text(key, 64)
    return None if text is None else _instant(fields, key, text, zone)


def _instant(fields: FieldReader, key: str, text: Json, zone: tzinfo) -> Instant | None:
    """A time with an offset, or the local time of the schedule's zone."""
    try:
        time = datetime.fromisoformat(text if isinstance(text, str) else "")
    except ValueError:
        fields.error(
            key,
            f"'{key}' must be a time such as 2026-03-01T09:00:00 or 2026-03-01T09:00:00Z, {describe_value(text)}",
        )
        return None
    if not _FIRST_YEAR < time.year < _LAST_YEAR:
        fields.error(
            key, f"'{key}' must be between {_FIRST_YEAR + 1} and {_LAST_YEAR - 1}, {describe_value(text)}"
        )
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=zone)
    whole = int(time.replace(microsecond=0).timestamp())
    return Instant(whole * 1_000_000 + time.microsecond)


def _up_to(fields: FieldReader, key: str, longest: timedelta) -> timedelta | None:
    duration = fields.duration(key, positive=False)
    if duration is not None and duration > longest:
        fields.error(key, f"'{key}' must be at most {format_duration(longest)}")
        return None
    return duration
