"""Received events and the steps that wait for them, as rows."""

from __future__ import annotations

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.automation.received_events import (
    EventMatch,
    EventWait,
    StoredEvent,
    WaitingAttempt,
)
from trunkline.stores.rows import Row

EVENT_COLUMNS = "number, id, source, type, key, data, at, run_id"


def stored_event(row: Row) -> StoredEvent:
    """From `EVENT_COLUMNS`."""
    number, id_, source, type_, key, data, at, run_id = row
    return StoredEvent(
        number=number,
        id=id_,
        source=source,
        type=type_,
        key=key,
        data=bytes(data),
        at=Instant(at),
        run_id=None if run_id is None else RunId(run_id),
    )


def event_match(row: Row) -> EventMatch:
    """From run id, step and attempt, and then `EVENT_COLUMNS`."""
    run_id, step, attempt, *event = row
    return EventMatch(WaitingAttempt(RunId(run_id), step, attempt), stored_event(event))


def wait_values(wait: EventWait) -> list[tuple[str, str, str, int, str | None, int]]:
    """A row for each type: run id, step, type, attempt, key, is_signal."""
    return [
        (wait.run_id, wait.step, type_, wait.attempt, wait.key, int(wait.is_signal))
        for type_ in dict.fromkeys(wait.types)
    ]
