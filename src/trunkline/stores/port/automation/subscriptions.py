"""
Subscriptions to changes, and the deliveries that report changes to their receivers.

A delivery is put in the transaction of its change, with a callback that refers to it (`callbacks.py`). It stays as an
entry of the subscription's history.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId

# pending     it is sent, or sent again
# delivered   its receiver accepted it
# failed      it was given up
DeliveryStatus = Literal["pending", "delivered", "failed"]


class SubscriptionRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    # As `services.subscriptions.definition` wrote it.
    definition: bytes
    # Grows with each change.
    version: int
    created_at: Instant
    updated_at: Instant
    # Since when every attempt has failed, and why the last one did; None: the last one did not fail.
    failing_since: Instant | None = None
    error: str | None = None
    # When it was disabled because of that.
    disabled_at: Instant | None = None


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    # Of version 7.
    id: str
    subscription_id: str
    # The same for every subscription.
    event_id: str
    type: str
    run_id: RunId | None
    # The CloudEvent, as JSON.
    event: bytes
    created_at: Instant
    status: DeliveryStatus = "pending"
    attempts: int = 0
    attempted_at: Instant | None = None
    error: str | None = None


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an attempt to send a delivery."""

    delivery_id: str
    status: DeliveryStatus
    error: str | None = None
    # False: it was given up without one.
    was_sent: bool = True


class SubscriptionReads(Protocol):
    async def get(self, name: str) -> SubscriptionRecord | None: ...

    async def by_id(self, subscription_id: str) -> SubscriptionRecord | None: ...

    async def page(self, *, limit: int, after: str | None = None) -> list[SubscriptionRecord]:
        """In the order of their names; `after` is the last name seen."""
        ...

    async def delivery(self, delivery_id: str) -> Delivery | None: ...

    async def deliveries(
        self, subscription_id: str, *, limit: int, before: str | None = None
    ) -> list[Delivery]:
        """Newest first; `before` is the last id seen."""
        ...


class SubscriptionWrites(Protocol):
    async def all(self) -> list[SubscriptionRecord]:
        """In the order of their names."""
        ...

    async def get(self, name: str) -> SubscriptionRecord | None:
        """No other transaction changes it until this one ends."""
        ...

    async def insert(self, subscription: SubscriptionRecord) -> None:
        """Raises `AlreadyExists` when the name is taken."""
        ...

    async def update(self, subscription: SubscriptionRecord) -> None:
        """Replace all but id, name and time of creation."""
        ...

    async def delete(self, name: str) -> bool:
        """With its deliveries; False when there is no such subscription."""
        ...

    async def note_success(self, subscription_id: str) -> None:
        """An attempt has succeeded: it is not failing any more."""
        ...

    async def note_failure(self, subscription_id: str, error: str, *, disable_before: Instant) -> bool:
        """It is disabled if it has been failing since before that; returns whether it is disabled now."""
        ...

    async def labels_of(self, run_ids: Collection[RunId]) -> dict[RunId, dict[str, str]]:
        """Of those that have any. A block has the labels of the run that it is a part of."""
        ...

    async def put_deliveries(self, deliveries: Sequence[Delivery]) -> None: ...

    async def note_attempts(self, attempts: Sequence[Attempt]) -> None:
        """A delivery that is gone is left out."""
        ...

    async def renew_delivery(self, delivery_id: str) -> bool:
        """It is pending again, with no attempts; False: it is gone, or pending as it is."""
        ...

    async def forget_deliveries(self, before: Instant, limit: int) -> int:
        """Delete old ones; returns how many."""
        ...
