"""
The step kind that waits for events (`wait_for`).

The store looks for events: for those that have arrived since the run was accepted when the step begins to wait, and for
waiting steps when an event arrives. What it finds comes as inputs; here it is decided whether an event is meant, and
whether another step of the run has taken it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import msgspec

from trunkline.clock import after
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.machine.effects import AwaitEvents
from trunkline.machine.events import Payload, StepEventTaken
from trunkline.machine.inputs import EventArrived, EventsRead, event_identity
from trunkline.machine.scope import EventScope
from trunkline.machine.state import RunState, StepState, WaitingFor
from trunkline.machine.steps import actions
from trunkline.machine.steps.actions import read_input
from trunkline.machine.steps.failure import fail, fail_without_call
from trunkline.machine.steps.timers import cancel_wait_timer
from trunkline.machine.turn import Turn
from trunkline.messages import StepError
from trunkline.workflow import CompiledStep, ExpressionError, format_duration, parse_duration

_NOTHING = b"null"
MAX_TYPE = 255
MAX_TYPES = 20
MAX_KEY = 1_000


class _Wanted(NamedTuple):
    types: tuple[str, ...]
    is_signal: bool
    key: str | None
    timeout: timedelta | None


def begin(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    text = read_input(turn, plan, step)
    if text is None:
        return
    try:
        wanted = _wanted(decode(text))
    except ValueError as exc:
        message = f"The step cannot wait for an event: {exc}."
        fail(turn, plan, step, StepError(code="expression_failed", message=message))
        return
    actions.begin(turn, plan, step, text)
    waiting = WaitingFor(
        kind="event",
        text=f"Waits for {_words(wanted)}.",
        until=None if wanted.timeout is None else after(turn.now, wanted.timeout),
        since=turn.now,
        events=wanted.types,
        signal=wanted.is_signal,
        key=wanted.key,
    )
    actions.wait(turn, step, waiting)
    turn.add_effect(AwaitEvents(step.name, step.attempts, wanted.types, wanted.key, wanted.is_signal))


def _wanted(value: Json) -> _Wanted:
    """Raises `ValueError`."""
    if not isinstance(value, dict):
        raise ValueError("'wait_for' must be an object")  # noqa: TRY004 - a wrong value of a workflow
    match value:
        case {"signal": signal}:
            types, is_signal = [signal], True
        case {"any": list(several)}:
            types, is_signal = several, False
        case _:
            types, is_signal = [value.get("event")], False
    names = tuple(each for each in types if isinstance(each, str) and 1 <= len(each) <= MAX_TYPE)
    if len(names) != len(types) or not 1 <= len(names) <= MAX_TYPES:
        raise ValueError(f"the type must be a string of 1 to {MAX_TYPE} characters")
    timeout = value.get("timeout")
    if timeout is not None and not isinstance(timeout, str):
        raise ValueError("'timeout' must be a duration such as 3d, as a string")
    key = event_key(value["key"]) if "key" in value else None
    return _Wanted(names, is_signal, key, None if timeout is None else parse_duration(timeout))


def event_key(value: Json) -> str:
    """The key of an event, where a number is one, too; raises `ValueError`."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_KEY:
        raise ValueError(f"'key' must be a string of 1 to {MAX_KEY:,} characters, or a whole number")
    return value


def _words(wanted: _Wanted) -> str:
    if wanted.is_signal:
        return f"the signal {wanted.types[0]}"
    what = f"the event {wanted.types[0]}" if len(wanted.types) == 1 else f"any of {', '.join(wanted.types)}"
    return what if wanted.key is None else f"{what} with the key {wanted.key}"


def apply_event(turn: Turn, plan: CompiledStep, step: StepState, arrived: EventArrived) -> None:
    waiting = step.waiting_for
    if not _waits(step, arrived.attempt) or waiting is None or plan.definition.wait_for is None:
        return
    shown = arrived.event.shown()
    taken, identity = _taken(turn.state), (arrived.event.id, str(shown["at"]))
    if identity in taken or not _is_meant(turn, plan, step, shown, arrived.event.source):
        return
    taken.add(identity)
    received = [*(waiting.data if isinstance(waiting.data, list) else []), shown]
    count = plan.definition.wait_for.count
    if len(received) < count:
        turn.record(StepEventTaken(step.name, step.attempts, arrived.event.id, Payload(encode(shown))))
        return
    cancel_wait_timer(turn, step)
    turn.state.taken_events = taken
    actions.complete(turn, step, encode(shown if count == 1 else received))


def _is_meant(turn: Turn, plan: CompiledStep, step: StepState, shown: JsonObject, source: str) -> bool:
    if plan.match is None:
        return True
    try:
        return plan.match.holds(EventScope(turn.scope_of(step), {**shown, "source": source}))
    except ExpressionError:
        # The sender of an event must not be able to fail a run.
        return False


def read_on(turn: Turn, step: StepState, read: EventsRead) -> None:
    """Of what had arrived earlier, a part has been looked at."""
    waiting = step.waiting_for
    if _waits(step, read.attempt) and waiting is not None:
        turn.add_effect(
            AwaitEvents(step.name, step.attempts, waiting.events, waiting.key, waiting.signal, read.last)
        )


def _waits(step: StepState, attempt: int) -> bool:
    return step.status == "WAITING" and step.attempts == attempt and step.waits_for_events


def end_wait(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """The time until which the step waits is over."""
    waiting, definition = step.waiting_for, plan.definition.wait_for
    if waiting is None or waiting.until is None or waiting.since is None or definition is None:
        return
    cancel_wait_timer(turn, step)
    if definition.on_timeout == "continue":
        actions.complete(turn, step, _NOTHING)
        return
    timeout = format_duration(timedelta(microseconds=waiting.until - waiting.since))
    what = "The signal" if waiting.signal else "The event"
    message = f"{what} {' or '.join(waiting.events)} did not arrive within {timeout}."
    fail_without_call(turn, plan, step, StepError(code="wait_timeout", message=message))


def _taken(state: RunState) -> set[tuple[str, str]]:
    """The events that steps of the run have taken: each is taken by one step."""
    if state.taken_events is None:
        state.taken_events = set()
        for step in state.steps.values():
            plan = state.workflow.plan(step.name)
            if plan.kind == "wait_for" and (plan.for_each is None or step.name != plan.name):
                state.taken_events.update(_taken_by(step))
    return state.taken_events


def _taken_by(step: StepState) -> list[tuple[str, str]]:
    given: Json = None
    if step.status == "COMPLETED" and (output := step.read_output()) is not None:
        try:
            given = decode(output)
        except msgspec.DecodeError:
            # A retried run takes over what another one has put out.
            given = None
    elif step.waits_for_events and step.waiting_for is not None:
        given = step.waiting_for.data
    found = map(event_identity, given if isinstance(given, list) else [given])
    return [identity for identity in found if identity is not None]
