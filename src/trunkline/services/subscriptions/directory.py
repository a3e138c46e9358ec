"""
The subscriptions as the processes that report changes know them.

A change of a subscription in this process counts at once, one in another process within a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from trunkline.clock import Instant, after
from trunkline.services.subscriptions.definition import SubscriptionDefinition, subscription_from_canonical
from trunkline.stores.base import Transaction

FRESH_FOR = timedelta(seconds=1)
_NOTHING: frozenset[str] = frozenset()


class KnownSubscription(NamedTuple):
    id: str
    definition: SubscriptionDefinition


class SubscriptionDirectory:
    def __init__(self) -> None:
        self._known: Sequence[KnownSubscription] = ()
        self._types = _NOTHING
        self._read_at = Instant(0)
        self._stale_at = Instant(0)

    async def wanted_types(self, tx: Transaction) -> frozenset[str]:
        """The types that any of them reports, as of a second ago or later."""
        # A clock that was set back makes nothing last longer.
        if not self._read_at <= tx.now < self._stale_at:
            await self._read(tx)
        return self._types

    @property
    def known(self) -> Sequence[KnownSubscription]:
        return self._known

    def forget(self) -> None:
        """Called after each change made in this process."""
        self._stale_at = Instant(0)

    async def _read(self, tx: Transaction) -> None:
        records = await tx.subscriptions.all()
        # A paused one, too: what it would have reported waits until it is resumed.
        self._known = [
            KnownSubscription(record.id, subscription_from_canonical(record.definition)) for record in records
        ]
        self._types = frozenset(type_ for each in self._known for type_ in each.definition.types)
        self._read_at, self._stale_at = tx.now, after(tx.now, FRESH_FOR)
