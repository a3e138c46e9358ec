"""
The store: the only truth, behind one port.

A `Transaction` writes; every method is one set-based statement over a whole batch. Reads outside a transaction see
what is committed. Payloads are bytes. Times are `Instant`s, and a transaction's `now` is the database's clock: nothing
else decides leases and timers.

A new backend is one folder beside `sqlite/`, one line in `wiring.py`, and passes `tests/contract`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Literal, Protocol, TypeAlias

import msgspec

from trunkline.agents import Agent
from trunkline.agents.call_limits.breaker import BreakerStatus
from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.state import ParentStep, RunStatus, StepState, StepStatus
from trunkline.messages import Dispatch, OutgoingMessage, TaskKey
from trunkline.stores.port.activity import ActivityReads, ActivityWrites
from trunkline.stores.port.agent_events import AgentRecordReads, AgentRecordWrites
from trunkline.stores.port.credentials import SecretReads, SecretWrites
from trunkline.stores.port.operations import OversightReads, OversightWrites
from trunkline.stores.port.run_filters import ANY_RUN, RunFilter, SavedVersion
from trunkline.stores.port.runs import (
    EventRecord,
    ExistingRun,
    InboxItem,
    LastRun,
    NewRun,
    RunRecord,
    Timer,
    Transition,
    WaitingStep,
    WaitKind,
    WaitPlace,
    WokenRun,
    WorkflowVersion,
)
from trunkline.stores.port.tasks import (
    AgentLoad,
    BreakerChange,
    ClaimedTask,
    ExchangeRecord,
    NotedCall,
    QueuedTask,
    ReclaimedTasks,
    StoppedTask,
    TaskAnswer,
    TaskStatus,
)
from trunkline.stores.port.transfer import Table, TableRow

__all__ = [
    "AgentLoad",
    "ApiKey",
    "Backlog",
    "BreakerChange",
    "ClaimedTask",
    "DeadLetter",
    "Dispatch",
    "EventRecord",
    "ExchangeRecord",
    "ExistingRun",
    "InboxFilled",
    "InboxItem",
    "KeyRole",
    "LastRun",
    "Moved",
    "NewRun",
    "NotedCall",
    "Notice",
    "ParentStep",
    "QueuedTask",
    "ReclaimedTasks",
    "RunRecord",
    "RunsChanged",
    "StoppedTask",
    "Store",
    "TaskAnswer",
    "TaskKey",
    "TaskStatus",
    "TasksRung",
    "Timer",
    "Transaction",
    "Transition",
    "WaitKind",
    "WaitPlace",
    "WaitingStep",
    "WokenRun",
    "WorkflowVersion",
]

# --- what travels


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A record that could not be read or applied: raw, with its origin and the reason."""

    # Of version 7. A second delivery of the same record (its origin and value) stays the letter that it is.
    id: str
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    reason: str
    at: Instant


# --- who may come in

KeyRole = Literal["viewer", "operator", "admin"]


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the API: never the key itself, only its digest."""

    id: str
    name: str
    role: KeyRole
    digest: bytes
    created_at: Instant
    revoked_at: Instant | None = None


# --- doorbells between processes


class RunsChanged(msgspec.Struct, frozen=True):
    """These runs have moved; `ended` ones are final now."""

    run_ids: Sequence[RunId]
    ended: Collection[RunId] = ()


class InboxFilled(msgspec.Struct, frozen=True):
    """Some run has something to take in."""


class TasksRung(msgspec.Struct, frozen=True):
    """Some remote task is due to be asked."""


Notice: TypeAlias = RunsChanged | InboxFilled | TasksRung


# --- moving to another store


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Everything was exported at this time: the store is for reading only."""

    at: Instant


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
    # Queued for an agent whose secret is not here, so that nobody can call it.
    tasks_without_secret: int = 0
    queued_by_agent: dict[str, int] = {}
    # Of the agents that have one.
    breakers: dict[str, BreakerStatus] = {}
    # Unfinished runs that nothing will ever wake; must be 0.
    without_wake_reason: int


class Transaction(AgentRecordWrites, ActivityWrites, SecretWrites, OversightWrites, Protocol):
    """One atomic change. All of it is durable when the `async with` block has ended, or none of it exists."""

    @property
    def now(self) -> Instant: ...

    # agents and workflows
    async def insert_agent(self, agent: Agent) -> None:
        """Raises `AlreadyExists` when the name is taken."""
        ...

    async def update_agent(self, agent: Agent, expected_version: int) -> bool:
        """
        Writes every field of `agent`; False when the stored version is another.

        Under another name or URL, or with other options, it begins afresh: what bridges knew of it is forgotten.
        """
        ...

    async def delete_agent(self, agent_id: str) -> bool:
        """With what is known of it; only what has happened to it stays."""
        ...

    async def reset_agent(self, name: str) -> None:
        """Forgets what bridges know of the agent together: its breaker is closed, its bucket full."""
        ...

    async def insert_workflow_version(self, version: WorkflowVersion) -> None:
        """The caller has read the latest version in this transaction."""
        ...

    async def latest_workflow_version(self, name: str) -> WorkflowVersion | None: ...

    # runs
    async def insert_runs(self, new_runs: Sequence[NewRun]) -> list[ExistingRun | None]:
        """
        For each: None when it was inserted, or the run that its idempotency key has made before.

        Where a commit can happen without its end being heard of, a run that is there already by its id is one that was
        inserted, too.
        """
        ...

    async def put_inbox(self, items: Sequence[InboxItem]) -> None:
        """Items for runs that do not exist (any more) are dropped."""
        ...

    async def claim_woken_runs(self, limit: int) -> list[WokenRun]: ...

    async def unknown_runs(self, run_ids: Collection[RunId]) -> set[RunId]:
        """Those of them that do not exist (any more)."""
        ...

    async def load_runs(self, run_ids: Sequence[RunId]) -> list[tuple[RunRecord, list[StepState]]]: ...

    async def write_transitions(self, transitions: Sequence[Transition]) -> set[RunId]:
        """Writes all whose version did not move; the ids of the others are returned, and nothing of them is written."""
        ...

    async def take_due_timers(self, limit: int) -> int:
        """Moves due timers into the inbox; how many."""
        ...

    async def next_timer(self) -> Instant | None: ...

    # tasks
    async def put_tasks(self, queued: Sequence[QueuedTask]) -> list[bytes]:
        """
        A task that is known already, whatever became of it, stays as it is; one of a run that has ended or is gone is
        dropped.

        The stored results of those that are known: whoever sends a task again has not got its result.
        """
        ...

    async def claim_tasks(
        self, owner: str, limit: int, pools: Collection[str | None] | None = None
    ) -> list[ClaimedTask]:
        """
        Queued tasks whose agents have a free slot, and remote tasks that are due to be asked.

        Of these pools only (None in it: tasks of no pool), or of all. Nothing for an owner whose lease has passed, and
        nothing for an agent whose secret is missing: that waits until the secret is set.

        Of queued tasks no more than the agent's rate and breaker let through at this moment; a token is taken for each.
        What an agent has taken before is asked for at any time.
        """
        ...

    async def hold_lease(self, owner: str, lasts: timedelta, process: str = "") -> None:
        """
        Claims of `owner`, which people know as `process`, are its own for that long from now.

        Where one process owns the store, for ever.
        """
        ...

    async def release_lease(self, owner: str) -> None:
        """At a stop: whatever `owner` still has may be taken by others at once."""
        ...

    async def stopping_tasks(self, owner: str) -> list[ClaimedTask]:
        """Claimed by `owner`, and to end: somebody has stopped them, or their run has ended."""
        ...

    async def held_tasks(self, owner: str) -> list[ClaimedTask]:
        """Claimed by `owner`, and not to end: what it has to call, also by a commit that it was told had failed."""
        ...

    async def stop_tasks(self, owner: str, keys: Sequence[TaskKey]) -> list[StoppedTask]:
        """A task that is not known yet leaves a tombstone, so that it is never called; it is not returned."""
        ...

    async def write_answers(self, owner: str, answers: Sequence[TaskAnswer]) -> set[TaskKey]:
        """
        Keys of those that were not ours any more: nothing of them is written.

        A task that is to end, and whose agent goes on with it, stays claimed, so that the agent can be told.
        """
        ...

    async def reclaim_tasks(self, owner: str, grace: timedelta = timedelta(0)) -> ReclaimedTasks:
        """
        What owners that are gone had claimed is queued again, or asked for where the agent has taken it, except for
        what must not be called again.

        Gone is whose lease has passed; where one process owns the store, everybody else. Nothing while the database
        itself has been up for less than `grace`: the living could not renew their leases while it was down.
        """
        ...

    async def note_calls(self, calls: Sequence[NotedCall]) -> list[BreakerChange]:
        """Counts how calls have ended, in that order; the breakers that have opened or closed by it."""
        ...

    async def next_poll(self) -> Instant | None:
        """
        When there is something to claim without anybody ringing: a remote task to be asked, or a queued one that its
        agent's rate or breaker has kept `claim_tasks` of this transaction from taking.
        """
        ...

    async def ask_soon(self, key: TaskKey) -> bool:
        """
        A remote task is due to be asked at once; a claimed one as soon as it is remote, if it ever is. False: neither.
        """
        ...

    async def put_exchanges(self, exchanges: Sequence[ExchangeRecord]) -> None: ...

    # what travels
    async def put_outbox(self, messages: Sequence[OutgoingMessage]) -> None: ...

    async def take_outbox(self, limit: int) -> list[OutgoingMessage]:
        """
        Deletes what it returns: roll back to keep it. About `limit` messages, none that another transaction has taken.
        """
        ...

    async def put_dispatches(self, dispatches: Sequence[Dispatch], resend_after: timedelta) -> None: ...

    async def take_due_dispatches(self, limit: int, longest: timedelta) -> list[Dispatch]:
        """
        Those to be sent again now; the next time comes after twice as long, at most `longest`. What is due of a run
        that has ended is forgotten instead.
        """
        ...

    async def settle_dispatches(self, keys: Collection[TaskKey]) -> None:
        """Their results are in the inbox: they are not sent again, and their stored results are dropped."""
        ...

    async def dispatched(self, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
        """The encoded tasks, for messages that only refer to them; what is settled is missing."""
        ...

    async def stored_results(self, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
        """The encoded results, for messages that only refer to them; what is settled is missing."""
        ...

    async def keep_results(self, results: Mapping[TaskKey, bytes]) -> None:
        """Stores results of tasks that have ended without an answer, as `TaskAnswer.result` does for the others."""
        ...

    async def put_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        """One that is there already stays as it is."""
        ...

    async def take_dead_letter(self, letter_id: str) -> DeadLetter | None:
        """Deletes what it returns."""
        ...

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """What an exception leaves of the block is undone; the transaction itself goes on."""
        ...

    async def announce(self, notice: Notice) -> None:
        """Rings at the other processes when this transaction has committed; may be lost."""
        ...

    # keys
    async def insert_key(self, key: ApiKey) -> None:
        """Raises `AlreadyExists` when a key of that name is in use."""
        ...

    async def revoke_key(self, name_or_id: str) -> ApiKey | None:
        """The key as it is now; None when there is none in use."""
        ...

    async def delete_finished_runs(self, before: Instant, limit: int) -> int:
        """Whole runs with all that belongs to them; how many."""
        ...

    # moving to another store
    async def mark_moved(self) -> None:
        """
        Nobody else writes from here on until this transaction ends; after it the store is for reading only.

        Raises `DataInUse` while other processes work with the store. One that has moved before stays as it is.
        """
        ...

    def dump(self, table: Table) -> AsyncGenerator[list[TableRow]]:
        """All rows, in an order in which they can be loaded elsewhere; to be read to the end."""
        ...

    async def load(self, table: Table, rows: Sequence[TableRow]) -> None:
        """What `dump` gave, of whichever backend, into a table that had nothing."""
        ...


class Store(AgentRecordReads, ActivityReads, SecretReads, OversightReads, Protocol):
    """Opened by its backend, e.g. `open_sqlite`; closed by leaving its `async with`."""

    def transaction(self, *, durable: bool = True) -> AbstractAsyncContextManager[Transaction]:
        """
        Not `durable`: it does not wait for the disk, and a crash may undo it after it has ended, as a whole. For what
        is safe to do twice, like taking from the outbox.
        """
        ...

    # agents: lists are in the order of their names, `after` is the last name seen
    async def agent(self, name_or_id: str) -> Agent | None: ...

    async def agents(
        self, *, limit: int, after: str | None = None, protocol: str | None = None
    ) -> list[Agent]: ...

    async def agent_load(self, name: str) -> AgentLoad:
        """Of an agent that nobody has called yet as well."""
        ...

    # workflows: the latest version where none is named
    async def workflow(self, name_or_id: str, version: int | None = None) -> WorkflowVersion | None: ...

    async def workflows(
        self, *, limit: int, after: str | None = None, search: str | None = None
    ) -> list[WorkflowVersion]:
        """`search` is a part of the name, in capitals or not."""
        ...

    async def last_runs(self, names: Sequence[str], *, each: int) -> dict[str, list[LastRun]]:
        """Of the workflows with these names: newest first, at most so many of each. Who has none is not there."""
        ...

    async def workflow_versions(
        self, workflow_id: str, *, limit: int, before: int | None = None
    ) -> list[WorkflowVersion]: ...

    # runs: newest first, `before` is the last id seen
    async def run(self, run_id: RunId) -> tuple[RunRecord, list[StepState]] | None:
        """With its steps; the items of a step are read by `items`."""
        ...

    async def items(
        self,
        run_id: RunId,
        step: str,
        *,
        limit: int,
        after: int = -1,
        statuses: Sequence[StepStatus] = (),
    ) -> list[StepState]:
        """
        Those of the step's items that have begun, in their order; `after` is the last index seen.

        With `statuses` only those in one of them. All rows of the run's steps are walked through either way.
        """
        ...

    async def item_counts(self, run_id: RunId) -> dict[str, dict[StepStatus, int]]:
        """How many items of each step are in which state; those that have not begun are missing."""
        ...

    async def run_status(self, run_id: RunId) -> tuple[RunStatus, int] | None:
        """Status and the number of the last event."""
        ...

    async def runs(
        self,
        *,
        limit: int,
        before: RunId | None = None,
        where: RunFilter = ANY_RUN,
        payloads: bool = True,
    ) -> list[RunRecord]:
        """Costs what it gives. Without `payloads` neither input nor output are read, and both are empty."""
        ...

    async def saved_versions(self) -> list[SavedVersion]:
        """All versions of all workflows, without what they are."""
        ...

    async def events(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None
    ) -> list[EventRecord]:
        """
        Oldest first. Costs what it gives; for those of one `step` the run's events behind `after` are walked until
        there are enough, within the store.
        """
        ...

    async def exchanges(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None, attempt: int | None = None
    ) -> list[tuple[int, bytes]]:
        """
        (row, record), oldest first. Costs what it gives; for those of a `step` or an `attempt` the run's exchanges
        behind `after` are walked likewise, without their records.
        """
        ...

    async def waiting_steps(
        self,
        *,
        limit: int,
        after: WaitPlace | None = None,
        kind: WaitKind | None = None,
        workflow: str | None = None,
    ) -> list[WaitingStep]:
        """Those that wait for a person, oldest first; costs what it gives. `workflow` is a name or an id."""
        ...

    async def dead_letters(self, *, limit: int, before: str | None = None) -> list[DeadLetter]:
        """Newest first; `before` is the last id seen."""
        ...

    async def dead_letter(self, letter_id: str) -> DeadLetter | None: ...

    # keys: in the order of their creation
    async def keys(self, *, limit: int, after: str | None = None) -> list[ApiKey]: ...

    async def key(self, digest: bytes) -> ApiKey | None:
        """The key with that digest, revoked or not."""
        ...

    async def moved(self) -> Moved | None: ...

    async def backlog(self) -> Backlog: ...

    def listen(self, hear: Callable[[Notice], None]) -> AbstractAsyncContextManager[None]:
        """
        Calls `hear` for each notice of any process, this one included, while the block runs.

        Only a doorbell: notices may be lost. Where one process owns the store there are none.
        """
        ...

    async def check(self) -> None:
        """Raises `Unavailable` with the reason when the store cannot be used."""
        ...
