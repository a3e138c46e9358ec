"""The timers of a step that waits for its next attempt or for a person; its deadline is in `machine/turn.py`."""

from __future__ import annotations

from trunkline.machine.state import StepState
from trunkline.machine.turn import Turn


def retry_timer(step: StepState) -> str:
    return f"retry/{step.name}/{step.attempts}"


def reply_timer(step: StepState) -> str:
    # A step may ask again, at the same attempt after a reply and at another one after a failure.
    return f"reply/{step.name}/{step.attempts}/{step.replies}"


def cancel_wait_timer(turn: Turn, step: StepState) -> None:
    """Whatever ends the wait, its timer is not to ring."""
    if step.status != "WAITING" or step.waiting_for is None or step.waiting_for.until is None:
        return
    turn.cancel_timer(reply_timer(step) if step.waiting_for.is_question else retry_timer(step))
