"""Triggers, their firings, which runs they have started, and which runs their flow control holds back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.state import RunStatus
from trunkline.messages import StepError
from trunkline.stores.port.automation.received_events import StoredEvent
from trunkline.triggers.flow_control import Gate, GateDecision, GatePolicy, WaitReason

# started     it started a run
# queued      it starts a run when the run of an earlier firing has ended
# skipped     the run of an earlier firing went on
# missed      no executor ran when it was due
# filtered    its filter did not let the delivery, the event or the run through
# failed      no run could be started
FiringOutcome = Literal["started", "queued", "skipped", "missed", "filtered", "failed"]


class TriggerRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    # As `triggers.canonical_form` wrote it.
    definition: bytes
    # Grows with each change.
    version: int
    created_at: Instant
    updated_at: Instant
    # The scheduled instant that comes next; None: there is none, or the trigger is paused.
    scheduled_at: Instant | None = None
    # When an executor has to look at it.
    due: Instant | None = None
    # The end of each of its runs is a reason to look at it.
    awaits_runs: bool = False


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a trigger's history."""

    # Of version 7.
    id: str
    trigger_id: str
    at: Instant
    outcome: FiringOutcome
    # By its schedule.
    scheduled_at: Instant | None = None
    run_id: RunId | None = None
    reason: str | None = None


class RunEnd(NamedTuple):
    """A run that ends in a transaction, and what listens to it."""

    run_id: RunId
    topic: str


class EndedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose end fires a trigger."""

    id: RunId
    workflow: str
    workflow_version: int
    status: RunStatus
    # JSON text.
    output: bytes | None
    error: StepError | None
    correlation_id: str
    depth: int


class PendingFiring(NamedTuple):
    """A reason for a trigger to fire: an event that it listens to has arrived, or a run has ended."""

    trigger: TriggerRecord
    cause: StoredEvent | EndedRun


class TriggerReads(Protocol):
    async def get(self, name: str) -> TriggerRecord | None: ...

    async def by_id(self, trigger_id: str) -> TriggerRecord | None: ...

    async def page(self, *, limit: int, after: str | None = None) -> list[TriggerRecord]:
        """In the order of their names; `after` is the last name seen."""
        ...

    async def last_firings(self, trigger_ids: Collection[str]) -> dict[str, Firing]:
        """The newest one of each trigger that has fired."""
        ...

    async def firings(self, trigger_id: str, *, limit: int, before: str | None = None) -> list[Firing]:
        """Newest first; `before` is the last id seen."""
        ...


class TriggerWrites(Protocol):
    async def get(self, name: str) -> TriggerRecord | None:
        """No other transaction changes it until this one ends."""
        ...

    async def insert(self, trigger: TriggerRecord) -> None:
        """Raises `AlreadyExists` when the name is taken."""
        ...

    async def update(self, triggers: Sequence[TriggerRecord]) -> None:
        """Replace all but id, name and time of creation."""
        ...

    async def delete(self, name: str) -> bool:
        """With its firings; False when there is no such trigger."""
        ...

    async def set_topics(self, trigger_id: str, topics: Collection[str]) -> None:
        """What it listens to from now on."""
        ...

    async def listeners(self, topics: Collection[str]) -> int:
        """How many triggers listen to the topic that most of them listen to."""
        ...

    async def note_run_ends(self, ends: Sequence[RunEnd]) -> bool:
        """Add a pending firing for each trigger that listens; False: none does."""
        ...

    async def has_pending(self) -> bool: ...

    async def take_pending(self, limit: int) -> list[PendingFiring]:
        """
        The oldest ones, which are deleted. Other transactions leave them out until this one ends.

        A pending firing whose run has been deleted meanwhile is left out.
        """
        ...

    async def claim_due(self, limit: int) -> list[TriggerRecord]:
        """Those to look at, the longest due first. Other transactions leave them out until this one ends."""
        ...

    async def next_due(self) -> Instant | None: ...

    async def unfinished_runs(self, names: Collection[str], *, each: int) -> dict[str, list[RunId]]:
        """Runs that these triggers have started and that have not ended, oldest first, at most `each` of one."""
        ...

    async def runs_ended(self, names: Collection[str]) -> bool:
        """Runs of these triggers end in this transaction: those that await it are due. False: none of them does."""
        ...

    async def put_firings(self, firings: Sequence[Firing]) -> None:
        """An entry that exists is replaced."""
        ...

    async def queued_firings(self, trigger_ids: Collection[str], *, each: int) -> dict[str, list[Firing]]:
        """Oldest first, at most `each` of one trigger."""
        ...

    async def forget_firings(self, before: Instant, limit: int) -> int:
        """Delete old ones, except those that are queued; returns how many."""
        ...


class QueuedStart(msgspec.Struct, frozen=True, kw_only=True):
    """What a new run has to wait for."""

    # Whose flow control it is, and the key.
    gate: str
    policy: GatePolicy
    priority: int
    not_before: Instant


class StartWait(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run has not started."""

    # None: it has not been looked at yet.
    reason: WaitReason | None
    not_before: Instant


class StartQueueReads(Protocol):
    async def get(self, run_id: RunId) -> StartWait | None:
        """None: the run does not wait."""
        ...


class StartQueueWrites(Protocol):
    async def put(self, starts: Sequence[tuple[RunId, QueuedStart]]) -> None:
        """Runs that are inserted in this transaction. Their gates are due."""
        ...

    async def runs_ended(self, run_ids: Collection[RunId]) -> bool:
        """Runs end in this transaction: the gates that they have passed, or wait at, are due. False: none did."""
        ...

    async def next_due(self) -> Instant | None: ...

    async def claim(self, limit: int) -> dict[str, Gate]:
        """
        Gates that are due, the longest due first. Other transactions leave them out until this one ends.

        Ended runs are forgotten. A gate may have nothing left.
        """
        ...

    async def settle(self, gate: str, policy: GatePolicy, decision: GateDecision) -> None: ...

    async def forget_rates(self, before: Instant) -> None:
        """Buckets that nothing has been taken from since then."""
        ...
