"""Workflows, runs and steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.machine.state import NO_DETAILS, CallDetails, Compensation, ParentStep, StepState, WaitingFor
from trunkline.messages import StepError, TraceContext
from trunkline.stores.port.human_tasks import ListedTask, TaskComment
from trunkline.stores.port.runs import NewRun, RunRecord, Transition, WaitingStep, WaitPosition
from trunkline.stores.port.workflows import SavedSchema, WorkflowVersion
from trunkline.stores.rows import Row, Value

_errors: msgspec.json.Decoder[StepError] = msgspec.json.Decoder(StepError)
_waits: msgspec.json.Decoder[WaitingFor] = msgspec.json.Decoder(WaitingFor)
_call_details: msgspec.json.Decoder[CallDetails] = msgspec.json.Decoder(CallDetails)
_warnings: msgspec.json.Decoder[tuple[str, ...]] = msgspec.json.Decoder(tuple[str, ...])
_compensations: msgspec.json.Decoder[Compensation] = msgspec.json.Decoder(Compensation)
_texts: msgspec.json.Decoder[dict[str, str]] = msgspec.json.Decoder(dict[str, str])


def workflow_version(row: Row) -> WorkflowVersion:
    workflow_id, name, version, canonical, source, created_at = row
    return WorkflowVersion(
        workflow_id=workflow_id,
        name=name,
        version=version,
        canonical=canonical,
        source=source,
        created_at=Instant(created_at),
    )


def workflow_version_values(version: WorkflowVersion) -> tuple[Value, ...]:
    return (version.workflow_id, version.version, version.canonical, version.source, version.created_at)


def saved_schema(row: Row) -> SavedSchema:
    name, schema, version, created_at, updated_at = row
    return SavedSchema(
        name=name,
        schema=schema,
        version=version,
        created_at=Instant(created_at),
        updated_at=Instant(updated_at),
    )


def new_run_values(run: NewRun) -> tuple[Value, ...]:
    """
    Id, workflow id, name and version, input, correlation id, idempotency key, request digest, retry_of, created_at,
    traceparent, tracestate, parent id and step, depth, routes, started_by, trigger_name, message, contexts, labels,
    block.
    """
    return (
        run.id,
        run.workflow_id,
        run.workflow_name,
        run.workflow_version,
        run.input,
        run.correlation_id,
        run.idempotency_key,
        run.request_digest,
        run.retry_of,
        run.created_at,
        *((None, None) if run.trace is None else (run.trace.traceparent, run.trace.tracestate)),
        *(run.parent or (None, None)),
        run.depth,
        run.routing_version,
        run.started_by,
        run.trigger,
        run.message,
        encode(run.contexts) if run.contexts else None,
        encode_labels(run.labels),
        run.block,
    )


def encode_labels(labels: Mapping[str, str]) -> bytes | None:
    return encode(labels) if labels else None


def decode_labels(stored: bytes | None) -> dict[str, str]:
    return {} if stored is None else _texts.decode(stored)


def label_values(run_id: RunId, labels: Mapping[str, str]) -> list[tuple[Value, ...]]:
    """Rows of the table by which runs are found: run id, key, value."""
    return [(run_id, key, value) for key, value in labels.items()]


def record_of_new_run(run: NewRun) -> RunRecord:
    """A run as it is read back after it was inserted."""
    return RunRecord(
        id=run.id,
        workflow_id=run.workflow_id,
        workflow_name=run.workflow_name,
        workflow_version=run.workflow_version,
        status="PENDING",
        version=0,
        seq=0,
        input=run.input,
        correlation_id=run.correlation_id,
        created_at=run.created_at,
        retry_of=run.retry_of,
        trace=run.trace,
        parent=run.parent,
        block=run.block,
        depth=run.depth,
        routing_version=run.routing_version,
        started_by=run.started_by,
        trigger=run.trigger,
        message=run.message,
        contexts=run.contexts,
        labels=run.labels,
    )


def run_record(row: Row) -> RunRecord:
    (
        run_id, workflow_id, workflow_name, workflow_version, status, version, seq, input_, correlation_id, created_at,
        output, error, paused, retry_of, cancel_requested_at, started_at, finished_at, contexts, traceparent,
        tracestate, parent_id, parent_step, depth, routes, started_by, trigger_name, message,
        labels, block, compensation,
    ) = row  # fmt: skip
    return RunRecord(
        id=run_id,
        workflow_id=workflow_id,
        workflow_name=workflow_name,
        workflow_version=workflow_version,
        status=status,
        version=version,
        seq=seq,
        input=input_,
        correlation_id=correlation_id,
        created_at=created_at,
        output=output,
        error=None if error is None else _errors.decode(error),
        paused=bool(paused),
        retry_of=retry_of,
        cancel_requested_at=cancel_requested_at,
        started_at=started_at,
        finished_at=finished_at,
        contexts={} if contexts is None else _texts.decode(contexts),
        trace=None if traceparent is None else TraceContext(traceparent, tracestate),
        parent=None if parent_id is None else ParentStep(parent_id, parent_step),
        block=block,
        depth=depth,
        routing_version=routes,
        started_by=started_by,
        trigger=trigger_name,
        message=message,
        labels=decode_labels(labels),
        compensation=None if compensation is None else _compensations.decode(compensation),
    )


def transition_values(transition: Transition) -> tuple[Value, ...]:
    """
    Id, expected version, status, version, seq, output, error, paused, contexts, cancel_requested_at, started_at,
    finished_at, compensation.
    """
    state = transition.state
    return (
        state.id,
        transition.expected_version,
        state.status,
        state.version,
        state.seq,
        state.output,
        None if state.error is None else encode(state.error),
        int(state.paused),
        encode(state.contexts) if state.contexts else None,
        state.cancel_requested_at,
        state.started_at,
        state.finished_at,
        None if state.compensation is None else encode(state.compensation),
    )


def step_values(run_id: RunId, step: StepState, workflow: str) -> tuple[Value, ...]:
    """
    Run id, the columns that `step_state` reads, and by which a step that waits for a person is found: waiting_kind,
    waiting_since, waiting_workflow.
    """
    waiting = step.waiting_for
    if waiting is None or not waiting.is_for_a_person:
        wait = (None, None, None)
    else:
        wait = (waiting.kind, waiting.since or step.started_at, workflow)
    return (
        run_id,
        step.name,
        step.status,
        step.attempts,
        step.answered_failures,
        step.replies,
        step.protocol,
        step.context_id,
        step.remote_task_id,
        step.reply,
        step.input,
        step.output,
        None if step.error is None else encode(step.error),
        encode(step.warnings) if step.warnings else None,
        None if waiting is None else encode(waiting),
        step.started_at,
        step.finished_at,
        None if step.call_details is NO_DETAILS else encode(step.call_details),
        *wait,
    )


def step_state(row: Row) -> StepState:
    (
        name, status, attempts, answered_failures, replies, protocol, context_id, remote_task_id, reply, input_,
        output, error, warnings, waiting_for, started_at, finished_at, call_details,
    ) = row  # fmt: skip
    return StepState(
        name=name,
        status=status,
        attempts=attempts,
        answered_failures=answered_failures,
        replies=replies,
        protocol=protocol,
        context_id=context_id,
        remote_task_id=remote_task_id,
        reply=reply,
        input=input_,
        output=output,
        error=None if error is None else _errors.decode(error),
        warnings=() if warnings is None else _warnings.decode(warnings),
        waiting_for=None if waiting_for is None else _waits.decode(waiting_for),
        started_at=started_at,
        finished_at=finished_at,
        call_details=NO_DETAILS if call_details is None else _call_details.decode(call_details),
    )


def waiting_step(row: Row) -> WaitingStep:
    since, run_id, step, workflow_id, name, version, block, attempts, replies, protocol, waiting_for = row
    return WaitingStep(
        place=WaitPosition(since, run_id, step),
        workflow_id=workflow_id,
        workflow_name=name,
        workflow_version=version,
        block=block,
        attempts=attempts,
        replies=replies,
        protocol=protocol,
        waiting_for=_waits.decode(waiting_for),
    )


# Of a task that is in the inbox of nobody in particular. No person has this name.
NOBODY = ""


def listed_values(tasks: Sequence[ListedTask]) -> list[tuple[RunId, str, str, Instant, Instant | None]]:
    """Run id, step, person, since, due."""
    return [
        (task.run_id, task.step, person, task.since, task.due)
        for task in tasks
        for person in dict.fromkeys(task.people or (NOBODY,))
    ]


def task_comment(row: Row) -> TaskComment:
    at, by, text = row
    return TaskComment(at=at, by=by, text=text)
