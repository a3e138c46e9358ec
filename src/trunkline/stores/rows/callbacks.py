"""Callbacks, as rows."""

from __future__ import annotations

from collections.abc import Iterable

from trunkline.clock import Instant
from trunkline.stores.port.automation.callbacks import CallbackQueue, ClaimedQueue, StoredCallback
from trunkline.stores.rows import Row

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
