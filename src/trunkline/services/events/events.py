"""Events: receiving them, signals to runs, and reading what has arrived. The machine decides which step takes one."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.errors import Conflict, Invalid, NotFound
from trunkline.id_generation import new_id
from trunkline.ids import RunId
from trunkline.jsontypes import Json
from trunkline.machine.state import FINAL_RUN_STATUSES
from trunkline.machine.steps.wait_for import MAX_TYPE
from trunkline.services.events.intake import EventIntake
from trunkline.services.events.new_events import MAX_ID, SentEvent, checked_text, event_data, new_event
from trunkline.services.runs.queries import RunQueries
from trunkline.stores.base import Store
from trunkline.stores.port.automation.received_events import EventFilter, NewEvent, StoredEvent

MAX_EVENTS_AT_ONCE = 500


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
        new = [new_event(event) for event in events]
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
            id=checked_text("id", signal_id or new_id(), MAX_ID),
            source=f"signal/{run_id}",
            type=checked_text("name", name, MAX_TYPE),
            key=None,
            data=event_data(data),
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
