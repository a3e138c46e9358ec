"""A new event: what its sender says, checked, and as it is stored."""

from __future__ import annotations

import re

import msgspec

from trunkline.errors import Invalid
from trunkline.id_generation import new_id
from trunkline.jsontypes import Json, encode
from trunkline.machine.steps.wait_for import MAX_TYPE, event_key
from trunkline.stores.port.automation.received_events import NewEvent

# An event says that something has happened; what is longer belongs into a store of its own.
MAX_EVENT_BYTES = 256 * 1024
MAX_ID = 255
# Of an event whose sender does not say where it comes from.
DEFAULT_SOURCE = "trunkline"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class SentEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event as its sender describes it."""

    type: str
    key: Json | msgspec.UnsetType = msgspec.UNSET
    data: Json = None
    id: str | None = None
    source: str | None = None


def new_event(event: SentEvent) -> NewEvent:
    """Raises `Invalid`."""
    return NewEvent(
        id=checked_text("id", event.id or new_id(), MAX_ID),
        source=checked_text("source", event.source or DEFAULT_SOURCE, MAX_ID),
        type=checked_text("type", event.type, MAX_TYPE),
        key=_key(event.key),
        data=event_data(event.data),
    )


def checked_text(field: str, text: str, most: int) -> str:
    if not 1 <= len(text) <= most or _CONTROL.search(text):
        raise Invalid(
            f"The event's {field} must be a string of 1 to {most} characters without control characters.",
            fix="Correct it, and send the event again.",
        )
    return text


def _key(value: Json | msgspec.UnsetType) -> str | None:
    if value is None or isinstance(value, msgspec.UnsetType):
        return None
    try:
        return event_key(value)
    except ValueError as exc:
        raise Invalid(f"The event's {exc}.", fix="Correct it, and send the event again.") from exc


def event_data(value: Json) -> bytes:
    text = encode(value)
    if len(text) > MAX_EVENT_BYTES:
        raise Invalid(
            f"The event's data has {len(text)} bytes, but the limit is {MAX_EVENT_BYTES}.",
            fix="Send a reference to the data instead, such as a URL.",
        )
    return text
