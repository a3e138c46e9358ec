"""Runs with their steps and events, and the steps that wait for a person."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.state import (
    Compensation,
    ParentStep,
    RunState,
    RunStatus,
    StepState,
    StepStatus,
    WaitingFor,
)
from trunkline.messages import StepError, TraceContext
from trunkline.stores.port.automation.triggers import QueuedStart
from trunkline.stores.port.input_queue import Timer
from trunkline.stores.port.run_filters import ANY_RUN, RunFilter


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    id: RunId
    workflow_id: str
    workflow_name: str
    workflow_version: int
    input: bytes
    correlation_id: str
    created_at: Instant
    idempotency_key: str | None = None
    # Of the request that made it: the same key with another digest is another request.
    request_digest: bytes | None = None
    retry_of: RunId | None = None
    trace: TraceContext | None = None
    parent: ParentStep | None = None
    # The block of the workflow that it runs; None: the workflow itself.
    block: str | None = None
    # How many runs led to it: the one that started it as a child, or whose end fired its trigger, and so on.
    depth: int = 0
    # The last agent event that was known when it was accepted: it decides the routes to agents.
    routing_version: int = 0
    # The name of an API key, `kafka:` and a topic, or `trigger:` and a name; None: it is not known.
    started_by: str | None = None
    # The name of the trigger that started it.
    trigger: str | None = None
    # The A2A message that starts it, as `CallerMessage`; it is kept with the published task.
    message: bytes | None = None
    # The conversations with agents that it continues: agent to context id.
    contexts: dict[str, str] = {}
    labels: dict[str, str] = {}
    # What it has to wait for before it starts; None: nothing.
    start: QueuedStart | None = None


class ExistingRun(msgspec.Struct, frozen=True):
    """The run that an idempotency key has made before."""

    id: RunId
    request_digest: bytes


class RunRecord(msgspec.Struct, kw_only=True):
    """A run as the doors show it."""

    id: RunId
    workflow_id: str
    workflow_name: str
    workflow_version: int
    status: RunStatus
    version: int
    seq: int
    input: bytes
    correlation_id: str
    created_at: Instant
    output: bytes | None = None
    error: StepError | None = None
    paused: bool = False
    retry_of: RunId | None = None
    cancel_requested_at: Instant | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None
    contexts: dict[str, str] = {}
    # Of the client that started it.
    trace: TraceContext | None = None
    parent: ParentStep | None = None
    # The block of the workflow that it runs; None: the workflow itself.
    block: str | None = None
    depth: int = 0
    routing_version: int = 0
    started_by: str | None = None
    trigger: str | None = None
    # The A2A message that started it, as `CallerMessage`.
    message: bytes | None = None
    labels: dict[str, str] = {}
    compensation: Compensation | None = None


class EventRecord(msgspec.Struct, frozen=True):
    """One line of a run's history: `data` is JSON text."""

    seq: int
    type: str
    at: Instant
    data: bytes


WaitKind = Literal["input", "auth", "outcome", "person", "compensation"]


class WaitPosition(NamedTuple):
    """Where a step stands among those that wait for a person."""

    since: Instant
    run_id: RunId
    step: str


class WaitingStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step that waits for a person: for an answer, or for word of what became of its call."""

    place: WaitPosition
    workflow_id: str
    workflow_name: str
    workflow_version: int
    block: str | None = None
    attempts: int
    replies: int
    protocol: str | None
    waiting_for: WaitingFor


class Transition(msgspec.Struct, kw_only=True):
    """One run's step forward: written only if its version is still `expected_version`."""

    state: RunState
    expected_version: int
    changed_steps: Sequence[StepState]
    events: Sequence[EventRecord]
    applied: Sequence[int]
    timers: Sequence[Timer] = ()
    dropped_timers: Sequence[str] = ()


class RunReads(Protocol):
    async def get(self, run_id: RunId) -> tuple[RunRecord, list[StepState]] | None:
        """With its steps; the items of a step are read by `items`."""
        ...

    async def page(
        self,
        *,
        limit: int,
        before: RunId | None = None,
        where: RunFilter = ANY_RUN,
        payloads: bool = True,
    ) -> list[RunRecord]:
        """
        Newest first; `before` is the last id seen. Reads about `limit` rows.

        Without `payloads`, input and output are not read and both are empty.
        """
        ...

    async def status(self, run_id: RunId) -> tuple[RunStatus, int] | None:
        """The status and the number of the last event."""
        ...

    async def root(self, run_id: RunId) -> RunId | None:
        """
        The first run of those that led to it: its parent or the run that it retries, the parent of that, and so on.

        Itself if it has neither; None if it does not exist.
        """
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
        The step's items that have started, in their order; `after` is the last index seen.

        With `statuses` only those in one of them. All rows of the run's steps are scanned either way.
        """
        ...

    async def item_counts(self, run_id: RunId) -> dict[str, dict[StepStatus, int]]:
        """How many items of each step are in which status; those that have not started are missing."""
        ...

    async def events(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None
    ) -> list[EventRecord]:
        """
        Oldest first. Reads about `limit` rows.

        With `step`, the run's events behind `after` are scanned within the store until there are enough.
        """
        ...

    async def waiting_steps(
        self,
        *,
        limit: int,
        after: WaitPosition | None = None,
        kind: WaitKind | None = None,
        workflow: str | None = None,
    ) -> list[WaitingStep]:
        """Steps that wait for a person, oldest first; reads about `limit` rows. `workflow` is a name or an id."""
        ...

    async def unfinished_before(self, routes: int) -> int:
        """How many unfinished runs were accepted before this agent event was known."""
        ...


class RunWrites(Protocol):
    async def insert(self, new_runs: Sequence[NewRun]) -> list[ExistingRun | None]:
        """
        For each run: None when it was inserted, or the earlier run with the same idempotency key.

        Where a commit can succeed without its caller knowing, a run whose id exists counts as inserted too.
        """
        ...

    async def unknown(self, run_ids: Collection[RunId]) -> set[RunId]:
        """Those of them that do not exist (any more)."""
        ...

    async def load(
        self, run_ids: Sequence[RunId], outputs_of: Collection[str] | None = ()
    ) -> list[tuple[RunRecord, list[StepState]]]:
        """
        With all their steps, items included, for a decision.

        Of steps that are over, large inputs are not read, and large outputs only those of `outputs_of`; None: of all
        (`StepState.unread_input_bytes`, `unread_output_bytes`).
        """
        ...

    async def labels(
        self, run_ids: Collection[RunId], *, skip_locked: bool = False
    ) -> dict[RunId, dict[str, str]]:
        """
        The labels of those runs that exist. Until this transaction ends, no other changes them.

        `skip_locked`: without those that other transactions are changing. Use it for many runs: two transactions that
        wait for each other's runs would not end.
        """
        ...

    async def set_labels(self, labels: Mapping[RunId, Mapping[str, str]]) -> None:
        """In place of those that the runs had. A transition of a run neither changes nor undoes it."""
        ...

    async def write_transitions(self, transitions: Sequence[Transition]) -> set[RunId]:
        """Write those whose run still has the expected version; returns the run ids of the others."""
        ...

    async def delete_finished(self, before: Instant, limit: int) -> int:
        """Delete whole runs with all that belongs to them; returns how many."""
        ...

    async def delete_lowest(self, run_ids: Collection[RunId], limit: int) -> set[RunId]:
        """
        Delete up to `limit` of these runs and their descendants, the lowest ones that can be deleted; returns them.

        Called until it deletes nothing more, it has deleted the runs with their descendants. What is left cannot be
        deleted yet: a run or a child of it has not ended, one of its calls is in flight, or a trigger has yet to read
        its end.
        """
        ...
