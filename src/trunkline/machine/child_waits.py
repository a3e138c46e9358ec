"""
What a child run tells its parent while it goes on: that it waits for people alone, for what, and that it does no more.

The parent's step then waits as well, and so on up to the run that a person has started. Each of them knows the step
that asks, so that an answer finds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest

import msgspec

from trunkline.ids import RunId, question_id
from trunkline.jsontypes import encode
from trunkline.machine.events import RunCancelRequested, RunContinued, RunResumed
from trunkline.machine.inputs import ChildContinued, ChildWaiting
from trunkline.machine.state import InnerQuestion, ParentStep, RunState, StepState, WaitingFor, asked_at
from trunkline.machine.turn import Turn

# Of those that a run waits for: the rest follows when these are answered.
MAX_QUESTIONS = 10
# Each run above the question keeps the text; the whole of it is in the step that asks.
MAX_TEXT = 16_000
MAX_DATA_BYTES = 64 * 1024
# Of a question in the list of them.
MAX_LISTED_TEXT = 200


def news_for_parent(turn: Turn, parent: ParentStep) -> ChildWaiting | ChildContinued | None:
    """What this turn means for the step that has begun the run; the end of the run is not dealt with here."""
    state = turn.state
    if state.status == "WAITING" and turn.events:
        summary = _summary(state)
        return None if summary is None else ChildWaiting(parent.step, state.id, summary)
    goes_on = any(isinstance(event, RunContinued | RunResumed | RunCancelRequested) for event in turn.events)
    if not goes_on or state.status != "RUNNING":
        return None
    return ChildContinued(parent.step, state.id)


def _summary(state: RunState) -> WaitingFor | None:
    """What the run waits for, as that of the parent's step: agents, which its caller can answer, come first."""
    asking = nsmallest(MAX_QUESTIONS + 1, _asking(state.steps.values()), key=_urgency)
    if not asking:
        return None
    asked = asking[0][1]
    inside: list[InnerQuestion] = []
    is_cut = False
    for step, waiting in asking:
        inside += waiting.inside or [_question(state.id, step, waiting)]
        is_cut = is_cut or waiting.more_inside
    task = asked.human_task
    return WaitingFor(
        kind=asked.kind,
        text=_cut(asked.text, MAX_TEXT),
        until=asked.until,
        since=asked.since,
        data=asked.data if len(encode(asked.data)) <= MAX_DATA_BYTES else None,
        human_task=None if task is None else msgspec.structs.replace(task, escalations=(), answers=()),
        inside=tuple(inside[:MAX_QUESTIONS]),
        more_inside=is_cut or len(inside) > MAX_QUESTIONS,
    )


def _asking(steps: Iterable[StepState]) -> Iterable[tuple[StepState, WaitingFor]]:
    for step in steps:
        waiting = step.waiting_for
        if waiting is not None and (waiting.inside or waiting.is_for_a_person):
            yield step, waiting


def _urgency(asking: tuple[StepState, WaitingFor]) -> tuple[bool, tuple[int, str]]:
    step, waiting = asking
    return not waiting.is_of_an_agent, asked_at(step)


def _question(run_id: RunId, step: StepState, waiting: WaitingFor) -> InnerQuestion:
    item = question_id(run_id, step.name, step.attempts, step.replies)
    return InnerQuestion(
        run_id=run_id, step=step.name, item=item, kind=waiting.kind, text=_cut(waiting.text, MAX_LISTED_TEXT)
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
