"""Runs: what can be asked of them. Every wish goes through the run's inbox; the machine decides."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager

import msgspec
import structlog

from trunkline.clock import Clock, rfc3339
from trunkline.errors import Conflict, Invalid, NotFound
from trunkline.id_generation import new_id, new_run_id
from trunkline.ids import RunId
from trunkline.jsontypes import Json, encode
from trunkline.machine.inputs import (
    CancelRequested,
    Input,
    OutcomeResolved,
    PauseRequested,
    ReplyGiven,
    ResolvedOutcome,
    ResumeRequested,
    RunRequested,
    encode_input,
)
from trunkline.machine.state import FINAL_RUN_STATUSES, RunStatus, StepState, StepStatus
from trunkline.machine.steps.agent import MAX_INPUT_BYTES
from trunkline.machine.steps.child import child_run_of
from trunkline.machine.steps.for_each import MAX_ITEMS
from trunkline.messages import ReplyMessage, TraceContext
from trunkline.services.migration.routing_table import RoutingTable
from trunkline.services.operations.audit_log import audit_entry
from trunkline.services.runs.inbox import inbox_item_id
from trunkline.services.runs.intake import Intake
from trunkline.services.runs.logs import LogFilter, LogPosition, RunLogLine, log_lines
from trunkline.services.runs.search import ListedRun, RunFinder, RunSearch
from trunkline.services.runs.watchers import RunWatch, RunWatchers
from trunkline.services.workflows import Workflows
from trunkline.stores.base import EventRecord, InboxItem, NewRun, RunRecord, Store, WorkflowVersion
from trunkline.stores.port.operations import NewAuditEntry
from trunkline.telemetry import names
from trunkline.telemetry.metrics import Metrics
from trunkline.workflow import CompiledStep, CompiledWorkflow, parse_item_name, step_of_item

log = structlog.stdlib.get_logger()

_items: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])

# A doorbell may be lost; then this is how long a watcher sleeps.
_LONGEST_DOZE = 1.0


class StartedRun(msgspec.Struct, frozen=True):
    run_id: RunId
    # False: the same idempotency key has started it before.
    created: bool


class ItemCounts(msgspec.Struct, frozen=True):
    """How far a step with items is."""

    total: int
    by_status: dict[StepStatus, int]


class ChildRunView(msgspec.Struct, frozen=True):
    """The run that a step has begun last."""

    run_id: RunId
    # None: it was deleted, or nobody has asked.
    status: RunStatus | None = None


class StepView(msgspec.Struct, frozen=True):
    state: StepState
    # Empty where the step is a run of another workflow.
    agent: str
    # Of a step with `for_each` that has begun.
    items: ItemCounts | None = None
    workflow: str | None = None
    child: ChildRunView | None = None


class RunView(msgspec.Struct, frozen=True):
    record: RunRecord
    # In the order of the definition, those that were never begun too.
    steps: list[StepView]


class Runs:
    def __init__(
        self,
        store: Store,
        workflows: Workflows,
        intake: Intake,
        watchers: RunWatchers,
        clock: Clock,
        metrics: Metrics,
        routes: RoutingTable,
    ) -> None:
        self._routing = routes
        self._store = store
        self._workflows = workflows
        self._intake = intake
        self._watchers = watchers
        self._clock = clock
        self._metrics = metrics
        self._lists = RunFinder(store)

    async def execute(
        self,
        workflow: str,
        version: int | None,
        run_input: Json,
        *,
        correlation_id: str,
        idempotency_key: str | None = None,
        trace: TraceContext | None = None,
    ) -> StartedRun:
        """Durable when it returns. Raises `Invalid` when the input does not fit the workflow's schema."""
        saved = await self._workflows.get(workflow, version)
        compiled = await self._workflows.compiled(saved.workflow_id, saved.version)
        _check_input(compiled, run_input)
        return await self._start(
            saved, encode(run_input), RunRequested(), correlation_id, idempotency_key, trace=trace
        )

    async def _start(
        self,
        saved: WorkflowVersion,
        run_input: bytes,
        request: RunRequested,
        correlation_id: str,
        idempotency_key: str | None = None,
        retry_of: RunId | None = None,
        trace: TraceContext | None = None,
        audit: NewAuditEntry | None = None,
        wish: bytes = b"",
    ) -> StartedRun:
        """`wish`: what else, beside the input, is the same when the same key comes again."""
        digest = None
        if idempotency_key is not None:
            digest = hashlib.sha256(run_input + wish).digest()
        # Before the id, which has a time too: no run is listed as of a time before it was created.
        now = self._clock.now()
        run = NewRun(
            id=new_run_id(),
            workflow_id=saved.workflow_id,
            workflow_name=saved.name,
            workflow_version=saved.version,
            input=run_input,
            correlation_id=correlation_id,
            created_at=now,
            idempotency_key=idempotency_key,
            request_digest=digest,
            retry_of=retry_of,
            trace=trace,
            routing_version=await self._routing.current_version(),
        )
        existing = await self._intake.start(run, request, audit)
        if existing is None:
            self._metrics.runs_started.inc()
            self._watchers.notify_all()
            log.info(names.RUN_STARTED, run_id=run.id, workflow=saved.name, correlation_id=correlation_id)
            return StartedRun(run.id, created=True)
        if existing.request_digest != digest:
            raise Invalid(
                f"The Idempotency-Key has started run {existing.id}, with another input or in another way.",
                fix="Use a new key for a new run, or send the same request again.",
            )
        return StartedRun(existing.id, created=False)

    async def get(self, run_id: RunId) -> RunView:
        record, steps = await self._found(run_id)
        compiled = await self._workflows.compiled(record.workflow_id, record.workflow_version)
        touched = {step.name: step for step in steps}
        has_items = any(plan.for_each is not None for plan in compiled.steps.values())
        counts = await self._store.item_counts(run_id) if has_items else {}
        return RunView(
            record,
            [
                await self._view(
                    record, plan, touched.get(name) or StepState(name=name), counts.get(name, {})
                )
                for name, plan in compiled.steps.items()
            ],
        )

    async def _view(
        self, record: RunRecord, plan: CompiledStep, step: StepState, counts: dict[StepStatus, int]
    ) -> StepView:
        step = _shown(step, record.status)
        items = None
        if plan.for_each is not None and step.input is not None:
            items = ItemCounts(len(_items.decode(step.input)), counts)
            # The items tell it one by one: a run is shown without them.
            step.input = None
        child = child_run_of(record.id, plan, step)
        if child is None:
            return StepView(step, plan.agent, items, plan.definition.workflow)
        found = await self._store.run_status(child)
        status = None if found is None else found[0]
        return StepView(step, plan.agent, items, plan.definition.workflow, ChildRunView(child, status))

    async def step(self, run_id: RunId, step: str) -> StepView:
        """One step, begun or not, or one item that has begun."""
        record, state = await self._step(run_id, step)
        compiled = await self._workflows.compiled(record.workflow_id, record.workflow_version)
        if state.name not in compiled.steps:
            return _item_view(run_id, compiled.steps[step_of_item(state.name)], state)
        plan = compiled.steps[state.name]
        counts = await self._store.item_counts(run_id) if plan.for_each is not None else {}
        return await self._view(record, plan, state, counts.get(state.name, {}))

    async def items(
        self, run_id: RunId, step: str, *, limit: int, after: int, statuses: Sequence[StepStatus] = ()
    ) -> list[StepView]:
        """The items of a step that have begun, in their order; `after` is the last index seen."""
        record, _ = await self._found(run_id)
        compiled = await self._workflows.compiled(record.workflow_id, record.workflow_version)
        plan = compiled.steps.get(step)
        if plan is None or plan.for_each is None:
            loops = [name for name, other in compiled.steps.items() if other.for_each is not None]
            raise NotFound(
                f"Run {run_id} has no step {step} with items.",
                fix=f"Its steps with for_each: {', '.join(loops) or 'none'}.",
            )
        found = await self._store.items(run_id, step, limit=limit, after=after, statuses=statuses)
        return [_item_view(run_id, plan, state) for state in found]

    async def _found(self, run_id: RunId) -> tuple[RunRecord, list[StepState]]:
        found = await self._store.run(run_id)
        if found is None:
            raise _no_run(run_id)
        return found

    async def list(
        self, search: RunSearch, *, limit: int, before: RunId | None = None, payloads: bool = True
    ) -> list[ListedRun]:
        return await self._lists.find(search, limit=limit, before=before, payloads=payloads)

    async def events(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None
    ) -> list[EventRecord]:
        await self.status(run_id)
        return await self._store.events(run_id, after=after, limit=limit, step=step)

    async def exchanges(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None, attempt: int | None = None
    ) -> list[tuple[int, bytes]]:
        await self.status(run_id)
        return await self._store.exchanges(run_id, after=after, limit=limit, step=step, attempt=attempt)

    async def log(self, run_id: RunId, after: LogPosition, wanted: LogFilter) -> AsyncGenerator[RunLogLine]:
        """What is known of it, line by line; to be closed."""
        await self.status(run_id)
        return log_lines(self._store, run_id, after, wanted)

    async def status(self, run_id: RunId) -> tuple[RunStatus, int]:
        """The run's status and the number of its last event."""
        found = await self._store.run_status(run_id)
        if found is None:
            raise _no_run(run_id)
        return found

    def watch(self, run_id: RunId) -> AbstractContextManager[RunWatch]:
        return self._watchers.watch(run_id)

    def watch_all(self) -> AbstractContextManager[RunWatch]:
        return self._watchers.watch_all()

    async def wait(self, run_id: RunId, seconds: float) -> bool:
        """True when the run is final, False when the time is up or the process is asked to stop."""
        end = self._clock.now() + int(seconds * 1_000_000)
        with self._watchers.watch(run_id, end_only=True) as watch:
            while True:
                status, _ = await self.status(run_id)
                left = (end - self._clock.now()) / 1_000_000
                if status in FINAL_RUN_STATUSES or left <= 0 or self._watchers.closed:
                    return status in FINAL_RUN_STATUSES
                await watch.changed(min(left, _LONGEST_DOZE))

    async def cancel(self, run_id: RunId) -> None:
        await self._allowed(run_id, "cancelled", lambda status: status not in FINAL_RUN_STATUSES)
        await self._put(run_id, "cancel", CancelRequested(), "cancel")

    async def pause(self, run_id: RunId) -> None:
        record = await self._allowed(
            run_id, "paused", lambda status: status in {"PENDING", "RUNNING", "WAITING"}
        )
        if record.cancel_requested_at is not None:
            raise Conflict(f"Run {run_id} is being cancelled; it cannot be paused.")
        await self._put(run_id, f"pause/{new_id()}", PauseRequested(), "pause")

    async def resume(self, run_id: RunId) -> None:
        await self._allowed(run_id, "resumed", lambda status: status == "PAUSED")
        await self._put(run_id, f"resume/{new_id()}", ResumeRequested(), "resume")

    async def retry(
        self,
        run_id: RunId,
        *,
        from_step: str | None = None,
        from_start: bool = False,
        run_input: Json | msgspec.UnsetType = msgspec.UNSET,
        step_input: Json | msgspec.UnsetType = msgspec.UNSET,
        correlation_id: str,
        idempotency_key: str | None = None,
        trace: TraceContext | None = None,
    ) -> StartedRun:
        """
        A new run that keeps what the old one completed, up to the step to begin with; `from_start`: nothing.

        `step_input` is what the step to begin with is given in place of what the workflow makes for it.
        """
        record, steps = await self._found(run_id)
        if record.status not in FINAL_RUN_STATUSES:
            raise Conflict(
                f"Run {run_id} is {record.status}; only a finished run can be retried.",
                fix=f"Wait for it, or cancel it first: trunkline runs cancel {run_id}.",
            )
        saved = await self._workflows.get(record.workflow_id, record.workflow_version)
        compiled = await self._workflows.compiled(record.workflow_id, record.workflow_version)
        if not isinstance(run_input, msgspec.UnsetType):
            _check_input(compiled, run_input)
        if from_start:
            steps = []
        kept = _kept(compiled, steps, from_step)
        inputs = _given(compiled, from_step, step_input)
        lists: dict[str, msgspec.Raw] = {}
        if isinstance(run_input, msgspec.UnsetType):
            for step in _half_done(compiled, steps, kept, from_step):
                done = await self._store.items(run_id, step.name, limit=MAX_ITEMS)
                lists[step.name] = msgspec.Raw(step.input or b"[]")
                kept |= _outputs(done)
        other_input = not isinstance(run_input, msgspec.UnsetType)
        return await self._start(
            saved,
            encode(run_input) if other_input else record.input,
            RunRequested(kept, lists, inputs),
            correlation_id,
            idempotency_key,
            retry_of=run_id,
            trace=trace,
            audit=audit_entry("run", "retry", run_id, from_step=from_step, other_input=other_input),
            wish=encode([run_id, from_step, from_start, other_input, inputs]),
        )

    async def reply(self, run_id: RunId, step: str, reply: ReplyMessage, item: str | None = None) -> None:
        """`item`: the question that is meant, as the inbox names it; left out: the present one."""
        record, state = await self._step(run_id, step)
        self._check_question(record, state, item)
        _not_paused(record)
        await self._put(run_id, f"reply/{step}/{state.replies}", ReplyGiven(step, reply), "reply", step=step)

    def _check_question(self, record: RunRecord, state: StepState, item: str | None) -> None:
        waiting = state.waiting_for
        if state.error is not None and state.error.code == "reply_timed_out":
            raise Conflict(
                f"The reply is too late: {state.error.message} The step has failed.",
                fix=f"Run it again from there: trunkline runs retry {record.id} --from-step {state.name}.",
            )
        if state.status != "WAITING" or waiting is None or not waiting.is_question:
            raise Conflict(
                f"Step {state.name} of run {record.id} is {state.status} and asks no question.",
                fix=f"See what it does: trunkline runs show {record.id}.",
            )
        if waiting.until is not None and waiting.until <= self._clock.now():
            raise Conflict(
                f"The reply is too late: step {state.name} of run {record.id} waited for it until"
                f" {rfc3339(waiting.until)}.",
                fix=f"See what becomes of it: trunkline runs show {record.id}.",
            )
        if item is not None and item != inbox_item_id(record.id, state.name, state.attempts, state.replies):
            raise Conflict(
                f"Step {state.name} of run {record.id} asks something else by now: {item} has been answered.",
                fix="See what waits: trunkline inbox list.",
            )

    async def resolve(self, run_id: RunId, step: str, outcome: ResolvedOutcome, output: Json = None) -> None:
        _, state = await self._step(run_id, step)
        if state.status != "OUTCOME_UNKNOWN":
            raise Conflict(f"The outcome of step {step} of run {run_id} is known: it is {state.status}.")
        item = OutcomeResolved(step, outcome, msgspec.Raw(encode(output)))
        await self._put(
            run_id, f"resolve/{step}/{state.attempts}", item, "resolve", step=step, outcome=outcome
        )

    async def _step(self, run_id: RunId, step: str) -> tuple[RunRecord, StepState]:
        record, steps = await self._found(run_id)
        compiled = await self._workflows.compiled(record.workflow_id, record.workflow_version)
        place = parse_item_name(step)
        if place is not None:
            for item in await self._store.items(run_id, place[0], limit=1, after=place[1] - 1):
                if item.name == step:
                    return record, item
        if step not in compiled.steps:
            raise NotFound(
                f"Run {run_id} has no step {step}.", fix=f"Its steps: {', '.join(compiled.steps)}."
            )
        return record, next((state for state in steps if state.name == step), StepState(name=step))

    async def _allowed(self, run_id: RunId, wished: str, allows: Callable[[RunStatus], bool]) -> RunRecord:
        record, _ = await self._found(run_id)
        if not allows(record.status):
            raise Conflict(
                f"Run {run_id} is {record.status}; it cannot be {wished}.",
                fix=f"See what it does: trunkline runs show {run_id}.",
            )
        return record

    async def _put(
        self,
        run_id: RunId,
        key: str,
        item: Input,
        action: str,
        *,
        step: str | None = None,
        outcome: str | None = None,
    ) -> None:
        entry = audit_entry("run", action, run_id, step=step, outcome=outcome)
        await self._intake.put(InboxItem(run_id, key, encode_input(item)), entry)


def _no_run(run_id: RunId) -> NotFound:
    return NotFound(f"There is no run {run_id}.", fix="List the runs: trunkline runs list.")


def _check_input(workflow: CompiledWorkflow, run_input: Json) -> None:
    findings = workflow.check_input(run_input)
    if findings:
        raise Invalid(
            f"The input does not fit the schema of workflow {workflow.definition.name}.",
            findings=findings,
            fix=f"See its input schema: trunkline workflows show {workflow.definition.name}.",
        )


def _not_paused(record: RunRecord) -> None:
    if record.paused:
        raise Conflict(
            f"Run {record.id} is paused; no call may start.",
            fix=f"Resume it first: trunkline runs resume {record.id}.",
        )


def _item_view(run_id: RunId, plan: CompiledStep, step: StepState) -> StepView:
    child = child_run_of(run_id, plan, step)
    return StepView(
        step, plan.agent, None, plan.definition.workflow, None if child is None else ChildRunView(child)
    )


def _shown(step: StepState, run_status: RunStatus) -> StepState:
    """A step that was never begun will not begin any more once its run is over."""
    if step.status == "PENDING" and run_status in FINAL_RUN_STATUSES:
        step.status = "CANCELLED"
    return step


def _kept(
    workflow: CompiledWorkflow, steps: list[StepState], from_step: str | None
) -> dict[str, msgspec.Raw]:
    """The outputs that a retry takes over: of completed steps that are not to run again."""
    again = _again(workflow, from_step)
    return _outputs(step for step in steps if step.name not in again)


def _given(
    workflow: CompiledWorkflow, from_step: str | None, step_input: Json | msgspec.UnsetType
) -> dict[str, msgspec.Raw]:
    """What a person gives the step to begin with."""
    if isinstance(step_input, msgspec.UnsetType):
        return {}
    if from_step is None:
        raise Invalid("step_input needs from_step.", fix="Name the step that is given this input: from_step.")
    plan = workflow.steps[from_step]
    if plan.for_each is not None:
        raise Invalid(
            f"Step {from_step} runs once for each item of a list: it has no input of its own.",
            fix="Change the run's input instead (input), or begin with the step that makes the list.",
        )
    text = encode(step_input)
    if len(text) > MAX_INPUT_BYTES:
        raise Invalid(f"step_input has {len(text)} bytes; the most that can be sent is {MAX_INPUT_BYTES}.")
    return {from_step: msgspec.Raw(text)}


def _half_done(
    workflow: CompiledWorkflow, steps: list[StepState], kept: Collection[str], from_step: str | None
) -> list[StepState]:
    """
    The steps whose completed items a retry takes over: what their lists were made of is the same.
    """
    again = _again(workflow, from_step)
    return [
        step
        for step in steps
        if (plan := workflow.steps[step.name]).for_each is not None
        and step.attempts
        and step.name not in again
        and step.name not in kept
        and all(need in kept for need in plan.needs)
    ]


def _outputs(steps: Iterable[StepState]) -> dict[str, msgspec.Raw]:
    return {
        step.name: msgspec.Raw(step.output)
        for step in steps
        if step.status == "COMPLETED" and step.output is not None
    }


def _again(workflow: CompiledWorkflow, from_step: str | None) -> set[str]:
    again: set[str] = set()
    if from_step is not None:
        if from_step not in workflow.steps:
            raise Invalid(
                f"There is no step {from_step}.", fix=f"Choose one of: {', '.join(workflow.steps)}."
            )
        waiting = [from_step]
        while waiting:
            name = waiting.pop()
            if name not in again:
                again.add(name)
                waiting.extend(workflow.steps[name].dependents)
    return again
