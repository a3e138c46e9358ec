"""Runs: starting them, and changing them through their input queues. The machine decides what a change leads to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec
import structlog

from trunkline.clock import Clock, Instant, rfc3339
from trunkline.errors import Conflict, Invalid
from trunkline.id_generation import new_id, new_run_id
from trunkline.ids import RunId, question_id
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
)
from trunkline.machine.state import FINAL_RUN_STATUSES, RunState, RunStatus, StepState
from trunkline.machine.steps.child import is_child
from trunkline.messages import CallerMessage, ReplyMessage, TraceContext
from trunkline.services.migration.routing_table import RoutingTable
from trunkline.services.operations.audit_log import audit_entry, current_actor
from trunkline.services.runs.inner_questions import REPLIED, RESOLVED, AskingStep, asking_step
from trunkline.services.runs.intake import Intake
from trunkline.services.runs.labels import first_labels
from trunkline.services.runs.queries import RunQueries
from trunkline.services.runs.queued_starts import start_behind_workflow_gate
from trunkline.services.runs.retry import check_retried, given_inputs, kept_of_run, kept_outputs
from trunkline.services.runs.watchers import RunWatchers
from trunkline.services.workflows import Workflows
from trunkline.stores.base import FollowUp, NewRun, QueuedInput, RunRecord, Store, WorkflowVersion
from trunkline.stores.port.automation.triggers import QueuedStart, StartWait
from trunkline.stores.port.operations import NewAuditEntry
from trunkline.stores.port.push_configs import PushConfig
from trunkline.stores.rows.runs import record_of_new_run
from trunkline.telemetry import log_events
from trunkline.telemetry.metrics import Metrics
from trunkline.workflow import CompiledWorkflow

log = structlog.stdlib.get_logger()


class StartedRun(msgspec.Struct, frozen=True):
    run_id: RunId
    # False: the same idempotency key has started it before.
    created: bool
    # How it ended, if it was waited for and this process has seen its end: as it is stored, without reading it.
    end: tuple[RunRecord, list[StepState]] | None = None


class Runs:
    """Starts and changes runs. `RunQueries` reads them."""

    def __init__(
        self,
        queries: RunQueries,
        store: Store,
        workflows: Workflows,
        intake: Intake,
        watchers: RunWatchers,
        clock: Clock,
        metrics: Metrics,
        routing: RoutingTable,
    ) -> None:
        self._queries = queries
        self._store = store
        self._workflows = workflows
        self._watchers = watchers
        self._clock = clock
        self._intake = intake
        self._metrics = metrics
        self._routing = routing

    async def execute(
        self,
        workflow: str,
        version: int | None,
        run_input: Json,
        *,
        correlation_id: str,
        idempotency_key: str | None = None,
        trace: TraceContext | None = None,
        wait_seconds: float | None = None,
        labels: Mapping[str, str] = MappingProxyType({}),
        priority: int | None = None,
    ) -> StartedRun:
        """
        Durable when it returns. Raises `Invalid` when the input does not fit the workflow's schema.

        `wait_seconds`: for so long it waits for the end of the run. `labels` come on top of those of the workflow.
        `priority`: among the runs that the workflow's flow control holds back.
        """
        saved = await self._workflows.get(workflow, version)
        compiled = await self._workflows.compiled(saved.workflow_id, saved.version)
        _check_input(compiled, run_input)
        content = encode(run_input)
        return await self._start(
            saved,
            content,
            RunRequested(),
            correlation_id,
            lambda run_id: first_labels(compiled, run_id, content, correlation_id, given=labels),
            idempotency_key,
            trace=trace,
            fingerprint=encode(sorted(labels.items())) if labels else b"",
            wait_seconds=wait_seconds,
            gate_of=lambda now: start_behind_workflow_gate(
                saved.workflow_id, compiled, run_input, now, priority
            ),
        )

    async def execute_message(
        self,
        saved: WorkflowVersion,
        run_input: Json,
        message: CallerMessage,
        *,
        contexts: dict[str, str],
        correlation_id: str,
        idempotency_key: str | None = None,
        trace: TraceContext | None = None,
        push_config_of: Callable[[RunId], PushConfig | None] | None = None,
    ) -> StartedRun:
        """
        Starts a run for a message of an A2A caller. Raises `Invalid` as `execute` does.
        `contexts`: the conversations with agents that the caller's context has had so far. With a key, the same message
        starts one run. `push_config_of`: where the updates of a new run go from its first one on.
        """
        compiled = await self._workflows.compiled(saved.workflow_id, saved.version)
        _check_input(compiled, run_input)
        # The id of a new context is not part of what the caller has sent.
        sent = message if message.chose_context else msgspec.structs.replace(message, context_id="")
        sent = msgspec.structs.replace(sent, version="")
        content = encode(run_input)
        return await self._start(
            saved,
            content,
            RunRequested(),
            correlation_id,
            lambda run_id: first_labels(compiled, run_id, content, correlation_id, message=message),
            idempotency_key,
            trace=trace,
            fingerprint=encode(sent),
            message=message,
            contexts=contexts,
            push_config_of=push_config_of,
            gate_of=lambda now: start_behind_workflow_gate(saved.workflow_id, compiled, run_input, now),
        )

    async def _start(
        self,
        saved: WorkflowVersion,
        run_input: bytes,
        request: RunRequested,
        correlation_id: str,
        labels_of: Callable[[RunId], dict[str, str]],
        idempotency_key: str | None = None,
        retry_of: RunId | None = None,
        trace: TraceContext | None = None,
        audit: NewAuditEntry | None = None,
        fingerprint: bytes = b"",
        message: CallerMessage | None = None,
        contexts: dict[str, str] | None = None,
        wait_seconds: float | None = None,
        push_config_of: Callable[[RunId], PushConfig | None] | None = None,
        gate_of: Callable[[Instant], QueuedStart | None] | None = None,
    ) -> StartedRun:
        """`fingerprint`: what else, in addition to the input, a repeated request with the same key has in common."""
        digest = None
        if idempotency_key is not None:
            digest = hashlib.sha256(run_input + fingerprint).digest()
        # Before the id, which has a time too: no run is listed as of a time before it was created.
        now = self._clock.now()
        run_id = new_run_id()
        run = NewRun(
            id=run_id,
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
            started_by=current_actor(),
            message=None if message is None else encode(message),
            contexts=contexts or {},
            labels=labels_of(run_id),
            start=None if gate_of is None else gate_of(now),
        )
        if wait_seconds is None:
            config = None if push_config_of is None else push_config_of(run_id)
            existing = await self._intake.start(run, request, audit, push_config=config)
            if existing is None:
                return self._started(run)
        else:
            # From before the run is there: it may end in the transaction that begins it.
            with self._watchers.watch(run.id, end_only=True) as watch:
                existing = await self._intake.start(run, request, audit)
                if existing is None:
                    self._started(run)
                    final = await self._queries.wait_for_end(run.id, watch, wait_seconds)
                    return StartedRun(run.id, created=True, end=final and _ended(run, final))
        if existing.request_digest != digest:
            raise Invalid(
                f"The Idempotency-Key was already used for run {existing.id}, with a different request.",
                fix="Use a new key for a new run, or repeat the original request.",
            )
        if wait_seconds is not None:
            await self._queries.wait(existing.id, wait_seconds)
        return StartedRun(existing.id, created=False)

    def _started(self, run: NewRun) -> StartedRun:
        self._metrics.runs_started.inc()
        self._watchers.notify_all()
        log.info(
            log_events.RUN_STARTED,
            run_id=run.id,
            workflow=run.workflow_name,
            correlation_id=run.correlation_id,
        )
        return StartedRun(run.id, created=True)

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
        record, steps = await self._queries.find(run_id)
        check_retried(record)
        saved = await self._workflows.get(record.workflow_id, record.workflow_version)
        compiled = await self._workflows.compiled(record.workflow_id, record.workflow_version)
        if not isinstance(run_input, msgspec.UnsetType):
            _check_input(compiled, run_input)
        if from_start:
            steps = []
        other_input = not isinstance(run_input, msgspec.UnsetType)
        if other_input:
            kept, lists = kept_outputs(compiled, record, steps, from_step), {}
        else:
            kept, lists = await kept_of_run(self._store.runs, compiled, record, steps, from_step)
        inputs = given_inputs(compiled, from_step, step_input)
        content = encode(run_input) if other_input else record.input
        source = compiled if other_input else None
        return await self._start(
            saved,
            content,
            RunRequested(kept, lists, inputs),
            correlation_id,
            lambda new_id: first_labels(source, new_id, content, correlation_id, before=record.labels),
            idempotency_key,
            retry_of=run_id,
            trace=trace,
            audit=audit_entry("run", "retry", run_id, from_step=from_step, other_input=other_input),
            fingerprint=encode([run_id, from_step, from_start, other_input, inputs]),
        )

    async def cancel(self, run_id: RunId) -> None:
        check_cancellable(await self._allowed(run_id, "cancelled", _is_not_final))
        await self._put(run_id, "cancel", CancelRequested(), "cancel")

    async def pause(self, run_id: RunId) -> None:
        record = await self._allowed(
            run_id, "paused", lambda status: status in {"PENDING", "RUNNING", "WAITING", "COMPENSATING"}
        )
        check_pausable(record, await self._queries.start_wait(record))
        await self._put(run_id, f"pause/{new_id()}", PauseRequested(), "pause")

    async def resume(self, run_id: RunId) -> None:
        await self._allowed(run_id, "resumed", lambda status: status == "PAUSED")
        await self._put(run_id, f"resume/{new_id()}", ResumeRequested(), "resume")

    async def reply(
        self,
        run_id: RunId,
        step: str,
        reply: ReplyMessage,
        item: str | None = None,
        *,
        question: Json = None,
    ) -> None:
        """
        `item`: the question that is meant, as the inbox names it; left out: the present one.

        `question`: as the A2A caller whose message this is has seen it, for the history of its task.
        """
        asking = await self.asking_step(run_id, step, item)
        record, state = await self._queries.find_step(*asking)
        _check_question(record, state, item, self._clock.now())
        _not_paused(record)
        key = f"reply/{asking.step}/{state.replies}"
        unique = key if asking.run_id == run_id else f"{asking.run_id}/{key}"
        follow_up = _follow_up(run_id, unique, self._clock.now(), question, reply.message)
        given = ReplyGiven(asking.step, reply)
        await self._put(asking.run_id, key, given, "reply", step=asking.step, follow_up=follow_up)

    async def asking_step(self, run_id: RunId, step: str, item: str | None = None) -> AskingStep:
        """The step that a reply to this one answers: itself, or one inside it. Raises `Conflict` if several can be."""
        record, state = await self._queries.find_step(run_id, step)
        if not state.waits_inside and is_child((await self._workflows.compiled_for(record)).plan(step)):
            raise _not_waiting(record, state)
        return asking_step(run_id, state, REPLIED, item)

    async def resolve(self, run_id: RunId, step: str, outcome: ResolvedOutcome, output: Json = None) -> None:
        _, state = await self._queries.find_step(run_id, step)
        run_id, step = asking_step(run_id, state, RESOLVED)
        _, state = await self._queries.find_step(run_id, step)
        if state.status != "OUTCOME_UNKNOWN":
            raise Conflict(
                f"The outcome of step {step} of run {run_id} is already known: {state.status}.",
                fix=f"See its state: trunkline runs show {run_id}.",
            )
        item = OutcomeResolved(step, outcome, msgspec.Raw(encode(output)))
        key = f"resolve/{step}/{state.attempts}"
        await self._put(run_id, key, item, "resolve", step=step, outcome=outcome)

    async def _allowed(self, run_id: RunId, action: str, allows: Callable[[RunStatus], bool]) -> RunRecord:
        record, _ = await self._queries.find(run_id)
        if not allows(record.status):
            raise _cannot_be(record, action)
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
        follow_up: FollowUp | None = None,
    ) -> None:
        entry = audit_entry("run", action, run_id, step=step, outcome=outcome)
        await self._intake.put(QueuedInput(run_id, key, item), entry, follow_up)


def _follow_up(
    run_id: RunId, key: str, at: Instant, question: Json, message: CallerMessage | None
) -> FollowUp | None:
    if message is None:
        return None
    return FollowUp(run_id=run_id, key=key, at=at, question=encode(question), answer=encode(message))


def _cannot_be(record: RunRecord, action: str) -> Conflict:
    return Conflict(
        f"Run {record.id} is {record.status} and cannot be {action}.",
        fix=f"See its state: trunkline runs show {record.id}.",
    )


def _is_not_final(status: RunStatus) -> bool:
    return status not in FINAL_RUN_STATUSES


def check_cancellable(record: RunRecord) -> None:
    """Raises `Conflict`. A run that has begun to undo its work goes on with that."""
    if record.compensation is not None and record.compensation.status == "RUNNING":
        raise Conflict(
            f"Run {record.id} is undoing its work and cannot be cancelled.",
            fix=f"Wait until it ends, or pause it: trunkline runs pause {record.id}. If a compensation has failed, you"
            " can give up: trunkline inbox list.",
        )


def check_pausable(record: RunRecord, wait: StartWait | None) -> None:
    """Raises `Conflict`. Flow control starts a run that waits; the run takes no input before."""
    if record.cancel_requested_at is not None and record.status != "COMPENSATING":
        raise Conflict(
            f"Run {record.id} is being cancelled and cannot be paused.",
            fix=f"Wait until it is cancelled, then retry it: trunkline runs retry {record.id}.",
        )
    if wait is not None:
        why = "" if wait.reason is None else f" ({wait.reason})"
        owner, other = f"workflow {record.workflow_name}", ""
        if record.trigger is not None:
            owner = f"trigger {record.trigger}"
            other = (
                " Or pause the trigger, so that it fires no other runs: trunkline triggers pause"
                f" {record.trigger}."
            )
        raise Conflict(
            f"Run {record.id} has not started and cannot be paused, because it waits for the flow control of"
            f" {owner}{why}.",
            fix=f"Cancel it: trunkline runs cancel {record.id}.{other}",
        )


def _ended(run: NewRun, state: RunState) -> tuple[RunRecord, list[StepState]]:
    """A run and its steps as they would be read back."""
    record = msgspec.structs.replace(
        record_of_new_run(run),
        status=state.status,
        version=state.version,
        seq=state.seq,
        output=state.output,
        error=state.error,
        paused=state.paused,
        cancel_requested_at=state.cancel_requested_at,
        started_at=state.started_at,
        finished_at=state.finished_at,
        contexts=state.contexts,
        compensation=state.compensation,
    )
    return record, list(state.steps.values())


def _check_input(workflow: CompiledWorkflow, run_input: Json) -> None:
    findings = workflow.check_input(run_input)
    if findings:
        raise Invalid(
            f"The input does not match the input schema of workflow {workflow.definition.name}.",
            findings=findings,
            fix=f"See the input schema: trunkline workflows show {workflow.definition.name}.",
        )


def _check_question(record: RunRecord, state: StepState, item: str | None, now: Instant) -> None:
    waiting = state.waiting_for
    if state.error is not None and state.error.code == "reply_timed_out":
        raise Conflict(
            f"The reply is too late: {state.error.message} The step has failed.",
            fix=f"Retry the run from this step: trunkline runs retry {record.id} --from-step {state.name}.",
        )
    if state.status != "WAITING" or waiting is None or not waiting.is_question:
        raise _not_waiting(record, state)
    if waiting.until is not None and waiting.until <= now:
        raise Conflict(
            f"The reply is too late: the step {state.name} of run {record.id} waited until "
            f"{rfc3339(waiting.until)}.",
            fix=f"See its state: trunkline runs show {record.id}.",
        )
    if item is not None and item != question_id(record.id, state.name, state.attempts, state.replies):
        raise Conflict(
            f"The question {item} has been answered, and step {state.name} of run {record.id} "
            "now asks another one.",
            fix="List the waiting steps: trunkline inbox list.",
        )


def _not_waiting(record: RunRecord, state: StepState) -> Conflict:
    return Conflict(
        f"The step {state.name} of run {record.id} is {state.status} and is not waiting for input.",
        fix=f"See its state: trunkline runs show {record.id}.",
    )


def _not_paused(record: RunRecord) -> None:
    if record.paused:
        raise Conflict(
            f"Run {record.id} is paused, so no call can start.",
            fix=f"Resume it first: trunkline runs resume {record.id}.",
        )
