"""
What travels between processes and to agents: the outbox, sent tasks, dead letters, recorded exchanges, notifications.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Protocol, TypeAlias

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.messages import Dispatch, OutgoingMessage, TaskKey


class RunsChanged(msgspec.Struct, frozen=True):
    """These runs have changed; `ended` ones are final now."""

    run_ids: Sequence[RunId]
    ended: Collection[RunId] = ()


class InputsQueued(msgspec.Struct, frozen=True):
    """
    Some run has queued inputs.

    `wakes`: one of many executors takes them, chosen by this number; None: all of them look.
    """

    wakes: int | None = None


class PollsDue(msgspec.Struct, frozen=True):
    """Some remote task is due to be polled."""


# Sent to other processes after a commit; any of them may be lost.
Notification: TypeAlias = RunsChanged | InputsQueued | PollsDue


class ExchangeRecord(msgspec.Struct, frozen=True):
    """One HTTP exchange of a step: `record` is JSON text, already redacted and cut."""

    run_id: RunId
    step: str
    attempt: int
    record: bytes


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A record that could not be read or applied: raw, with its origin and the reason."""

    # Of version 7. A second delivery of the same record (its origin and value) does not make a second letter.
    id: str
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    reason: str
    at: Instant


class ExchangeReads(Protocol):
    async def page(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None, attempt: int | None = None
    ) -> list[tuple[int, bytes]]:
        """
        (row, record), oldest first.

        Reads about `limit` rows. With `step` or `attempt`, the run's exchanges behind `after` are scanned without
        their records.
        """
        ...


class ExchangeWrites(Protocol):
    async def put(self, exchanges: Sequence[ExchangeRecord]) -> None: ...


class OutboxBatch(msgspec.Struct, frozen=True):
    """What one transaction has put into the outbox."""

    rows: Sequence[int] = ()
    messages: Sequence[OutgoingMessage] = ()


class OutboxWrites(Protocol):
    async def put(self, messages: Sequence[OutgoingMessage]) -> None: ...

    async def reserve(self, lasts: timedelta) -> OutboxBatch:
        """
        All that this transaction has put. No other process takes it before `lasts` has passed.

        Its caller sends it after the commit, and deletes the rows when it has arrived.
        """
        ...

    async def delete(self, rows: Collection[int]) -> None:
        """What has arrived. A row that another transaction is taking is left to it."""
        ...

    async def take(self, limit: int) -> list[OutgoingMessage]:
        """
        Delete and return about `limit` messages, none that another transaction has taken or reserved.

        Roll back to keep them.
        """
        ...


class DispatchWrites(Protocol):
    """Tasks that were sent, until their results have come."""

    async def put(self, dispatches: Sequence[Dispatch], resend_after: timedelta) -> None: ...

    async def take_due(self, limit: int, longest: timedelta) -> list[Dispatch]:
        """
        Those to be sent again now; the next time comes after twice the pause, at most `longest`.

        A due dispatch of a run that has ended is deleted instead.
        """
        ...

    async def settle(self, keys: Collection[TaskKey]) -> None:
        """Their results are in the input queue: they are not sent again, and their stored results are dropped."""
        ...

    async def payloads(self, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
        """The encoded tasks, for messages that only refer to them; settled ones are missing."""
        ...


class DeadLetterReads(Protocol):
    async def get(self, letter_id: str) -> DeadLetter | None: ...

    async def page(self, *, limit: int, before: str | None = None) -> list[DeadLetter]:
        """Newest first; `before` is the last id seen."""
        ...


class DeadLetterWrites(Protocol):
    async def put(self, letters: Sequence[DeadLetter]) -> None:
        """A letter that exists already stays as it is."""
        ...

    async def count(self, limit: int) -> int:
        """How many there are. Counting stops at `limit`."""
        ...

    async def take(self, letter_id: str) -> DeadLetter | None:
        """Delete and return it."""
        ...
