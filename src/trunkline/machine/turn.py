"""One turn: the run state as it changes, and the events and effects so far."""

from __future__ import annotations

from datetime import timedelta

from trunkline.clock import Instant
from trunkline.ids import TaskId, task_id
from trunkline.machine.effects import CancelTimer, Effect
from trunkline.machine.events import Event
from trunkline.machine.evolve import evolve
from trunkline.machine.inputs import RoundEnd
from trunkline.machine.scope import ItemScope, RunScope
from trunkline.machine.state import FINAL_RUN_STATUSES, RunState, StepState
from trunkline.workflow import Scope, item_index, step_of_item


def deadline_timer(step: StepState) -> str:
    return f"deadline/{step.name}"


class Turn:
    def __init__(
        self,
        state: RunState,
        now: Instant,
        reply_timeout: timedelta | None = None,
        max_bytes: int | None = None,
    ) -> None:
        self.state = state
        self.now = now
        # Of the payloads of the run and its steps; None: without limit.
        self.max_bytes = max_bytes
        # How long a question waits for a person, where the step does not say.
        self.reply_timeout = reply_timeout
        self.scope = RunScope(state)
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        # Of a block that is repeated, if the run has completed.
        self.round_end: RoundEnd | None = None
        # In the order of their first change; the store writes each once.
        self.changed: dict[str, StepState] = {}

    def record(self, event: Event) -> None:
        step = evolve(self.state, event, self.now)
        self.events.append(event)
        if step is not None:
            self.changed[step.name] = step
            if step.finished_at is not None and step.is_final and step.has_begun and self._has_deadline(step):
                self.cancel_timer(deadline_timer(step))

    def _has_deadline(self, step: StepState) -> bool:
        # That of a step with items is the whole step's.
        plan = self.state.workflow.steps.get(step.name)
        return plan is not None and plan.definition.deadline is not None

    def scope_of(self, step: StepState) -> Scope:
        """What the expressions of a step, or of an item of one, can read."""
        if step.name in self.state.workflow.steps:
            return self.scope
        index = item_index(step.name)
        return ItemScope(self.scope, self.state.for_each[step_of_item(step.name)].items[index], index)

    def add_effect(self, effect: Effect) -> None:
        self.effects.append(effect)

    def cancel_timer(self, key: str) -> None:
        self.add_effect(CancelTimer(key))

    @property
    def is_too_large(self) -> bool:
        return self.max_bytes is not None and self.state.size_bytes > self.max_bytes

    @property
    def is_ending(self) -> bool:
        """No further step starts: the run is being cancelled, has failed, or is over."""
        state = self.state
        return (
            state.failure is not None
            or state.cancel_requested_at is not None
            or state.status in FINAL_RUN_STATUSES
        )

    def task_id_of(self, step: StepState, number: int | None = None) -> TaskId:
        """The id of the task that the step has at present; `number`: of another of its calls."""
        if number is None:
            route = step.call_details.route
            number = 0 if route is None else route.number
        return task_id(self.state.id, step.name, step.answered_failures, step.replies, number)
