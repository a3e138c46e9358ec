"""
Questions inside a step: which step of which run an answer is for that is given to a step with a child run.

A step whose child run waits for people knows where the questions are (`machine/child_waits.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from trunkline.errors import Conflict
from trunkline.ids import RunId
from trunkline.machine.state import InnerQuestion, StepState, WaitingFor, WaitingKind

# What a reply answers, and what a resolution does.
REPLIED: Collection[WaitingKind] = ("input", "auth", "person")
RESOLVED: Collection[WaitingKind] = ("outcome",)


class AskingStep(NamedTuple):
    run_id: RunId
    step: str


def asking_step(
    run_id: RunId, state: StepState, kinds: Collection[WaitingKind], item: str | None = None
) -> AskingStep:
    """
    The step that has asked: this one, or the one inside it. `item`: the question that is meant, as the inbox names it.

    Raises `Conflict` if several questions inside can be meant.
    """
    waiting = state.waiting_for
    if waiting is None or not state.waits_inside:
        return AskingStep(run_id, state.name)
    if item is not None:
        found = [question for question in waiting.inside if question.item == item]
        if not found:
            raise Conflict(
                f"The question {item} is not one of those that step {state.name} of run {run_id} waits for.",
                fix="List the waiting steps: trunkline inbox list.",
            )
        return AskingStep(found[0].run_id, found[0].step)
    found = [question for question in waiting.inside if question.kind in kinds]
    if len(found) > 1 or waiting.more_inside:
        raise _ambiguous(run_id, state, waiting, found)
    # Of a kind that cannot be answered like this, the step itself says so.
    question = found[0] if found else waiting.inside[0]
    return AskingStep(question.run_id, question.step)


def _ambiguous(
    run_id: RunId, state: StepState, waiting: WaitingFor, found: Collection[InnerQuestion]
) -> Conflict:
    places = ", ".join(f"step {question.step} of run {question.run_id}" for question in found)
    more = " and more" if waiting.more_inside else ""
    number = "several" if waiting.more_inside else str(len(found))
    return Conflict(
        f"{number.capitalize()} questions are open inside step {state.name} of run {run_id}: {places}{more}.",
        fix="Answer one of these steps, or name the question in `item`. List them: trunkline inbox list.",
    )
