"""The rounds of a repeated block: what the next one gets of the last, and when there is none."""

from __future__ import annotations

import msgspec

from trunkline.clock import after
from trunkline.durations import parse_duration
from trunkline.jsontypes import encode
from trunkline.machine.effects import StartTimer
from trunkline.machine.events import Payload, StepCancelled, StepCompleted, StepRoundEnded
from trunkline.machine.inputs import RoundEnd, WaitDue
from trunkline.machine.state import StepState
from trunkline.machine.steps import failure
from trunkline.machine.steps.actions import MAX_INPUT_BYTES
from trunkline.machine.steps.timers import wait_timer
from trunkline.machine.turn import Turn
from trunkline.messages import StepError
from trunkline.workflow import ROUND_VARIABLE, CompiledStep, Repeat, previous

_NOTHING = {"status": "PENDING", "output": None, "error": None}
_values: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


def end_of(turn: Turn) -> RoundEnd | None:
    """How the round ends that this run is, if it is one; raises `ExpressionError`."""
    round_ = turn.state.workflow.round
    if round_ is None:
        return None
    carried = {previous(name): turn.scope(f"steps.{name}") for name in round_.carried}
    return RoundEnd(round_.until.holds(turn.scope), msgspec.Raw(encode(carried)))


def first_input(plan: CompiledStep, outside: bytes) -> bytes:
    """What the first round gets: what the block reads from outside, and nothing of a round before."""
    block = plan.block
    carried = () if block is None or block.round is None else block.round.carried
    return _input(outside, 1, {previous(name): msgspec.Raw(encode(_NOTHING)) for name in carried})


def end_round(
    turn: Turn, plan: CompiledStep, step: StepState, repeat: Repeat, run_id: str, end: RoundEnd, output: bytes
) -> None:
    """A round has completed: the step has, or another one follows, or there were enough."""
    if end.done or (step.round >= repeat.max_rounds and repeat.on_max == "continue"):
        turn.record(StepCompleted(step.name, step.attempts, Payload(output)))
    elif turn.is_ending:
        turn.record(StepCancelled(step.name, "The run is ending, so no other round starts."))
    elif step.round >= repeat.max_rounds:
        message = f"The condition of 'until' is still false after {repeat.max_rounds} rounds: {repeat.until}"
        failure.fail(turn, plan, step, StepError(code="max_rounds", message=message))
    else:
        _prepare_next(turn, plan, step, repeat, run_id, end)


def _prepare_next(
    turn: Turn, plan: CompiledStep, step: StepState, repeat: Repeat, run_id: str, end: RoundEnd
) -> None:
    text = _input(step.input or b"{}", step.round + 1, _values.decode(bytes(end.carried)))
    if len(text) > MAX_INPUT_BYTES:
        message = f"The input of the next round has {len(text)} bytes, but the limit is {MAX_INPUT_BYTES}."
        failure.fail(turn, plan, step, StepError(code="expression_failed", message=message))
        return
    delay = parse_duration(repeat.delay)
    due = after(turn.now, delay) if delay else None
    turn.record(StepRoundEnded(step.name, step.round, run_id, Payload(text), due))
    if due is not None:
        turn.add_effect(StartTimer(wait_timer(step), due, WaitDue(step.name, step.attempts)))


def _input(text: bytes, round_: int, carried: dict[str, msgspec.Raw]) -> bytes:
    return encode({**_values.decode(text), ROUND_VARIABLE: round_, **carried})
