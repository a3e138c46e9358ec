"""Events that other systems have sent, signals to runs, and the steps that wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId


class NewEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event to store. Two with the same source and id are one."""

    id: str
    source: str
    type: str
    key: str | None
    # JSON text.
    data: bytes
    # Of a signal: the run that it is for.
    run_id: RunId | None = None


class StoredEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event as it is stored; `number` counts up in the order of arrival."""

    number: int
    id: str
    source: str
    type: str
    key: str | None
    data: bytes
    at: Instant
    run_id: RunId | None = None


class EventWait(msgspec.Struct, frozen=True, kw_only=True):
    """A step that waits for events of some types, or for a signal to its run."""

    run_id: RunId
    step: str
    attempt: int
    types: tuple[str, ...]
    # None: with any key, or none.
    key: str | None
    is_signal: bool
    # Of those that have arrived already, the ones behind this number; None: all since the run was accepted.
    last: int | None = None


class WaitingAttempt(NamedTuple):
    run_id: RunId
    step: str
    attempt: int


class EventMatch(NamedTuple):
    """An event, and a step that waits for its type and key."""

    place: WaitingAttempt
    event: StoredEvent


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events are listed; None: all."""

    type: str | None = None
    key: str | None = None
    run_id: RunId | None = None


class ReceivedEventReads(Protocol):
    async def page(self, where: EventFilter, *, limit: int, before: int | None = None) -> list[StoredEvent]:
        """Newest first; `before` is the last number seen."""
        ...

    async def get(self, event_id: str) -> StoredEvent | None:
        """The latest one with this id: two sources may give the same."""
        ...


class ReceivedEventWrites(Protocol):
    """
    An event and a step that waits for it find each other, whichever of them is written first: by `put` or by
    `await_events`. Transactions that write both kinds at the same time wait for one another where they have a type in
    common.
    """

    async def put(self, events: Sequence[NewEvent], limit: int) -> list[EventMatch]:
        """
        Store those that are new, and find up to `limit` steps that wait for them. Each trigger that listens to the type
        of an event gets a pending firing (`TriggerWrites.take_pending`).

        Where more wait, the events are left over, for `find_more`.
        """
        ...

    async def find_more(self, limit: int) -> list[EventMatch]:
        """Steps that wait for events that were left over, up to `limit`; none: nothing is left over."""
        ...

    async def await_events(self, waits: Sequence[EventWait], limit: int) -> list[list[EventMatch]]:
        """
        Note the waits, and find for each of them up to `limit` events that have arrived since its run was accepted.

        Oldest first. A wait with `last` is noted already.
        """
        ...

    async def stop_awaiting(self, places: Sequence[tuple[RunId, str]]) -> None:
        """Runs and steps that wait no more."""
        ...

    async def delete(self, before: Instant, limit: int) -> int:
        """Delete events that had arrived by then, unless a trigger still has to take them; returns how many."""
        ...
