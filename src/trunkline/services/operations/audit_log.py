"""
The audit log: an entry for every change that a person makes, in the transaction of the change itself.

The API authenticates the caller (`acting`), a service only says what it does (`audit_entry`). An entry names what was
changed, and never holds what was sent.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta

from msgspec import UNSET, UnsetType

from trunkline.clock import Instant
from trunkline.clock import after as later
from trunkline.id_generation import new_id
from trunkline.jsontypes import Json, encode
from trunkline.stores.base import Store
from trunkline.stores.port.operations import (
    ANY_ENTRY,
    AuditEntry,
    AuditFilter,
    AuditKind,
    AuditPosition,
    NewAuditEntry,
)

# How much later than others of its time an entry can appear: longer than any transaction takes.
LATE = timedelta(minutes=1)
_BATCH = 500
BEGINNING = Instant(0)

_who: ContextVar[str | None] = ContextVar("who", default=None)
_via: ContextVar[str | None] = ContextVar("via", default=None)


@contextmanager
def acting(who: str | None, *, via: str | None = None) -> Generator[None]:
    """
    Whatever the block changes or starts is recorded under this name: an API key's; None: no keys are in use.

    `via`: what has authenticated the person, if it was not an API key.
    """
    before, via_before = _who.set(who), _via.set(via)
    try:
        yield
    finally:
        _via.reset(via_before)
        _who.reset(before)


def current_actor() -> str | None:
    """The name that `acting` was given last."""
    return _who.get()


def audit_entry(
    kind: AuditKind, action: str, subject: str, *, who: str | UnsetType | None = UNSET, **detail: Json
) -> NewAuditEntry:
    """`who`: where something else than the key says it. Details that are None are left out."""
    said = {name: value for name, value in {**detail, "via": _via.get()}.items() if value is not None}
    return NewAuditEntry(
        id=new_id(),
        who=_who.get() if isinstance(who, UnsetType) else who,
        kind=kind,
        action=action,
        subject=subject,
        detail=encode(said),
    )


class AuditLog:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(
        self,
        *,
        limit: int,
        before: str | None = None,
        who: str | None = None,
        kind: AuditKind | None = None,
        subject: str | None = None,
    ) -> Sequence[AuditEntry]:
        """Newest first; `before` is the last id seen."""
        return await self._store.audit.page(limit=limit, before=before, who=who, kind=kind, subject=subject)

    async def export(
        self, since: Instant = BEGINNING, where: AuditFilter = ANY_ENTRY
    ) -> AsyncGenerator[Sequence[AuditEntry]]:
        """All entries from a time on, in the order of their times."""
        place = AuditPosition(since, "")
        while True:
            batch = await self._store.audit.page_by_time(limit=_BATCH, after=place, where=where)
            if batch:
                yield batch
            if len(batch) < _BATCH:
                return
            place = AuditPosition(batch[-1].at, batch[-1].id)

    def follow(self, since: Instant = BEGINNING, where: AuditFilter = ANY_ENTRY) -> AuditFollower:
        return AuditFollower(self, since, where)


class AuditFollower:
    """
    Every entry from a time on, each once, also those that others have yet to write.

    Processes write side by side, so an entry can appear after one with a later time. The entries of the last minute are
    read again until a minute has passed without a new one.
    """

    def __init__(
        self,
        log: AuditLog,
        since: Instant,
        where: AuditFilter,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._since = since
        self._where = where
        self._monotonic = monotonic
        # The time of each entry that can come again.
        self._seen: dict[str, Instant] = {}
        self._newest = since
        self._newest_read_at = monotonic()

    async def read(self) -> AsyncGenerator[Sequence[AuditEntry]]:
        """What is new since the last call."""
        async for batch in self._log.export(self._start(), self._where):
            new = [entry for entry in batch if entry.id not in self._seen]
            self._seen.update({entry.id: entry.at for entry in new})
            if new and new[-1].at >= self._newest:
                self._newest, self._newest_read_at = new[-1].at, self._monotonic()
            if new:
                yield new
        start = self._start()
        self._seen = {entry_id: at for entry_id, at in self._seen.items() if at >= start}

    def _start(self) -> Instant:
        waited = timedelta(seconds=self._monotonic() - self._newest_read_at)
        return max(self._since, self._newest if waited > LATE else later(self._newest, -LATE))
