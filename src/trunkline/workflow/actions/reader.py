"""Reads the actions of a step out of a document's value, and reports everything that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import UNSET

from trunkline.clock import parse_time
from trunkline.durations import parse_duration
from trunkline.jsontypes import Json
from trunkline.workflow.actions.ask import read_ask
from trunkline.workflow.actions.definitions import (
    ACTION_KEYS,
    AFTER_TIMEOUT,
    KIND_KEYS,
    Actions,
    AfterTimeout,
    Sleep,
    SleepUntil,
    WaitFor,
)
from trunkline.workflow.document.locations import Path
from trunkline.workflow.expressions import strip_delimiters
from trunkline.workflow.field_reader import FieldReader, describe_value
from trunkline.workflow.routing.keys import SKILL_ONLY_KEYS
from trunkline.workflow.secret_references import refuse_secret_references
from trunkline.workflow.validation_report import ValidationReport

# What is said of a call, with what to do about it where the step has an action.
CALL_ONLY_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "version": "remove it",
        "input": "remove it",
        "timeout": "use 'deadline', which applies to the step as a whole",
        "reply_timeout": "remove it",
        "questions": "remove it",
        "delivery": "remove it",
        "context": "remove it",
        "message": "remove it",
        "output_schema": "remove it",
        "repair": "remove it",
        "allow": "remove it",
        **dict.fromkeys(SKILL_ONLY_KEYS, "remove it"),
    }
)
MAX_VALUES = 1_000
MAX_TIME = 1_000
WAIT_KEYS = ("event", "any", "signal", "key", "match", "count", "timeout", "on_timeout")
MAX_EVENT_TYPE = 255
MAX_MATCH = 2_000
MAX_EVENT_TYPES = 20
# All of them are kept with the step until it has enough.
MAX_EVENTS = 100


def read_actions(fields: FieldReader, report: ValidationReport) -> Actions:
    kinds = [key for key in KIND_KEYS if fields.any(key) is not UNSET]
    # Empty, as the canonical form has it.
    if fields.any("agent") == "":
        kinds.remove("agent")
    actions = [key for key in kinds if key in ACTION_KEYS]
    if not actions:
        return Actions()
    if len(kinds) > 1:
        fields.error(kinds[1], f"a step has either '{kinds[0]}' or '{kinds[1]}'; remove one of them")
    action = actions[0]
    for key, instead in CALL_ONLY_KEYS.items():
        if fields.any(key) is not UNSET:
            fields.error(key, f"'{key}' has no effect in a step with '{action}'; {instead}")
    value = fields.any(action)
    path: Path = (*fields.path, action)
    if value is not UNSET:
        refuse_secret_references(value, path, report)
    return Actions(
        set=_set(fields) if action == "set" else None,
        sleep=_sleep(fields, report) if action == "sleep" else None,
        wait_for=_wait_for(fields, report) if action == "wait_for" else None,
        ask=read_ask(fields, report) if action == "ask" else None,
    )


def _set(fields: FieldReader) -> dict[str, Json]:
    values = fields.mapping("set")
    if values is None:
        return {}
    if not 1 <= len(values) <= MAX_VALUES:
        fields.error("set", f"'set' must have 1 to {MAX_VALUES:,} values, but it has {len(values):,}")
    return values


_SLEEP_FORMS = "a duration such as 2h, or {until: TIME}"


def _sleep(fields: FieldReader, report: ValidationReport) -> Sleep:
    value = fields.any("sleep")
    if isinstance(value, dict):
        until = FieldReader(value, (*fields.path, "sleep"), ("until",), report)
        text = until.required_text("until", MAX_TIME, "2026-12-24T08:00:00+01:00") or ""
        if text and "${" not in text:
            try:
                parse_time(text)
            except ValueError as exc:
                until.error("until", str(exc))
        return SleepUntil(text)
    if not isinstance(value, str):
        unit = f"; use {value}s" if isinstance(value, int) and not isinstance(value, bool) else ""
        shown = describe_value(None if value is UNSET else value)
        fields.error("sleep", f"'sleep' must be {_SLEEP_FORMS}, {shown}{unit}")
        return ""
    if "${" not in value:
        try:
            parse_duration(value)
        except ValueError as exc:
            fields.error("sleep", str(exc))
    return value


_SOURCES = ("event", "any", "signal")


def _wait_for(fields: FieldReader, report: ValidationReport) -> WaitFor:
    value = fields.mapping("wait_for")
    if value is None:
        return WaitFor()
    wait = FieldReader(value, (*fields.path, "wait_for"), WAIT_KEYS, report)
    given = [key for key in _SOURCES if key in value]
    if not given:
        fields.error(
            "wait_for", "'wait_for' needs 'event', 'any' or 'signal', such as event: payment.received"
        )
    for extra in given[1:]:
        wait.error(extra, f"'wait_for' has either '{given[0]}' or '{extra}'; remove one of them")
    if "signal" in value and "key" in value:
        wait.error("key", "'key' has no effect with 'signal', which belongs to one run; remove it")
    return WaitFor(
        event=wait.text("event", MAX_EVENT_TYPE),
        any=_event_types(wait, report),
        signal=wait.text("signal", MAX_EVENT_TYPE),
        key=_event_key(wait),
        match=_match(wait),
        count=wait.integer("count", 1, MAX_EVENTS) or 1,
        timeout=_timeout(wait),
        on_timeout=_on_timeout(wait),
    )


def _event_types(wait: FieldReader, report: ValidationReport) -> tuple[str, ...] | None:
    types = wait.list("any")
    if types is None:
        return None
    if not 1 <= len(types) <= MAX_EVENT_TYPES:
        wait.error("any", f"'any' must have 1 to {MAX_EVENT_TYPES} event types, but it has {len(types)}")
    found: list[str] = []
    for index, each in enumerate(types):
        if isinstance(each, str) and 1 <= len(each) <= MAX_EVENT_TYPE:
            found.append(each)
        else:
            report.error((*wait.path, "any", index), f"'any' must list event types, {describe_value(each)}")
    return tuple(found)


def _event_key(wait: FieldReader) -> str | None:
    """A number is a key, too, as events have it."""
    value = wait.any("key")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return wait.text("key", MAX_TIME)


def _match(wait: FieldReader) -> str | None:
    text = wait.text("match", MAX_MATCH)
    return None if text is None else strip_delimiters(text)


def _timeout(wait: FieldReader) -> str | None:
    value = wait.any("timeout")
    if not isinstance(value, str) or "${" not in value:
        wait.duration("timeout", positive=True)
    return value if isinstance(value, str) else None


def _on_timeout(wait: FieldReader) -> AfterTimeout:
    after: AfterTimeout = wait.choice("on_timeout", AFTER_TIMEOUT, "fail")
    if wait.any("on_timeout") is not UNSET and wait.any("timeout") is UNSET:
        wait.error("on_timeout", "'on_timeout' has no effect without 'timeout'; add it, such as timeout: 3d")
    return after
