"""
Steps that reuse the output of an equal step: the lookup before a step begins, and what follows from it.

The cache is outside. `ClaimOutput` asks for an output, or for the lead: of several steps that need the same one, one
does the work, and the others wait for it. The answer comes back as an input, so a repetition of the decision has the
same result. What ends a claim is in `turn.py`, because it can be any event.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta

from trunkline.clock import after
from trunkline.jsontypes import Json, encode
from trunkline.machine.effects import ClaimOutput, StartTimer
from trunkline.machine.events import (
    Payload,
    StepFromCache,
    StepOutputClaimed,
    StepOutputSought,
    StepRequeued,
)
from trunkline.machine.inputs import OutputLookedUp, WaitDue
from trunkline.machine.state import StepState, WaitingFor
from trunkline.machine.steps.failure import fail
from trunkline.machine.steps.timers import cache_timer, start_step_deadline
from trunkline.machine.turn import Turn
from trunkline.messages import StepError
from trunkline.workflow import CompiledStep, ExpressionError, block_path

_TEXT = "The cache is searched, or an equal step is running and its output will be used."
# A step that waits asks again: whatever has happened to the step that it waits for, it goes on.
_ASK_AGAIN_AFTER = timedelta(minutes=5)


def must_ask(plan: CompiledStep, step: StepState) -> bool:
    """Whether an output is looked up before the step does its work."""
    if plan.cache_key is None or step.attempts or step.round:
        return False
    use = step.call_details.cache
    # An input that a person has given is not in the key.
    return step.input is None if use is None else use.stage == "left"


def ask(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    assert plan.cache_key is not None, "only a step with a cache asks it"  # noqa: S101 - an invariant
    try:
        key = plan.cache_key.evaluate(turn.scope_of(step))
    except ExpressionError as exc:
        fail(turn, plan, step, StepError(code="expression_failed", message=str(exc)))
        return
    digest = _digest(turn, plan, key)
    use = step.call_details.cache
    if use is None:
        start_step_deadline(turn, plan, step)
    _seek(turn, step, digest, 1 if use is None else use.number + 1)


def _seek(turn: Turn, step: StepState, digest: str, number: int) -> None:
    waiting = WaitingFor(kind="cache", text=_TEXT, since=turn.now)
    turn.record(StepOutputSought(step.name, waiting, digest, number))
    turn.add_effect(ClaimOutput(step.name, number, digest))
    again = WaitDue(step.name, step.attempts)
    turn.add_effect(StartTimer(cache_timer(step), after(turn.now, _ASK_AGAIN_AFTER), again))


def ask_again(turn: Turn, step: StepState) -> None:
    """The step has waited for long, or what it waits for can be had."""
    use = step.call_details.cache
    if use is None or use.stage != "waiting":
        return
    turn.cancel_timer(cache_timer(step))
    _seek(turn, step, use.digest, use.number + 1)


def take(turn: Turn, step: StepState, found: OutputLookedUp) -> bool:
    """What the lookup has found; True: the step is to do its work now."""
    use = step.call_details.cache
    if use is None or use.stage != "waiting" or use.number != found.number:
        return False
    if found.outcome == "again":
        ask_again(turn, step)
        return False
    turn.cancel_timer(cache_timer(step))
    if found.cached is not None:
        cached = found.cached
        turn.record(
            StepFromCache(step.name, Payload(bytes(cached.output)), cached.run_id, cached.step, cached.at)
        )
        return False
    turn.record(StepOutputClaimed(step.name, leads=found.outcome == "lead"))
    if turn.state.paused or turn.is_ending:
        turn.record(StepRequeued(step.name))
        return False
    return True


def _digest(turn: Turn, plan: CompiledStep, key: Json) -> str:
    """The same for steps that share an output, and only for them."""
    definition, state = plan.definition, turn.state
    assert definition.cache is not None, "only a step with a cache has a key"  # noqa: S101 - an invariant
    shared: list[Json] = [definition.cache.scope]
    match definition.cache.scope:
        case "workflow":
            workflow = state.workflow.definition.name
            if state.workflow_key is not None:
                workflow = state.workflow_key.workflow_id
            called = definition.agent or definition.workflow
            # What has no name is the same only in the same place.
            place: Json = ["step", block_path(state.block, plan.name)] if not called else [plan.kind, called]
            shared += [workflow, place]
        case "agent":
            shared.append(definition.agent)
        case "global":
            pass
    # An output that was checked otherwise, or not at all, is another one.
    return hashlib.sha256(encode([*shared, definition.output_schema, key])).hexdigest()
