"""Triggers, their firings, and the runs that their flow control holds back."""

from __future__ import annotations

import msgspec

from trunkline.agents.call_limits.token_bucket import TokenBucket
from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.messages import StepError
from trunkline.stores.port.automation.triggers import (
    EndedRun,
    Firing,
    PendingFiring,
    QueuedStart,
    TriggerRecord,
)
from trunkline.stores.rows import Row, Value
from trunkline.stores.rows.received_events import stored_event
from trunkline.triggers.flow_control import Gate, GatePolicy, WaitingStart

_TRIGGER_COLUMNS = 9
_EVENT_COLUMNS = 8
# States of a start.
WAITING, RUNNING, ENDED = 0, 1, 2

_policies: msgspec.json.Decoder[GatePolicy] = msgspec.json.Decoder(GatePolicy)
_errors: msgspec.json.Decoder[StepError] = msgspec.json.Decoder(StepError)


def trigger_record(row: Row) -> TriggerRecord:
    trigger_id, name, definition, version, created_at, updated_at, scheduled_at, due, awaits_runs = row
    return TriggerRecord(
        id=trigger_id,
        name=name,
        definition=definition,
        version=version,
        created_at=created_at,
        updated_at=updated_at,
        scheduled_at=scheduled_at,
        due=due,
        awaits_runs=bool(awaits_runs),
    )


def trigger_values(trigger: TriggerRecord) -> tuple[Value, ...]:
    return (
        trigger.id,
        trigger.name,
        trigger.definition,
        trigger.version,
        trigger.created_at,
        trigger.updated_at,
        trigger.scheduled_at,
        trigger.due,
        int(trigger.awaits_runs),
    )


def changed_trigger_values(trigger: TriggerRecord) -> tuple[Value, ...]:
    """Id, definition, version, updated_at, scheduled_at, due, awaits_runs."""
    return (
        trigger.id,
        trigger.definition,
        trigger.version,
        trigger.updated_at,
        trigger.scheduled_at,
        trigger.due,
        int(trigger.awaits_runs),
    )


def pending_firing(row: Row) -> PendingFiring | None:
    """From the columns of the trigger, then of the event, and then of the run: one of these is null."""
    trigger = trigger_record(row[:_TRIGGER_COLUMNS])
    event = row[_TRIGGER_COLUMNS : _TRIGGER_COLUMNS + _EVENT_COLUMNS]
    run = row[_TRIGGER_COLUMNS + _EVENT_COLUMNS :]
    if event[0] is not None:
        return PendingFiring(trigger, stored_event(event))
    if run[0] is None:
        return None
    run_id, workflow, version, status, output, error, correlation_id, depth = run
    return PendingFiring(
        trigger,
        EndedRun(
            id=RunId(run_id),
            workflow=workflow,
            workflow_version=version,
            status=status,
            output=output,
            error=None if error is None else _errors.decode(error),
            correlation_id=correlation_id,
            depth=depth,
        ),
    )


def firing_record(row: Row) -> Firing:
    firing_id, trigger_id, at, outcome, scheduled_at, run_id, reason = row
    return Firing(
        id=firing_id,
        trigger_id=trigger_id,
        at=at,
        outcome=outcome,
        scheduled_at=scheduled_at,
        run_id=run_id,
        reason=reason,
    )


def firing_values(firing: Firing) -> tuple[Value, ...]:
    return (
        firing.id,
        firing.trigger_id,
        firing.at,
        firing.outcome,
        firing.scheduled_at,
        firing.run_id,
        firing.reason,
    )


def start_values(run_id: RunId, start: QueuedStart, now: Instant) -> tuple[Value, ...]:
    """Run id, gate, state, priority, not_before, due, policy."""
    return (run_id, start.gate, WAITING, start.priority, start.not_before, now, encode(start.policy))


def gate_of(rows: list[Row], bucket: Row | None) -> Gate:
    """From run id, state, priority, not_before and policy, oldest first; and tokens and refilled_at."""
    # What the newest one brings counts for all of them.
    policy = _policies.decode(rows[-1][4]) if rows else GatePolicy()
    return Gate(
        policy=policy,
        running=[run_id for run_id, state, *_ in rows if state == RUNNING],
        waiting=[
            WaitingStart(run_id=run_id, priority=priority, not_before=not_before)
            for run_id, state, priority, not_before, _ in rows
            if state == WAITING
        ],
        bucket=None if bucket is None else TokenBucket(bucket[0], Instant(bucket[1])),
    )
