"""The step kind that waits for a time (`sleep`): a durable timer."""

from __future__ import annotations

from trunkline.clock import Instant, after, parse_time, rfc3339
from trunkline.jsontypes import Json, decode
from trunkline.machine.state import StepState, WaitingFor
from trunkline.machine.steps import actions
from trunkline.machine.steps.actions import read_input
from trunkline.machine.steps.failure import fail
from trunkline.machine.turn import Turn
from trunkline.messages import StepError
from trunkline.workflow import CompiledStep, parse_duration

_NOTHING = b"null"


def begin(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    text = read_input(turn, plan, step)
    if text is None:
        return
    try:
        until = _end(decode(text), turn.now)
    except ValueError as exc:
        fail(turn, plan, step, StepError(code="expression_failed", message=f"The step cannot sleep: {exc}."))
        return
    actions.begin(turn, plan, step, text)
    if until <= turn.now:
        actions.complete(turn, step, _NOTHING)
    else:
        text_of_wait = f"Sleeps until {rfc3339(until)}."
        actions.wait(turn, step, WaitingFor(kind="time", text=text_of_wait, until=until, since=turn.now))


def end_wait(turn: Turn, step: StepState) -> None:
    actions.complete(turn, step, _NOTHING)


def _end(sleep: Json, now: Instant) -> Instant:
    """Raises `ValueError`."""
    match sleep:
        case str():
            return after(now, parse_duration(sleep))
        case {"until": str(until)}:
            return parse_time(until)
        case {"until": _}:
            raise ValueError("'until' must be a time in ISO 8601, as a string")
        case _:
            raise ValueError("'sleep' must be a duration such as 2h, as a string")
