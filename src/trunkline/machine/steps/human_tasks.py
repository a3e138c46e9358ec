"""
What all waits for people have in common: whose task it is, until when, who else gets it, and who works on it.

The rules are those of `ask`, or those that a step has for its agent's questions. What counts as an answer is in
`ask.py` and in `agent.py`.
"""

from __future__ import annotations

from datetime import timedelta

from trunkline.clock import Instant, after, parse_time
from trunkline.jsontypes import Json, JsonObject
from trunkline.machine.effects import ListTask, StartTimer, UnlistTask
from trunkline.machine.events import StepClaimed, StepEscalated, StepReleased
from trunkline.machine.inputs import EscalationDue, TaskClaimed, TaskReleased
from trunkline.machine.state import HumanTask, StepState, WaitingFor
from trunkline.machine.steps.timers import escalation_timer
from trunkline.machine.turn import Turn
from trunkline.workflow import parse_duration

# What the expressions of a workflow may yield.
MAX_NAME = 255
MAX_ASSIGNEES = 100


def read_rules(asked: JsonObject, now: Instant) -> HumanTask:
    """Assignees, due time and escalations of a task that begins now; raises `ValueError`."""
    return HumanTask(
        assignees=_people(asked.get("assignees", []), "assignees"),
        due=_due(asked, now),
        escalations=_escalations(asked.get("escalate", []), now),
    )


def _people(value: Json, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_ASSIGNEES:
        raise ValueError(f"'{key}' must be a list of at most {MAX_ASSIGNEES} names")
    names = [each for each in value if isinstance(each, str) and 1 <= len(each) <= MAX_NAME]
    if len(names) != len(value):
        raise ValueError(f"'{key}' must be a list of names with 1 to {MAX_NAME} characters each")
    return tuple(dict.fromkeys(names))


def read_duration(asked: JsonObject, key: str) -> timedelta | None:
    """Raises `ValueError`."""
    value = asked.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"'{key}' must be a duration such as 3d, as a string")  # noqa: TRY004 - a wrong value of a workflow
    return parse_duration(value)


def _due(asked: JsonObject, now: Instant) -> Instant | None:
    value = asked.get("due")
    if isinstance(value, str):
        try:
            return parse_time(value)
        except ValueError:
            # A duration.
            pass
    duration = read_duration(asked, "due")
    return None if duration is None else after(now, duration)


def _escalations(value: Json, now: Instant) -> tuple[tuple[Instant, tuple[str, ...]], ...]:
    found: list[tuple[Instant, tuple[str, ...]]] = []
    for each in value if isinstance(value, list) else []:
        delay = read_duration(each, "after") if isinstance(each, dict) else None
        if not isinstance(each, dict) or delay is None:
            raise ValueError("an escalation needs a duration in 'after'")
        found.append((after(now, delay), _people(each.get("to"), "to")))
    return tuple(sorted(found, key=lambda escalation: escalation[0]))


def begin(turn: Turn, step: StepState) -> None:
    """The step waits from now on: lists the task, and starts its escalations."""
    list_task(turn, step)
    _start_escalation(turn, step)


def list_task(turn: Turn, step: StepState) -> None:
    """In the inboxes of those whose it is now."""
    waiting = step.waiting_for
    if waiting is None or waiting.human_task is None:
        return
    task = waiting.human_task
    if task.listed_for or task.due is not None:
        turn.add_effect(ListTask(step.name, task.listed_for, waiting.since or turn.now, task.due))
    else:
        turn.add_effect(UnlistTask(step.name))


def _start_escalation(turn: Turn, step: StepState) -> None:
    """The next one of them, if there is one."""
    task = None if step.waiting_for is None else step.waiting_for.human_task
    if task is not None and task.next_escalation is not None:
        due, _ = task.next_escalation
        item = EscalationDue(step.name, step.attempts, task.escalated, step.replies)
        turn.add_effect(StartTimer(escalation_timer(step, task), due, item))


def escalate(turn: Turn, step: StepState, due: EscalationDue) -> None:
    waiting = open_wait(step, due.attempt, due.replies)
    if waiting is None or waiting.human_task is None or waiting.human_task.escalated != due.number:
        return
    escalation = waiting.human_task.next_escalation
    if escalation is not None:
        turn.record(StepEscalated(step.name, step.attempts, escalation[1]))
        begin(turn, step)


def claim(turn: Turn, step: StepState, claimed: TaskClaimed) -> None:
    """The first claim counts, until it is released."""
    waiting = open_wait(step, claimed.attempt, claimed.replies)
    if waiting is None or not waiting.is_for_a_person:
        return
    if waiting.human_task is None or waiting.human_task.claimed_by is None:
        turn.record(StepClaimed(step.name, step.attempts, claimed.by))
        list_task(turn, step)


def release(turn: Turn, step: StepState, released: TaskReleased) -> None:
    waiting = open_wait(step, released.attempt, released.replies)
    if waiting is None or waiting.human_task is None or waiting.human_task.claimed_by != released.by:
        return
    turn.record(StepReleased(step.name, step.attempts, released.by))
    list_task(turn, step)


def open_wait(step: StepState, attempt: int, replies: int = 0) -> WaitingFor | None:
    """What the step waits for, if it still is what was meant."""
    is_open = step.status in {"WAITING", "OUTCOME_UNKNOWN"}
    return step.waiting_for if is_open and (step.attempts, step.replies) == (attempt, replies) else None
