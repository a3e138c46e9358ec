"""What a step gives to the agent or the workflow that it calls."""

from __future__ import annotations

from trunkline.jsontypes import encode
from trunkline.machine.state import StepState
from trunkline.machine.steps.failure import fail
from trunkline.machine.turn import Turn
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
