"""Triggers and their firings."""

from __future__ import annotations

from trunkline.stores.port.automation.triggers import Firing, TriggerRecord
from trunkline.stores.rows import Row, Value


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
