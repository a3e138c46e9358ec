"""Events: receiving them, signals to runs, and reading what has arrived. The machine decides which step takes one."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from trunkline.errors import Conflict, Invalid, NotFound
from trunkline.id_generation import new_id
from trunkline.ids import RunId
from trunkline.jsontypes import Json, encode
from trunkline.machine.state import FINAL_RUN_STATUSES
from trunkline.machine.steps.wait_for import MAX_TYPE, event_key
from trunkline.services.events.intake import EventIntake
from trunkline.services.runs.queries import RunQueries
from trunkline.stores.base import Store
from trunkline.stores.port.automation.received_events import EventFilter, NewEvent, StoredEvent

# An event says that something has happened; what is longer belongs into a store of its own.
MAX_EVENT_BYTES = 256 * 1024
MAX_EVENTS_AT_ONCE = 500
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


class Events:
    def __init__(self, store: Store, queries: RunQueries, intake: EventIntake) -> None:
        self._store = store
        self._queries = queries
        self._intake = intake

    async def receive(self, events: Sequence[SentEvent]) -> list[str]:
        """
        Stores the events, all or none; their ids, in their order. Durable when it returns.

        An event with the source and the id of an earlier one changes nothing.
        """
        if not 1 <= len(events) <= MAX_EVENTS_AT_ONCE:
            raise Invalid(
                f"A request can carry 1 to {MAX_EVENTS_AT_ONCE} events, but this one has {len(events):,}.",
                fix="Send them in several requests.",
            )
        new = [
            NewEvent(
                id=_checked("id", event.id or new_id(), MAX_ID),
                source=_checked("source", event.source or DEFAULT_SOURCE, MAX_ID),
                type=_checked("type", event.type, MAX_TYPE),
                key=_key(event.key),
                data=_data(event.data),
            )
            for event in events
        ]
        await self._intake.put(new)
        return [event.id for event in new]

    async def signal(self, run_id: RunId, name: str, data: Json, signal_id: str | None = None) -> str:
        """An event for one run; its id."""
        status, _ = await self._queries.status(run_id)
        if status in FINAL_RUN_STATUSES:
            raise Conflict(
                f"Run {run_id} is {status} and takes no signals.",
                fix=f"See its state: trunkline runs show {run_id}.",
            )
        event = NewEvent(
            id=_checked("id", signal_id or new_id(), MAX_ID),
            source=f"signal/{run_id}",
            type=_checked("name", name, MAX_TYPE),
            key=None,
            data=_data(data),
            run_id=run_id,
        )
        await self._intake.put([event])
        return event.id

    async def list(self, where: EventFilter, *, limit: int, before: int | None = None) -> list[StoredEvent]:
        """Newest first."""
        if where.key is not None and where.type is None:
            raise Invalid("'key' requires 'type'.", fix="Add the type of the events: type=TYPE&key=KEY.")
        return await self._store.received_events.page(where, limit=limit, before=before)

    async def get(self, event_id: str) -> StoredEvent:
        found = await self._store.received_events.get(event_id)
        if found is None:
            raise NotFound(
                f"Event {event_id} does not exist. It never arrived, or was deleted after event_retention.",
                fix="List the events: trunkline events list.",
            )
        return found


def _checked(field: str, text: str, most: int) -> str:
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


def _data(value: Json) -> bytes:
    text = encode(value)
    if len(text) > MAX_EVENT_BYTES:
        raise Invalid(
            f"The event's data has {len(text)} bytes, but the limit is {MAX_EVENT_BYTES}.",
            fix="Send a reference to the data instead, such as a URL.",
        )
    return text
