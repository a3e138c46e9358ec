"""
What a step is given, for all kinds. What the kinds without a call have in common: how they begin, wait and complete;
and the simplest, `set`.
"""

from __future__ import annotations

from trunkline.clock import after
from trunkline.jsontypes import encode
from trunkline.machine.effects import StartTimer
from trunkline.machine.events import Payload, StepBegan, StepCompleted, StepWaiting
from trunkline.machine.inputs import StepDeadlinePassed, WaitDue
from trunkline.machine.state import StepState, WaitingFor
from trunkline.machine.steps.failure import fail
from trunkline.machine.steps.timers import wait_timer
from trunkline.machine.turn import Turn, deadline_timer
from trunkline.messages import StepError
from trunkline.workflow import CompiledStep, ExpressionError

# A template that repeats a large output many times would otherwise grow without a limit; agents refuse far less.
MAX_INPUT_BYTES = 16 * 1024 * 1024


def read_input(turn: Turn, plan: CompiledStep, step: StepState) -> bytes | None:
    """What the step is given, at every attempt the same; None: the step has failed by it."""
    if step.input is not None:
        return step.input
    try:
        text = encode(plan.input.evaluate(turn.scope_of(step)))
    except ExpressionError as exc:
        fail(turn, plan, step, StepError(code="expression_failed", message=str(exc)))
        return None
    if len(text) > MAX_INPUT_BYTES:
        message = f"The step's input has {len(text)} bytes, but the limit is {MAX_INPUT_BYTES}."
        fail(turn, plan, step, StepError(code="expression_failed", message=message))
        return None
    return text


def set_values(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """Computes values: the input is the output."""
    text = read_input(turn, plan, step)
    if text is not None:
        begin(turn, plan, step, text)
        complete(turn, step, text)


def begin(turn: Turn, plan: CompiledStep, step: StepState, text: bytes) -> None:
    """Begins the next attempt; `text` is what the action says once its expressions are evaluated."""
    if plan.definition.deadline is not None and plan.for_each is None and not step.attempts:
        due = after(turn.now, plan.definition.deadline)
        turn.add_effect(StartTimer(deadline_timer(step), due, StepDeadlinePassed(step.name)))
    turn.record(StepBegan(step.name, step.attempts + 1, plan.kind, Payload(text)))


def wait(turn: Turn, step: StepState, waiting: WaitingFor) -> None:
    turn.record(StepWaiting(step.name, step.attempts, waiting))
    if waiting.until is not None:
        turn.add_effect(StartTimer(wait_timer(step), waiting.until, WaitDue(step.name, step.attempts)))


def complete(turn: Turn, step: StepState, output: bytes) -> None:
    turn.record(StepCompleted(step.name, step.attempts, Payload(output)))
