"""
Flow control as it was written: `concurrency`, `throttle`, `debounce` and `priority`, of a workflow or a trigger.

What it means for the runs that wait is decided in `triggers/flow_control.py`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import msgspec

from trunkline.durations import format_duration, parse_duration
from trunkline.jsontypes import JsonObject

# What happens to a run if as many as the limit allows have not ended.
OnLimit = Literal["queue", "drop", "cancel_oldest"]
ON_LIMITS: tuple[OnLimit, ...] = ("queue", "drop", "cancel_oldest")

FLOW_KEYS = ("concurrency", "throttle", "debounce", "priority")
PERIODS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1)}


class StartRate(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs start in a time."""

    count: int
    per: timedelta

    @property
    def text(self) -> str:
        unit = next(unit for unit, period in PERIODS.items() if period == self.per)
        return f"{self.count}/{unit}"

    @staticmethod
    def of_text(text: str) -> StartRate:
        """Of a text that was checked."""
        count, _, unit = text.partition("/")
        return StartRate(count=int(count), per=PERIODS[unit])


class Concurrency(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many runs with the same key go on at the same time."""

    # An expression over the run's input; None: all runs behind the gate have the same key.
    key: str | None = None
    limit: int
    on_limit: OnLimit = "queue"


class Debounce(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run starts when no other one with the same key has come for so long. Only the last one starts."""

    wait: timedelta
    key: str | None = None


class FlowControl(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which of the runs start, and when."""

    concurrency: Concurrency | None = None
    throttle: StartRate | None = None
    debounce: Debounce | None = None
    # Of the runs that wait, those with the highest priority start first.
    priority: int = 0

    @property
    def key(self) -> str | None:
        if self.concurrency is not None:
            return self.concurrency.key
        return None if self.debounce is None else self.debounce.key

    @property
    def holds_back(self) -> bool:
        """False: its runs start at once."""
        return self.concurrency is not None or self.throttle is not None or self.debounce is not None


def flow_control_to_json(flow: FlowControl | None) -> JsonObject:
    """The keys as they can be written in a definition; empty if there are none."""
    keys: JsonObject = {}
    if flow is None:
        return keys
    if flow.concurrency is not None:
        concurrency: JsonObject = {"limit": flow.concurrency.limit, "on_limit": flow.concurrency.on_limit}
        if flow.concurrency.key is not None:
            concurrency["key"] = flow.concurrency.key
        keys["concurrency"] = concurrency
    if flow.throttle is not None:
        keys["throttle"] = flow.throttle.text
    if flow.debounce is not None:
        debounce: JsonObject = {"wait": format_duration(flow.debounce.wait)}
        if flow.debounce.key is not None:
            debounce["key"] = flow.debounce.key
        keys["debounce"] = debounce
    if flow.priority:
        keys["priority"] = flow.priority
    return keys


class _DebounceForm(msgspec.Struct):
    wait: str
    key: str | None = None


class _FlowForm(msgspec.Struct):
    concurrency: Concurrency | None = None
    throttle: str | None = None
    debounce: _DebounceForm | None = None
    priority: int = 0


def flow_control_from_json(keys: JsonObject) -> FlowControl | None:
    """Of what `flow_control_to_json` has made. Nothing is checked."""
    form = msgspec.convert(keys, _FlowForm)
    debounce = form.debounce
    flow = FlowControl(
        concurrency=form.concurrency,
        throttle=None if form.throttle is None else StartRate.of_text(form.throttle),
        debounce=None if debounce is None else Debounce(wait=parse_duration(debounce.wait), key=debounce.key),
        priority=form.priority,
    )
    return None if flow == FlowControl() else flow
