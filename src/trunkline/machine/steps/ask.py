"""
The step kind that asks people (`ask`): a human task, with its assignees, its timers and its answers.

Whether an answer fits the form and the options is checked where it is accepted: both are part of the workflow version
and never change. Here it is decided whether an answer is in time, and whether there are enough of them.
"""

from __future__ import annotations

from datetime import timedelta

from trunkline.clock import Instant, after, parse_time
from trunkline.jsontypes import Json, JsonObject, decode, encode
from trunkline.machine.effects import StartTimer
from trunkline.machine.events import Payload, StepAnswered, StepEscalated
from trunkline.machine.inputs import EscalationDue, PersonAnswered
from trunkline.machine.state import HumanTask, StepState, WaitingFor
from trunkline.machine.steps import actions
from trunkline.machine.steps.failure import fail, fail_without_call
from trunkline.machine.steps.step_input import read_input
from trunkline.machine.steps.timers import cancel_wait_timer, escalation_timer
from trunkline.machine.turn import Turn
from trunkline.messages import StepError
from trunkline.workflow import Ask, CompiledStep, format_duration, parse_duration

_NOTHING = b"null"
# What the expressions of a workflow may yield.
MAX_TITLE = 10_000
MAX_TEXT = 100_000
MAX_NAME = 255
MAX_ASSIGNEES = 100


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
    _start_escalation(turn, step)


def _waiting(asked: Json, definition: Ask, now: Instant) -> WaitingFor:
    """Raises `ValueError`."""
    if not isinstance(asked, dict):
        raise ValueError("'ask' must be an object")  # noqa: TRY004 - a wrong value of a workflow
    title, text = _text(asked, "title", MAX_TITLE), _text(asked, "text", MAX_TEXT)
    if title is None:
        raise ValueError("'title' must be a string that is not empty")
    task = HumanTask(
        title=title,
        options=definition.options,
        assignees=_people(asked.get("assignees", []), "assignees"),
        due=_due(asked, now),
        required=definition.required,
        exclude_starter=definition.exclude_starter,
        escalations=_escalations(asked.get("escalate", []), now),
    )
    timeout = _duration(asked, "timeout")
    until = None if timeout is None else after(now, timeout)
    return WaitingFor(kind="person", text=text or title, until=until, since=now, human_task=task)


def _text(asked: JsonObject, key: str, most: int) -> str | None:
    value = asked.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= most:
        raise ValueError(f"'{key}' must be a string of 1 to {most:,} characters")
    return value


def _people(value: Json, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_ASSIGNEES:
        raise ValueError(f"'{key}' must be a list of at most {MAX_ASSIGNEES} names")
    names = [each for each in value if isinstance(each, str) and 1 <= len(each) <= MAX_NAME]
    if len(names) != len(value):
        raise ValueError(f"'{key}' must be a list of names with 1 to {MAX_NAME} characters each")
    return tuple(dict.fromkeys(names))


def _duration(asked: JsonObject, key: str) -> timedelta | None:
    value = asked.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"'{key}' must be a duration such as 3d, as a string")  # noqa: TRY004 - as above
    return parse_duration(value)


def _due(asked: JsonObject, now: Instant) -> Instant | None:
    value = asked.get("due")
    if isinstance(value, str):
        try:
            return parse_time(value)
        except ValueError:
            # A duration.
            pass
    duration = _duration(asked, "due")
    return None if duration is None else after(now, duration)


def _escalations(value: Json, now: Instant) -> tuple[tuple[Instant, tuple[str, ...]], ...]:
    found: list[tuple[Instant, tuple[str, ...]]] = []
    for each in value if isinstance(value, list) else []:
        delay = _duration(each, "after") if isinstance(each, dict) else None
        if not isinstance(each, dict) or delay is None:
            raise ValueError("an escalation needs a duration in 'after'")
        found.append((after(now, delay), _people(each.get("to"), "to")))
    return tuple(sorted(found, key=lambda escalation: escalation[0]))


def _start_escalation(turn: Turn, step: StepState) -> None:
    """The next one of them, if there is one."""
    task = None if step.waiting_for is None else step.waiting_for.human_task
    if task is not None and task.next_escalation is not None:
        due, _ = task.next_escalation
        item = EscalationDue(step.name, step.attempts, task.escalated)
        turn.add_effect(StartTimer(escalation_timer(step, task), due, item))


def escalate(turn: Turn, step: StepState, due: EscalationDue) -> None:
    waiting = _open_task(step, due.attempt)
    if waiting is None or waiting.human_task is None or waiting.human_task.escalated != due.number:
        return
    escalation = waiting.human_task.next_escalation
    if escalation is not None:
        turn.record(StepEscalated(step.name, step.attempts, escalation[1]))
        _start_escalation(turn, step)


def apply_answer(turn: Turn, step: StepState, given: PersonAnswered) -> None:
    """The first answer counts, or the first answers, if the task requires several."""
    waiting = _open_task(step, given.attempt)
    if waiting is None or waiting.human_task is None:
        return
    task, answer = waiting.human_task, given.answer
    if task.required > 1 and (answer.by is None or answer.by in task.answered_by):
        return
    shown = answer.shown()
    turn.record(StepAnswered(step.name, step.attempts, answer.by, answer.answer, Payload(encode(shown))))
    answers: list[Json] = [*task.answers, shown]
    if not task.is_decided_by(answer.answer, len(answers)):
        return
    output: JsonObject = {**shown, "answers": answers} if task.required > 1 else {**shown}
    cancel_wait_timer(turn, step)
    actions.complete(turn, step, encode(output))


def _open_task(step: StepState, attempt: int) -> WaitingFor | None:
    is_open = step.status == "WAITING" and step.attempts == attempt
    return step.waiting_for if is_open else None


def end_wait(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """The time until which the step waits is over."""
    waiting, definition = step.waiting_for, plan.definition.ask
    if waiting is None or waiting.until is None or waiting.since is None or definition is None:
        return
    cancel_wait_timer(turn, step)
    if definition.on_timeout == "continue":
        actions.complete(turn, step, _NOTHING)
        return
    patience = format_duration(timedelta(microseconds=waiting.until - waiting.since))
    message = f"The task was not answered within {patience}."
    fail_without_call(turn, plan, step, StepError(code="ask_timeout", message=message))
