"""
The step kind that asks people (`ask`): a human task and its answers. Whose it is, and since when, is in
`human_tasks.py`.

Whether an answer fits the form and the options is checked where it is accepted: both are part of the workflow version
and never change. Here it is decided whether an answer is in time, and whether there are enough of them.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from trunkline.clock import Instant, after
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.machine.events import Payload, StepAnswered
from trunkline.machine.inputs import PersonAnswered
from trunkline.machine.state import StepState, WaitingFor
from trunkline.machine.steps import actions, human_tasks
from trunkline.machine.steps.actions import read_input
from trunkline.machine.steps.failure import fail, fail_without_call
from trunkline.machine.steps.timers import cancel_wait_timer
from trunkline.machine.turn import Turn
from trunkline.messages import StepError
from trunkline.workflow import Ask, CompiledStep, format_duration

_NOTHING = b"null"
# What the expressions of a workflow may yield.
MAX_TITLE = 10_000
MAX_TEXT = 100_000


def begin(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    definition = plan.definition.ask
    text = read_input(turn, plan, step)
    if text is None or definition is None:
        return
    try:
        waiting = _waiting(decode(text), definition, turn.now)
    except ValueError as exc:
        message = f"The step cannot ask a person: {exc}."
        fail(turn, plan, step, StepError(code="expression_failed", message=message))
        return
    actions.begin(turn, plan, step, text)
    actions.wait(turn, step, waiting)
    human_tasks.begin(turn, step)


def _waiting(asked: Json, definition: Ask, now: Instant) -> WaitingFor:
    """Raises `ValueError`."""
    if not isinstance(asked, dict):
        raise ValueError("'ask' must be an object")  # noqa: TRY004 - a wrong value of a workflow
    title, text = _text(asked, "title", MAX_TITLE), _text(asked, "text", MAX_TEXT)
    if title is None:
        raise ValueError("'title' must be a string that is not empty")
    task = msgspec.structs.replace(
        human_tasks.read_rules(asked, now),
        title=title,
        options=definition.options,
        required=definition.required,
        exclude_starter=definition.exclude_starter,
        only_assignees=definition.only_assignees,
    )
    timeout = human_tasks.read_duration(asked, "timeout")
    until = None if timeout is None else after(now, timeout)
    return WaitingFor(kind="person", text=text or title, until=until, since=now, human_task=task)


def _text(asked: JsonObject, key: str, most: int) -> str | None:
    value = asked.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= most:
        raise ValueError(f"'{key}' must be a string of 1 to {most:,} characters")
    return value


def apply_answer(turn: Turn, step: StepState, given: PersonAnswered) -> None:
    """The first answer counts, or the first answers, if the task requires several."""
    waiting = human_tasks.open_wait(step, given.attempt)
    if waiting is None or waiting.human_task is None:
        return
    task, answer = waiting.human_task, given.answer
    if task.claimed_by not in (None, answer.by):
        return
    if task.required > 1 and (answer.by is None or answer.by in task.answered_by):
        return
    shown = answer.shown()
    turn.record(StepAnswered(step.name, step.attempts, answer.by, answer.answer, Payload(encode(shown))))
    answers: list[Json] = [*task.answers, shown]
    if not task.is_decided_by(answer.answer, len(answers)):
        if task.claimed_by is not None:
            human_tasks.list_task(turn, step)
        return
    output: JsonObject = {**shown, "answers": answers} if task.required > 1 else {**shown}
    cancel_wait_timer(turn, step)
    actions.complete(turn, step, encode(output))


def end_wait(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """The time until which the step waits is over."""
    waiting, definition = step.waiting_for, plan.definition.ask
    if waiting is None or waiting.until is None or waiting.since is None or definition is None:
        return
    cancel_wait_timer(turn, step)
    if definition.on_timeout == "continue":
        actions.complete(turn, step, _NOTHING)
        return
    waited = format_duration(timedelta(microseconds=waiting.until - waiting.since))
    message = f"The task was not answered within {waited}."
    fail_without_call(turn, plan, step, StepError(code="ask_timeout", message=message))
