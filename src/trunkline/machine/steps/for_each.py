"""
The step kind that is one call for each item of a list.

Each item is called like a step of its own, under a name such as `research[17]`; the step itself only knows when to go
on, when to stop, and what came of it all.
"""

from __future__ import annotations

import msgspec

from trunkline.clock import after
from trunkline.jsontypes import encode
from trunkline.machine.effects import StartTimer
from trunkline.machine.events import Payload, StepCancelled, StepCompleted, StepFannedOut
from trunkline.machine.inputs import StepDeadlinePassed
from trunkline.machine.state import ForEachState, OutputUnread, StepState
from trunkline.machine.steps import actions, failure, kinds
from trunkline.machine.turn import Turn, deadline_timer
from trunkline.messages import StepError
from trunkline.workflow import (
    CompiledForEach,
    CompiledStep,
    ExpressionError,
    format_duration,
    item_index,
    item_name,
)

MAX_ITEMS = 10_000
# The output of a step is always read as a whole.
MAX_OUTPUT_BYTES = 64 * 1024 * 1024


def begin(turn: Turn, plan: CompiledStep, step: StepState, loop: CompiledForEach) -> None:
    try:
        items = loop.items.evaluate(turn.scope)
    except ExpressionError as exc:
        failure.fail(turn, plan, step, StepError(code="expression_failed", message=str(exc)))
        return
    problem = None
    text = encode(items)
    if not isinstance(items, list):
        problem = f"'for_each' must return a list, but it returned {text[:40].decode(errors='replace')}."
    elif len(items) > MAX_ITEMS:
        problem = f"'for_each' has {len(items)} items, but the limit is {MAX_ITEMS}."
    elif len(text) > actions.MAX_INPUT_BYTES:
        problem = (
            f"The items of 'for_each' have {len(text)} bytes, but the limit is {actions.MAX_INPUT_BYTES}."
        )
    if problem is not None or not isinstance(items, list):
        failure.fail(turn, plan, step, StepError(code="expression_failed", message=problem or ""))
        return
    start_items(turn, plan, step, len(items), text)


def start_items(turn: Turn, plan: CompiledStep, step: StepState, items: int, text: bytes) -> None:
    turn.record(StepFannedOut(step.name, items, Payload(text)))
    if plan.definition.deadline is not None:
        due = after(turn.now, plan.definition.deadline)
        turn.add_effect(StartTimer(deadline_timer(step), due, StepDeadlinePassed(step.name)))


def conclude(turn: Turn, plan: CompiledStep, step: StepState, loop: CompiledForEach) -> None:
    """All items are over, or one has failed and the others need not go on."""
    iteration = turn.state.for_each.get(plan.name)
    if iteration is None:
        return
    if iteration.failed and loop.definition.on_error == "stop":
        error = _first_failure(turn, plan, iteration)
        stop_items(turn, step, "Another item failed.")
        failure.fail(turn, plan, step, error)
    elif iteration.finished == len(iteration.items) and not _was_stopped(turn, plan, iteration):
        _complete(turn, plan, step, iteration, loop)


def stop_items(turn: Turn, step: StepState, reason: str) -> None:
    """Those under way; what has not begun never will, once the step is over."""
    iteration = turn.state.for_each.get(step.name)
    # All of them: after a restart, `next_index` is behind those that had begun.
    for index in range(0 if iteration is None else len(iteration.items)):
        item = turn.state.steps.get(item_name(step.name, index))
        if item is not None and not item.is_final:
            kinds.stop(turn, item)
            turn.record(StepCancelled(item.name, reason))


def pass_deadline(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """The step has had all the time that its items may take together."""
    deadline = plan.definition.deadline
    if step.name not in turn.state.for_each or deadline is None:
        return
    stop_items(turn, step, "The step's deadline has passed.")
    message = f"The step did not finish within its deadline of {format_duration(deadline)}."
    failure.fail(turn, plan, step, StepError(code="deadline_exceeded", message=message))


def _items(turn: Turn, plan: CompiledStep, iteration: ForEachState) -> list[StepState]:
    names = (item_name(plan.name, index) for index in range(len(iteration.items)))
    return [turn.state.steps[name] for name in names if name in turn.state.steps]


def _was_stopped(turn: Turn, plan: CompiledStep, iteration: ForEachState) -> bool:
    """An item was stopped with the run: the run's end is the step's."""
    return turn.is_ending and any(item.status == "CANCELLED" for item in _items(turn, plan, iteration))


def _first_failure(turn: Turn, plan: CompiledStep, iteration: ForEachState) -> StepError:
    failed = [item for item in _items(turn, plan, iteration) if item.status == "FAILED"]
    first = min(failed, key=lambda item: (item.finished_at or 0, item_index(item.name)))
    cause = first.error
    assert cause is not None, "a failed item has an error"  # noqa: S101 - an invariant
    return StepError(
        code=cause.code,
        message=f"Item {item_index(first.name)}: {cause.message}",
        fix=cause.fix,
        fix_command=cause.fix_command,
        cause_item=item_index(first.name),
        jsonrpc_code=cause.jsonrpc_code,
        http_status=cause.http_status,
        detail=cause.detail,
    )


def _complete(
    turn: Turn, plan: CompiledStep, step: StepState, iteration: ForEachState, loop: CompiledForEach
) -> None:
    items = _items(turn, plan, iteration)
    if unread := [item.name for item in items if item.unread_output_bytes]:
        raise OutputUnread(unread)
    if loop.definition.on_error == "collect":
        outputs = [_item_result(given, item) for given, item in zip(iteration.items, items, strict=True)]
    else:
        outputs = [item.output or b"null" for item in items]
    size = sum(map(len, outputs))
    if size > MAX_OUTPUT_BYTES:
        message = f"The outputs of the items have {size} bytes in total, but the limit is {MAX_OUTPUT_BYTES}."
        failure.fail(turn, plan, step, StepError(code="output_failed", message=message))
        return
    turn.record(StepCompleted(step.name, 1, Payload(b"[" + b",".join(outputs) + b"]")))


def _item_result(given: object, item: StepState) -> bytes:
    shown: dict[str, object] = {"item": given, "status": item.status}
    if item.error is not None:
        shown["error"] = {"code": item.error.code, "message": item.error.message}
    else:
        shown["output"] = None if item.output is None else msgspec.Raw(item.output)
    return encode(shown)
