"""
What a store keeps for those who run the system: who has changed what, which processes live, and how much waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.machine.state import RunStatus

# What a change was made to.
AuditKind = Literal["run", "workflow", "agent", "migration", "key", "secret", "dead_letter"]


class NewAuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    # Of version 7. Written again, it stays the entry that it is.
    id: str
    # The name of a key; None: no keys are in use, or nobody was asked for one.
    who: str | None
    kind: AuditKind
    # A verb, like `cancel`.
    action: str
    # What people know it by: the id of a run, the name of everything else.
    subject: str
    # JSON, an object: what else there is to say; never a secret, never what was sent.
    detail: bytes

    def written(self, at: Instant) -> AuditEntry:
        return AuditEntry(**msgspec.structs.asdict(self), at=at)


class AuditEntry(NewAuditEntry, frozen=True, kw_only=True):
    """Something that a person has changed; entries are added and, in time, deleted, and never changed."""

    at: Instant


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the system, as it describes itself."""

    # Of version 7, another one at each start.
    id: str
    # What people know it by: host and process id.
    name: str
    roles: tuple[str, ...]
    # Of bridges whose tasks it takes.
    pool: str | None = None
    version: str
    started_at: Instant


class SeenProcess(Process, frozen=True, kw_only=True):
    seen_at: Instant
    # False: it should have been heard of again by now.
    alive: bool


class Queues(msgspec.Struct, frozen=True, kw_only=True):
    """
    How much waits where, and for what.

    Each is counted up to a bound, so that the answer comes as soon with a hundred thousand runs as with ten; a number
    that has reached the bound may be greater.
    """

    # Every status.
    runs: dict[RunStatus, int]
    # Inputs that runs have not taken yet.
    inbox: int
    timers: int
    # Those of them whose time has come.
    timers_due: int
    # Transactions whose messages are not on the topics yet.
    outbox: int
    # Sent to bridges, and no result has come back.
    dispatches: int
    tasks_queued: int
    tasks_claimed: int
    # Agents work on these, and are asked again.
    tasks_remote: int
    # Queued for an agent whose secret is not here.
    tasks_without_secret: int
    dead_letters: int


class OversightWrites(Protocol):
    async def put_audit(self, entries: Sequence[NewAuditEntry]) -> None: ...

    async def delete_audit(self, before: Instant, limit: int) -> int:
        """Those written before that time, oldest first; how many."""
        ...

    async def note_process(self, process: Process, lasts: timedelta, keep: timedelta) -> None:
        """It lives, for that long from now at least. One that has not been heard of for `keep` is forgotten."""
        ...

    async def forget_process(self, process_id: str) -> None:
        """At a stop."""
        ...


class OversightReads(Protocol):
    async def audit(
        self,
        *,
        limit: int,
        before: str | None = None,
        who: str | None = None,
        kind: AuditKind | None = None,
        subject: str | None = None,
    ) -> list[AuditEntry]:
        """Newest first; `before` is the last id seen."""
        ...

    async def processes(self, *, limit: int) -> list[SeenProcess]:
        """Those that have said that they live and have not stopped; the last to start first."""
        ...

    async def pools(self, *, limit: int) -> list[str]:
        """Those that agents are in, by name."""
        ...

    async def queues(self, most: int) -> Queues:
        """No number is greater than `most`."""
        ...
