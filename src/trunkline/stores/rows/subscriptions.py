"""Subscriptions, their deliveries and their callbacks, as rows."""

from __future__ import annotations

from collections.abc import Iterable

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.automation.callbacks import CallbackQueue, ClaimedQueue, StoredCallback
from trunkline.stores.port.automation.subscriptions import Attempt, Delivery, SubscriptionRecord
from trunkline.stores.rows import Row, Value


def subscription_record(row: Row) -> SubscriptionRecord:
    subscription_id, name, definition, version, created_at, updated_at, failing_since, error, disabled_at = (
        row
    )
    return SubscriptionRecord(
        id=subscription_id,
        name=name,
        definition=definition,
        version=version,
        created_at=created_at,
        updated_at=updated_at,
        failing_since=failing_since,
        error=error,
        disabled_at=disabled_at,
    )


def subscription_values(record: SubscriptionRecord) -> tuple[Value, ...]:
    return (
        record.id,
        record.name,
        record.definition,
        record.version,
        record.created_at,
        record.updated_at,
        record.failing_since,
        record.error,
        record.disabled_at,
    )


def changed_subscription_values(record: SubscriptionRecord) -> tuple[Value, ...]:
    """Id, definition, version, updated_at, failing_since, error, disabled_at."""
    return (
        record.id,
        record.definition,
        record.version,
        record.updated_at,
        record.failing_since,
        record.error,
        record.disabled_at,
    )


def delivery_record(row: Row) -> Delivery:
    (
        delivery_id, subscription_id, event_id, kind, run_id, event, created_at, status, attempts, attempted_at, error,
    ) = row  # fmt: skip
    return Delivery(
        id=delivery_id,
        subscription_id=subscription_id,
        event_id=event_id,
        type=kind,
        run_id=None if run_id is None else RunId(run_id),
        event=bytes(event),
        created_at=Instant(created_at),
        status=status,
        attempts=attempts,
        attempted_at=attempted_at,
        error=error,
    )


def delivery_values(delivery: Delivery) -> tuple[Value, ...]:
    return (
        delivery.id,
        delivery.subscription_id,
        delivery.event_id,
        delivery.type,
        delivery.run_id,
        delivery.event,
        delivery.created_at,
        delivery.status,
        delivery.attempts,
        delivery.attempted_at,
        delivery.error,
    )


def attempt_values(attempt: Attempt) -> tuple[Value, ...]:
    """Id, status, error, how many attempts more."""
    return (attempt.delivery_id, attempt.status, attempt.error, int(attempt.was_sent))


QUEUE_COLUMNS = "queue, kind, failures, next_attempt_at, claim IS NOT NULL"


def stored_callback(row: Row) -> StoredCallback:
    """From id, payload, created_at."""
    number, payload, created_at = row
    return StoredCallback(id=number, payload=bytes(payload), created_at=Instant(created_at))


def claimed_queue(row: Row, claim: str, callbacks: Iterable[Row]) -> ClaimedQueue:
    """From queue, kind, failures, and the rows of its callbacks."""
    queue, kind, failures = row
    return ClaimedQueue(
        queue=queue,
        kind=kind,
        claim=claim,
        failures=failures,
        callbacks=[stored_callback(each) for each in callbacks],
    )


def callback_queue(row: Row) -> CallbackQueue:
    """From `QUEUE_COLUMNS` and the number of callbacks."""
    queue, kind, failures, next_attempt_at, is_claimed, waiting = row
    return CallbackQueue(
        queue=queue,
        kind=kind,
        failures=failures,
        next_attempt_at=Instant(next_attempt_at),
        is_claimed=bool(is_claimed),
        waiting=waiting,
    )
