"""For operators: the audit log, the processes of the system, and how much is waiting."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, NamedTuple, Protocol

import msgspec

from trunkline.agents.call_limits.breaker import BreakerStatus
from trunkline.clock import Instant
from trunkline.machine.state import RunStatus

# What a change was made to.
AuditKind = Literal[
    "run",
    "workflow",
    "agent",
    "cache",
    "migration",
    "key",
    "schema",
    "secret",
    "dead_letter",
    "trigger",
    "subscription",
    "job",
]


class NewAuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    # Of version 7. Written again, it stays the entry that it is.
    id: str
    # The name of a key; None: no keys are in use, or none was required.
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


class AuditPosition(NamedTuple):
    """Where an entry stands among those in the order of their times."""

    at: Instant
    id: str


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """An entry must have all that is given."""

    who: str | None = None
    kind: AuditKind | None = None
    subject: str | None = None


ANY_ENTRY = AuditFilter()


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


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """Counts for the metrics."""

    runs_by_status: dict[str, int]
    queued_tasks: int
    claimed_tasks: int
    remote_tasks: int
    inbox: int
    timers: int
    outbox: int = 0
    dead_letters: int = 0
    # Callbacks that no receiver has accepted yet.
    callbacks: int = 0
    # Push notification configs to which nothing is sent, because too many attempts have failed.
    disabled_push_configs: int = 0
    # Queued for an agent whose secret is missing, so that it cannot be called.
    tasks_without_secret: int = 0
    queued_by_agent: dict[str, int] = {}
    # Of the agents that have one.
    breakers: dict[str, BreakerStatus] = {}
    # Unfinished runs that nothing will ever wake; must be 0.
    without_wake_reason: int


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


class AuditReads(Protocol):
    async def page(
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

    async def page_by_time(
        self, *, limit: int, after: AuditPosition, where: AuditFilter = ANY_ENTRY
    ) -> list[AuditEntry]:
        """
        In the order of their times, oldest first, without the entry at `after`.

        The time of an entry is the one at which its transaction began, so an entry can appear among older ones.
        """
        ...


class AuditWrites(Protocol):
    async def put(self, entries: Sequence[NewAuditEntry]) -> None: ...

    async def delete(self, before: Instant, limit: int) -> int:
        """Delete entries written before that time, oldest first; returns how many."""
        ...


class ProcessReads(Protocol):
    async def page(self, *, limit: int) -> list[SeenProcess]:
        """Processes that have sent a heartbeat and have not stopped; the last to start first."""
        ...


class ProcessWrites(Protocol):
    async def heartbeat(self, process: Process, lasts: timedelta, keep: timedelta) -> None:
        """The process is alive for at least `lasts` from now. Processes not seen for `keep` are deleted."""
        ...

    async def delete(self, process_id: str) -> None:
        """When it stops."""
        ...


class BacklogReads(Protocol):
    async def count(self) -> Backlog:
        """Exact, and slow where there are many runs."""
        ...

    async def queues(self, most: int) -> Queues:
        """No number is greater than `most`."""
        ...
