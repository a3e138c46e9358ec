"""The timers of a step that waits, for its next attempt or anything else; its deadline is in `machine/turn.py`."""

from __future__ import annotations

from trunkline.clock import after
from trunkline.machine.effects import StartTimer, StopAwaitingEvents, UnlistTask
from trunkline.machine.inputs import StepDeadlinePassed
from trunkline.machine.state import HumanTask, StepState
from trunkline.machine.turn import Turn, deadline_timer
from trunkline.workflow import CompiledStep


def _attempt(step: StepState) -> str:
    # Each round counts its attempts from 1; what is due comes once for each key.
    return f"{step.round}.{step.attempts}" if step.call_details.round else f"{step.attempts}"


def retry_timer(step: StepState) -> str:
    return f"retry/{step.name}/{_attempt(step)}"


def reply_timer(step: StepState) -> str:
    # A step may ask again, at the same attempt after a reply and at another one after a failure.
    return f"reply/{step.name}/{step.attempts}/{step.replies}"


def agent_timer(step: StepState) -> str:
    lookups = 0 if step.route is None else step.route.lookups
    return f"agent/{step.name}/{step.attempts}/{lookups}"


def cache_timer(step: StepState) -> str:
    use = step.call_details.cache
    return f"cache/{step.name}/{0 if use is None else use.number}"


def hedge_timer(step: StepState, number: int) -> str:
    return f"hedge/{step.name}/{step.attempts}/{number}"


def wait_timer(step: StepState) -> str:
    return f"wait/{step.name}/{_attempt(step)}"


def escalation_timer(step: StepState, task: HumanTask) -> str:
    key = f"escalation/{step.name}/{step.attempts}/{task.escalated}"
    # An agent may ask again at the same attempt.
    return f"{key}/{step.replies}" if step.replies else key


def start_step_deadline(turn: Turn, plan: CompiledStep, step: StepState) -> None:
    """When the step begins; that of a step with items is the whole step's."""
    deadline = plan.definition.deadline
    if deadline is not None and plan.for_each is None:
        due = after(turn.now, deadline)
        turn.add_effect(StartTimer(deadline_timer(step), due, StepDeadlinePassed(step.name)))


def cancel_wait_timer(turn: Turn, step: StepState) -> None:
    """Whatever ends the wait: its timer is not to ring, no event is to come, and no inbox shows it."""
    waiting = step.waiting_for
    if waiting is None:
        return
    task = waiting.human_task
    if task is not None:
        turn.add_effect(UnlistTask(step.name))
    if step.status != "WAITING" or waiting.inside:
        return
    if waiting.kind == "event":
        turn.add_effect(StopAwaitingEvents(step.name))
        if waiting.data is not None:
            # What it has received is free for the next step, or its next attempt.
            turn.state.taken_events = None
    if task is not None and task.next_escalation is not None:
        turn.cancel_timer(escalation_timer(step, task))
    if waiting.kind == "cache":
        turn.cancel_timer(cache_timer(step))
    if waiting.until is None:
        return
    match waiting.kind:
        case "input" | "auth":
            turn.cancel_timer(reply_timer(step))
        case "retry":
            turn.cancel_timer(retry_timer(step))
        case "agent":
            turn.cancel_timer(agent_timer(step))
        case _:
            turn.cancel_timer(wait_timer(step))
