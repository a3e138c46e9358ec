"""
The actions of steps as they were written: what a step does that calls neither an agent nor a workflow.

Each is also the form that the store keeps, so durations and times stay text here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, cast

from msgspec import Struct, to_builtins

from trunkline.jsontypes import Json, JsonObject

StepKind = Literal["agent", "workflow", "set", "sleep", "wait_for"]
ACTION_KEYS = ("set", "sleep", "wait_for")
KIND_KEYS = ("agent", "workflow", *ACTION_KEYS)
AfterTimeout = Literal["fail", "continue"]

# The default comes first.
AFTER_TIMEOUT: tuple[AfterTimeout, ...] = ("fail", "continue")


class SleepUntil(Struct, frozen=True):
    """Sleeps until a time, in ISO 8601 with a time zone; or an expression for one."""

    until: str


# A duration, or an expression for one.
Sleep: TypeAlias = str | SleepUntil


class WaitFor(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Waits for events of a type, of any of several types, or for a signal to the run; one of these is there."""

    event: str | None = None
    any: tuple[str, ...] | None = None
    signal: str | None = None
    # What the event's key must be; left out: any, or none.
    key: str | None = None
    # CEL, without the ${ } around it, with `event` in its scope.
    match: str | None = None
    # How many events it takes.
    count: int = 1
    timeout: str | None = None
    on_timeout: AfterTimeout = "fail"

    @property
    def template(self) -> JsonObject:
        """What is evaluated when the step begins."""
        written = cast("JsonObject", to_builtins(self))
        return {key: written[key] for key in ("event", "any", "signal", "key", "timeout") if key in written}


class Actions(NamedTuple):
    """One of them is there, or none: the step calls an agent or a workflow."""

    set: dict[str, Json] | None = None
    sleep: Sleep | None = None
    wait_for: WaitFor | None = None

    @property
    def are_given(self) -> bool:
        return any(action is not None for action in self)
