"""
The actions of steps as they were written: what a step does that calls neither an agent nor a workflow.

Each is also the form that the store keeps, so durations and times stay text here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, cast

from msgspec import Struct

from trunkline.jsontypes import Json, JsonObject, decode, encode

StepKind = Literal["agent", "workflow", "steps", "set", "sleep", "wait_for", "ask"]
ACTION_KEYS = ("set", "sleep", "wait_for", "ask")
KIND_KEYS = ("agent", "skill", "workflow", "steps", *ACTION_KEYS)
AfterTimeout = Literal["fail", "continue"]

# The default comes first.
AFTER_TIMEOUT: tuple[AfterTimeout, ...] = ("fail", "continue")


def _as_json(action: Struct) -> JsonObject:
    # `to_builtins` would leave tuples, which no template looks into.
    return cast("JsonObject", decode(encode(action)))


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
        written = _as_json(self)
        return {key: written[key] for key in ("event", "any", "signal", "key", "timeout") if key in written}


class Escalation(Struct, frozen=True):
    """The additional assignees of a human task that has not been answered after `after`."""

    after: str
    # Names; or an expression for a list of them.
    to: str | tuple[str, ...]


class TaskRules(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Whose the questions of a step's agent are, and until when."""

    # As for `ask`.
    assignees: str | tuple[str, ...] = ()
    only_assignees: bool = False
    due: str | None = None
    escalate: tuple[Escalation, ...] = ()

    @property
    def template(self) -> JsonObject:
        """What is evaluated when the agent is called, and when it asks."""
        written = _as_json(self)
        return {key: written[key] for key in ("assignees", "due", "escalate") if key in written}


class Ask(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Gives people a task, and waits for their answer."""

    title: str
    text: str | None = None
    # A JSON Schema that the answer's data must satisfy.
    form: JsonObject | None = None
    # What can be answered; left out: any text.
    options: tuple[str, ...] = ()
    # Names of people and groups; or an expression for a list of them.
    assignees: str | tuple[str, ...] = ()
    # A duration or a time; afterwards, the task is overdue.
    due: str | None = None
    escalate: tuple[Escalation, ...] = ()
    timeout: str | None = None
    on_timeout: AfterTimeout = "fail"
    # How many people have to give the first of the options.
    required: int = 1
    # Whether the person who started the run cannot answer.
    exclude_starter: bool = False
    # Whether nobody but the assignees can answer.
    only_assignees: bool = False

    @property
    def template(self) -> JsonObject:
        """What is evaluated when the step begins."""
        written = _as_json(self)
        keys = ("title", "text", "assignees", "due", "escalate", "timeout")
        return {key: written[key] for key in keys if key in written}


class Actions(NamedTuple):
    """One of them is there, or none: the step calls an agent or a workflow."""

    set: dict[str, Json] | None = None
    sleep: Sleep | None = None
    wait_for: WaitFor | None = None
    ask: Ask | None = None

    @property
    def are_given(self) -> bool:
        return any(action is not None for action in self)
