"""
Which changes of runs subscriptions can report, from what turns have recorded.

An event carries what a receiver needs to decide what to do, and short outputs. Long ones are left out: REST has them.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence

import msgspec

from trunkline.clock import rfc3339
from trunkline.ids import question_id
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.machine.events import (
    Event,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunWaiting,
    StepEscalated,
    StepEventBase,
    StepFailed,
    StepOutcomeUnknown,
    StepWaiting,
    shown_human_task,
)
from trunkline.machine.state import StepState, WaitingFor
from trunkline.machine.turn import Turn
from trunkline.messages import StepError
from trunkline.services.subscriptions.definition import ChangeType
from trunkline.services.subscriptions.reporter import Change, ChangeReporter, RunSubject
from trunkline.stores.base import Transaction

# Of an output or a text in an event.
MAX_PAYLOAD_BYTES = 64 * 1024

_TYPES: dict[type[Event], ChangeType] = {
    RunCompleted: "run.completed",
    RunFailed: "run.failed",
    RunCancelled: "run.cancelled",
    RunWaiting: "run.waiting",
    StepFailed: "step.failed",
    StepWaiting: "question.asked",
    StepOutcomeUnknown: "question.asked",
    StepEscalated: "question.escalated",
}


async def report_turns(tx: Transaction, reporter: ChangeReporter, turns: Sequence[Turn]) -> None:
    """In the transaction that writes these turns."""
    wanted = await reporter.wanted_types(tx)
    if wanted:
        await reporter.report(tx, [change for turn in turns for change in _changes(turn, wanted)])


def _changes(turn: Turn, wanted: Collection[str]) -> Generator[Change]:
    state = turn.state
    seq = state.seq - len(turn.events)
    for event in turn.events:
        seq += 1
        type_ = _TYPES.get(type(event))
        if type_ is None or type_ not in wanted:
            continue
        if state.block is not None and type_.startswith("run."):
            # A block is a part of a run, which has changes of its own.
            continue
        data = _data(turn, event)
        if data is not None:
            run = RunSubject(state.id, state.workflow.definition.name, seq)
            yield Change(type_, state.id, {**_run(turn), **data}, run)


def _run(turn: Turn) -> JsonObject:
    state = turn.state
    return {
        "run_id": state.id,
        "workflow": state.workflow.definition.name,
        "correlation_id": state.correlation_id,
        "started_by": state.started_by,
        "created_at": rfc3339(state.created_at),
    }


def _data(turn: Turn, event: Event) -> JsonObject | None:
    """None: it is not of a type that is reported."""
    match event:
        case RunCompleted(output):
            return {"status": "COMPLETED", **_payload("output", output.text)}
        case RunFailed(error):
            return {"status": "FAILED", "error": _error(error)}
        case RunCancelled():
            return {"status": "CANCELLED"}
        case RunWaiting(steps):
            return {"status": "WAITING", "steps": list(steps)}
        case StepFailed():
            failed = {"step": event.step, "attempt": event.attempt, "handled": event.handled}
            return {**failed, "error": _error(event.error)}
        case StepWaiting():
            if not event.waiting_for.is_for_a_person:
                return None
            return _question(turn, event, event.attempt, event.waiting_for)
        case StepOutcomeUnknown():
            waiting = WaitingFor(kind="outcome", text=event.error.message)
            return _question(turn, event, event.attempt, waiting)
        case StepEscalated():
            step = turn.changed[event.step]
            # It was answered in the same turn.
            if step.waiting_for is None:
                return None
            asked = _question(turn, event, event.attempt, step.waiting_for)
            return {**asked, "to": list(event.to)}
        case _:
            return None


def _question(turn: Turn, event: StepEventBase, attempt: int, waiting: WaitingFor) -> JsonObject:
    step: StepState = turn.changed[event.step]
    question: JsonObject = {
        "step": event.step,
        "item": question_id(turn.state.id, event.step, attempt, step.replies),
        "kind": waiting.kind,
        **_payload("text", encode(waiting.text)),
        "until": None if waiting.until is None else rfc3339(waiting.until),
    }
    if waiting.human_task is not None:
        shown: Json = msgspec.to_builtins(shown_human_task(waiting.human_task))
        question |= shown if isinstance(shown, dict) else {}
        # Each may be as long as an answer.
        del question["answers"]
    return question


def _payload(name: str, text: bytes) -> JsonObject:
    if len(text) > MAX_PAYLOAD_BYTES:
        return {name: None, f"{name}_bytes": len(text)}
    return {name: decode(text)}


def _error(error: StepError) -> JsonObject:
    shown: JsonObject = {"code": error.code, "message": error.message[:MAX_PAYLOAD_BYTES], "fix": error.fix}
    optional = {"step": error.step, "attempt": error.attempt, "http_status": error.http_status}
    return shown | {name: value for name, value in optional.items() if value is not None}
