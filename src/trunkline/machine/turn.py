"""One turn: the run state as it changes, and the events and effects so far."""

from __future__ import annotations

from datetime import timedelta

from trunkline.clock import Instant
from trunkline.durations import parse_duration
from trunkline.ids import TaskId, task_id
from trunkline.jsontypes import decode
from trunkline.machine.effects import CancelTimer, Effect, KeepOutput, ReleaseOutput
from trunkline.machine.events import Event, StepCompleted, StepEventBase, StepFromCache
from trunkline.machine.evolve import evolve
from trunkline.machine.inputs import RoundEnd
from trunkline.machine.scope import ItemScope, RunScope
from trunkline.machine.state import FINAL_RUN_STATUSES, RunState, StepState
from trunkline.workflow import Scope, compensated_step, item_index, step_of_item

# A larger output is not kept for other steps.
MAX_KEPT_BYTES = 1024 * 1024
# A file belongs to the run that has it.
_FILE = b'"blob":'


def _can_be_kept(output: bytes) -> bool:
    return len(output) <= MAX_KEPT_BYTES and _FILE not in output


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
        is_cached = self.state.workflow.has_cached_steps
        had_claim = is_cached and self._has_claim(event)
        step = evolve(self.state, event, self.now)
        self.events.append(event)
        if step is not None:
            self.changed[step.name] = step
            if step.finished_at is not None and step.is_final and step.has_begun and self._has_deadline(step):
                self.cancel_timer(deadline_timer(step))
            if is_cached:
                self._end_claim(step, event, had_claim=had_claim)

    def _has_claim(self, event: Event) -> bool:
        """Whether others may wait for the output of the step."""
        step = self.state.steps.get(event.step) if isinstance(event, StepEventBase) else None
        use = None if step is None else step.call_details.cache
        return use is not None and use.is_claimed

    def _end_claim(self, step: StepState, event: Event, *, had_claim: bool) -> None:
        """What the event means for those that wait for the output, or will look for it."""
        use = step.call_details.cache
        if use is None or isinstance(event, StepFromCache):
            return
        plan = self.state.workflow.plan(step.name)
        cache = plan.definition.cache
        if isinstance(event, StepCompleted) and cache is not None and _can_be_kept(event.output.text):
            ttl = parse_duration(cache.ttl)
            self.add_effect(KeepOutput(step.name, use.digest, event.output.text, ttl, plan.definition.agent))
        elif had_claim and not use.is_claimed:
            self.add_effect(ReleaseOutput(step.name, use.digest))

    def _has_deadline(self, step: StepState) -> bool:
        # That of a step with items is the whole step's.
        workflow = self.state.workflow
        plan = workflow.steps.get(step.name) or workflow.compensations.get(step_of_item(step.name))
        return plan is not None and plan.definition.deadline is not None

    def scope_of(self, step: StepState) -> Scope:
        """What the expressions of a step, or of an item of one, can read."""
        if step.name in self.state.workflow.steps:
            return self.scope
        compensated = compensated_step(step.name)
        if compensated is not None:
            return self._scope_of_compensation(compensated)
        index = item_index(step.name)
        return ItemScope(self.scope, self.state.for_each[step_of_item(step.name)].items[index], index)

    def _scope_of_compensation(self, compensated: str) -> Scope:
        loop = step_of_item(compensated)
        if loop == compensated:
            return self.scope
        state, index = self.state, item_index(compensated)
        if loop not in state.items_to_compensate:
            items = decode(state.steps[loop].input or b"[]")
            state.items_to_compensate[loop] = items if isinstance(items, list) else []
        item = state.items_to_compensate[loop][index]
        return ItemScope(self.scope, item, index, {f"steps.{loop}": self.scope.step_state(compensated)})

    def add_effect(self, effect: Effect) -> None:
        self.effects.append(effect)

    def cancel_timer(self, key: str) -> None:
        self.add_effect(CancelTimer(key))

    @property
    def is_too_large(self) -> bool:
        return self.max_bytes is not None and self.state.size_bytes > self.max_bytes

    @property
    def is_ending(self) -> bool:
        """No further step starts: the run is being cancelled, has failed, or is over. Compensations do."""
        state = self.state
        return not state.is_compensating and (
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
