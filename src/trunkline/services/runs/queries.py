"""Reading runs: one run with its steps, lists, events, exchanges, logs, and waiting for a change."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

import msgspec

from trunkline.clock import Clock
from trunkline.errors import NotFound
from trunkline.ids import RunId
from trunkline.jsontypes import JsonObject
from trunkline.machine.state import FINAL_RUN_STATUSES, RunState, RunStatus, StepState, StepStatus
from trunkline.machine.steps.child import child_run_of
from trunkline.services.runs.inbox import form_of
from trunkline.services.runs.logs import LogFilter, LogPosition, RunLogLine, log_lines
from trunkline.services.runs.search import ListedRun, RunFinder, RunSearch
from trunkline.services.runs.watchers import RunWatch, RunWatchers
from trunkline.services.workflows import Workflows
from trunkline.stores.base import EventRecord, RunRecord, Store
from trunkline.stores.port.automation.triggers import StartWait
from trunkline.workflow import (
    CompiledStep,
    CompiledWorkflow,
    StepKind,
    compensation_name,
    parse_item_name,
)

_items: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])

# Each item of a loop has one. All of them are in the history of the run.
MAX_COMPENSATIONS_SHOWN = 1_000

# A notification may be lost; then this is how long a watcher sleeps.
_MAX_SLEEP = 1.0


class ItemCounts(msgspec.Struct, frozen=True):
    """How far a step with items is."""

    total: int
    by_status: dict[StepStatus, int]


class ChildRunView(msgspec.Struct, frozen=True):
    """The run that a step has begun last."""

    run_id: RunId
    # None: it was deleted, or was not read.
    status: RunStatus | None = None


class StepView(msgspec.Struct, frozen=True):
    state: StepState
    kind: StepKind
    # Empty where the step does not call an agent.
    agent: str
    # Of a step with `for_each` that has begun.
    items: ItemCounts | None = None
    workflow: str | None = None
    child: ChildRunView | None = None
    # Of a step that waits for people: the JSON Schema of their answers.
    form: JsonObject | None = None


class RunView(msgspec.Struct, frozen=True):
    record: RunRecord
    # In the order of the definition, those that were never begun too.
    steps: list[StepView]
    # What a run waits for that has not started.
    start_wait: StartWait | None = None
    # Those that have begun, in the order in which they did.
    compensations: Sequence[StepView] = ()


class RunQueries:
    """Everything that only reads. `Runs` changes runs."""

    def __init__(self, store: Store, workflows: Workflows, watchers: RunWatchers, clock: Clock) -> None:
        self._store = store
        self._workflows = workflows
        self._watchers = watchers
        self._clock = clock
        self._finder = RunFinder(store)

    async def get(self, run_id: RunId) -> RunView:
        return await self.view(*await self.find(run_id))

    async def view(self, record: RunRecord, steps: Iterable[StepState]) -> RunView:
        """What is shown of a run; `steps` may have items, which are passed over."""
        compiled = await self._workflows.compiled_for(record)
        touched = {step.name: step for step in steps}
        compensations = (
            [] if record.compensation is None else await self._compensations(record, compiled, touched)
        )
        has_items = any(plan.for_each is not None for plan in compiled.steps.values())
        counts = await self._store.runs.item_counts(record.id) if has_items else {}
        return RunView(
            record,
            [
                await self._view(
                    record, plan, touched.get(name) or StepState(name=name), counts.get(name, {})
                )
                for name, plan in compiled.steps.items()
            ],
            await self.start_wait(record),
            compensations,
        )

    async def _compensations(
        self, record: RunRecord, compiled: CompiledWorkflow, touched: Mapping[str, StepState]
    ) -> list[StepView]:
        found = [step for name, step in touched.items() if name in compiled.compensations]
        for name, plan in compiled.steps.items():
            if plan.for_each is not None and compiled.compensation(name) is not None:
                found += await self._store.runs.items(
                    record.id, compensation_name(name), limit=MAX_COMPENSATIONS_SHOWN
                )
        found.sort(key=lambda step: step.started_at or step.finished_at or record.created_at)
        return [
            await self._view(record, compiled.plan(step.name), step, {})
            for step in found[:MAX_COMPENSATIONS_SHOWN]
        ]

    async def start_wait(self, record: RunRecord) -> StartWait | None:
        """What a run that has not started waits for."""
        if record.status != "PENDING" or record.block is not None:
            return None
        if record.trigger is None:
            workflow = await self._workflows.compiled(record.workflow_id, record.workflow_version)
            if workflow.definition.flow is None:
                return None
        return await self._store.start_queue.get(record.id)

    async def _view(
        self, record: RunRecord, plan: CompiledStep, step: StepState, counts: dict[StepStatus, int]
    ) -> StepView:
        step = _shown(step, record.status)
        items = None
        if plan.for_each is not None and step.input is not None:
            items = ItemCounts(len(_items.decode(step.input)), counts)
            # The items tell it one by one: a run is shown without them.
            step = msgspec.structs.replace(step, input=None)
        child = child_run_of(record.id, plan, step)
        if child is None:
            return StepView(
                step,
                plan.kind,
                step.agent or plan.agent,
                items,
                plan.definition.workflow,
                form=_form(plan, step),
            )
        found = await self._store.runs.status(child)
        status = None if found is None else found[0]
        return StepView(
            step,
            plan.kind,
            step.agent or plan.agent,
            items,
            plan.definition.workflow,
            ChildRunView(child, status),
        )

    async def step(self, run_id: RunId, step: str) -> StepView:
        """One step, begun or not, or one item that has begun."""
        record, state = await self.find_step(run_id, step)
        compiled = await self._workflows.compiled_for(record)
        plan = compiled.plan(state.name)
        if state.name not in compiled.steps:
            return _item_view(run_id, plan, state)
        counts = await self._store.runs.item_counts(run_id) if plan.for_each is not None else {}
        return await self._view(record, plan, state, counts.get(state.name, {}))

    async def items(
        self, run_id: RunId, step: str, *, limit: int, after: int, statuses: Sequence[StepStatus] = ()
    ) -> list[StepView]:
        """The items of a step that have begun, in their order; `after` is the last index seen."""
        record, _ = await self.find(run_id)
        compiled = await self._workflows.compiled_for(record)
        plan = compiled.steps.get(step)
        if plan is None or plan.for_each is None:
            loops = [name for name, other in compiled.steps.items() if other.for_each is not None]
            raise NotFound(
                f"Run {run_id} has no for_each step {step}.",
                fix=f"Its for_each steps: {', '.join(loops) or 'none'}.",
            )
        found = await self._store.runs.items(run_id, step, limit=limit, after=after, statuses=statuses)
        return [_item_view(run_id, plan, state) for state in found]

    async def list(
        self, search: RunSearch, *, limit: int, before: RunId | None = None, payloads: bool = True
    ) -> list[ListedRun]:
        return await self._finder.find(search, limit=limit, before=before, payloads=payloads)

    async def events(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None
    ) -> list[EventRecord]:
        await self.status(run_id)
        return await self._store.runs.events(run_id, after=after, limit=limit, step=step)

    async def exchanges(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None, attempt: int | None = None
    ) -> list[tuple[int, bytes]]:
        await self.status(run_id)
        return await self._store.exchanges.page(run_id, after=after, limit=limit, step=step, attempt=attempt)

    async def log(self, run_id: RunId, after: LogPosition, wanted: LogFilter) -> AsyncGenerator[RunLogLine]:
        """What is known of it, line by line; to be closed."""
        await self.status(run_id)
        return log_lines(self._store, run_id, after, wanted)

    async def status(self, run_id: RunId) -> tuple[RunStatus, int]:
        """The run's status and the number of its last event."""
        found = await self._store.runs.status(run_id)
        if found is None:
            raise _no_run(run_id)
        return found

    def watch(self, run_id: RunId) -> AbstractContextManager[RunWatch]:
        return self._watchers.watch(run_id)

    def watch_all(self) -> AbstractContextManager[RunWatch]:
        return self._watchers.watch_all()

    async def wait(self, run_id: RunId, seconds: float) -> bool:
        """True when the run is final, False when the time is up or the process is asked to stop."""
        with self._watchers.watch(run_id, end_only=True) as watch:
            if await self._is_over(run_id):
                return True
            return await self.wait_for_end(run_id, watch, seconds) is not None or await self._is_over(run_id)

    async def _is_over(self, run_id: RunId) -> bool:
        status, _ = await self.status(run_id)
        return status in FINAL_RUN_STATUSES

    async def wait_for_end(self, run_id: RunId, watch: RunWatch, seconds: float) -> RunState | None:
        """Like `wait`, with a watch that was there before the run; its last state, if this process has it."""
        end = self._clock.now() + int(seconds * 1_000_000)
        while watch.final is None:
            left = (end - self._clock.now()) / 1_000_000
            if left <= 0 or self._watchers.closed:
                return None
            await watch.changed(min(left, _MAX_SLEEP))
            if watch.final is None and await self._is_over(run_id):
                return None
        return watch.final

    async def find(self, run_id: RunId) -> tuple[RunRecord, list[StepState]]:
        """The stored run, without its items; raises `NotFound`."""
        found = await self._store.runs.get(run_id)
        if found is None:
            raise _no_run(run_id)
        return found

    async def find_step(self, run_id: RunId, step: str) -> tuple[RunRecord, StepState]:
        """The run and one of its steps or items; a step that has not begun is pending. Raises `NotFound`."""
        record, steps = await self.find(run_id)
        compiled = await self._workflows.compiled_for(record)
        place = parse_item_name(step)
        if place is not None:
            for item in await self._store.runs.items(run_id, place[0], limit=1, after=place[1] - 1):
                if item.name == step:
                    return record, item
        if step not in compiled.steps and step not in compiled.compensations:
            raise NotFound(
                f"Run {run_id} has no step {step}.", fix=f"Its steps: {', '.join(compiled.steps)}."
            )
        return record, next((state for state in steps if state.name == step), StepState(name=step))


def _no_run(run_id: RunId) -> NotFound:
    return NotFound(f"There is no run {run_id}.", fix="List the runs: trunkline runs list.")


def _form(plan: CompiledStep, step: StepState) -> JsonObject | None:
    return None if step.waiting_for is None else form_of(plan, step.waiting_for)


def _item_view(run_id: RunId, plan: CompiledStep, step: StepState) -> StepView:
    child = child_run_of(run_id, plan, step)
    return StepView(
        step,
        plan.kind,
        step.agent or plan.agent,
        None,
        plan.definition.workflow,
        None if child is None else ChildRunView(child),
        _form(plan, step),
    )


def _shown(step: StepState, run_status: RunStatus) -> StepState:
    """A step that was never begun will not begin any more once its run is over."""
    if step.status == "PENDING" and run_status in FINAL_RUN_STATUSES:
        return msgspec.structs.replace(step, status="CANCELLED")
    return step
