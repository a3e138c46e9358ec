"""Received events and signals."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from msgspec import Meta

from trunkline.api.resources.common import JsonValue, NextCursor, Timestamp, stored_json
from trunkline.clock import rfc3339
from trunkline.stores.port.automation.received_events import StoredEvent


class ReceivedResource(TypedDict):
    """What was accepted."""

    id: Annotated[str, Meta(description="Id of the event. Of a batch: of its first event.")]
    ids: NotRequired[Annotated[list[str], Meta(description="Only for a batch: the ids, in its order.")]]


class ReceivedEventResource(TypedDict):
    """An event that has arrived."""

    id: str
    type: Annotated[str, Meta(description="Of a signal: its name.")]
    key: str | None
    data: JsonValue
    source: str
    at: Annotated[Timestamp, Meta(description="When it arrived.")]
    run_id: Annotated[str | None, Meta(description="Of a signal: the run that it is for. Otherwise null.")]


class ReceivedEventPage(TypedDict):
    items: list[ReceivedEventResource]
    next_cursor: NextCursor


def received_event_resource(event: StoredEvent) -> ReceivedEventResource:
    return {
        "id": event.id,
        "type": event.type,
        "key": event.key,
        "data": stored_json(event.data),
        "source": event.source,
        "at": rfc3339(event.at),
        "run_id": event.run_id,
    }
