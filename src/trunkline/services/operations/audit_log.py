"""
The audit log: an entry for every change that a person makes, in the transaction of the change itself.

The API authenticates the caller (`acting`), a service only says what it does (`audit_entry`). An entry names what was
changed, and never holds what was sent.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import UNSET, UnsetType

from trunkline.id_generation import new_id
from trunkline.jsontypes import Json, encode
from trunkline.stores.base import Store
from trunkline.stores.port.operations import AuditEntry, AuditKind, NewAuditEntry

_who: ContextVar[str | None] = ContextVar("who", default=None)


@contextmanager
def acting(who: str | None) -> Generator[None]:
    """What is changed while the block runs is changed by the key of this name; None: no keys are in use."""
    before = _who.set(who)
    try:
        yield
    finally:
        _who.reset(before)


def audit_entry(
    kind: AuditKind, action: str, subject: str, *, who: str | UnsetType | None = UNSET, **detail: Json
) -> NewAuditEntry:
    """`who`: where something else than the key says it. Details that are None are left out."""
    said = {name: value for name, value in detail.items() if value is not None}
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
