"""
Callbacks: requests to other systems, stored with the change that they report until they are accepted or given up.

Callbacks of one queue are sent in their order, one at a time; queues are independent of one another. What a payload
says, and where it goes, is known to the code that puts it (`services/callbacks`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Protocol

import msgspec

from trunkline.clock import Instant


class NewCallback(msgspec.Struct, frozen=True, kw_only=True):
    queue: str
    # Names the source that makes requests of it.
    kind: str
    payload: bytes


class StoredCallback(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    payload: bytes
    created_at: Instant


class ClaimedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue that one process may send from until its claim ends."""

    queue: str
    kind: str
    claim: str
    # Attempts in a row that have failed.
    failures: int
    # The oldest ones, in their order.
    callbacks: Sequence[StoredCallback]


class QueueOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a claim."""

    queue: str
    claim: str
    # The ids of callbacks that were accepted or given up.
    ended: Collection[int] = ()
    failures: int = 0
    # When the next one is due, if there is one.
    next_attempt_at: Instant


class CallbackQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue with something in it."""

    queue: str
    kind: str
    failures: int
    next_attempt_at: Instant
    is_claimed: bool
    # How many callbacks wait.
    waiting: int


class CallbackReads(Protocol):
    async def are_due(self) -> bool:
        """Whether a claim would find a queue."""
        ...

    async def queue(self, queue: str) -> CallbackQueue | None:
        """None: nothing waits in it."""
        ...


class CallbackWrites(Protocol):
    """Transactions that put callbacks into the same queue wait for one another, so its order is that of the commits."""

    async def put(self, callbacks: Sequence[NewCallback]) -> None:
        """
        A queue that was empty is due now. One that waits for its next attempt goes on waiting.

        Where a transaction puts several times, each time the queues must come behind those before, in the order of
        their names: two transactions do not wait for one another then.
        """
        ...

    async def claim(self, claim: str, *, limit: int, each: int, lasts: timedelta) -> list[ClaimedQueue]:
        """
        Up to `limit` queues that are due, with up to `each` of their callbacks.

        `claim` must be new. A queue is due again when the claim has ended.
        """
        ...

    async def extend(self, queue: str, claim: str, *, lasts: timedelta) -> bool:
        """The claim lasts so long from now on. False: another process has claimed the queue, or it is gone."""
        ...

    async def settle(self, outcome: QueueOutcome) -> bool:
        """False, and nothing is changed: another process has claimed the queue meanwhile, or it is gone."""
        ...

    async def resume(self, queues: Collection[str]) -> None:
        """They are due now, as if nothing had failed."""
        ...

    async def delete(self, queues: Collection[str]) -> None:
        """With all callbacks in them."""
        ...
