"""What a store keeps of workflows and runs, as its port hands it over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.state import ParentStep, RunState, RunStatus, StepState, WaitingFor
from trunkline.messages import StepError, TraceContext


class WorkflowVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One immutable version of a workflow."""

    workflow_id: str
    name: str
    version: int
    # The definition as `workflow.load_workflow` canonicalised it: equal content, equal bytes.
    canonical: bytes
    # What the user wrote, as it was written.
    source: bytes
    created_at: Instant


class LastRun(NamedTuple):
    """What a list of workflows shows of a run."""

    id: RunId
    status: RunStatus
    created_at: Instant


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
    # How many runs are above it.
    depth: int = 0
    # The last agent event that was known when it was accepted: by it each agent's side is chosen.
    routing_version: int = 0


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
    # Of whoever asked for it.
    trace: TraceContext | None = None
    parent: ParentStep | None = None
    depth: int = 0
    routing_version: int = 0


class EventRecord(msgspec.Struct, frozen=True):
    """One line of a run's history: `data` is JSON text."""

    seq: int
    type: str
    at: Instant
    data: bytes


class InboxItem(msgspec.Struct, frozen=True):
    """Something for a run to take in. A second item with the same key for the same run is dropped."""

    run_id: RunId
    key: str
    payload: bytes


class WokenRun(msgspec.Struct):
    """A run that has something to take in; claimed until the transaction ends."""

    run_id: RunId
    version: int
    # (row, payload), oldest first.
    items: list[tuple[int, bytes]]


class Timer(msgspec.Struct, frozen=True):
    """Puts `payload` into the run's inbox under `key` when it is due."""

    run_id: RunId
    key: str
    due: Instant
    payload: bytes


WaitKind = Literal["input", "auth", "outcome"]


class WaitPlace(NamedTuple):
    """Where a step stands among those that wait for a person."""

    since: Instant
    run_id: RunId
    step: str


class WaitingStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step that waits for a person: for an answer, or for word of what became of its call."""

    place: WaitPlace
    workflow_id: str
    workflow_name: str
    workflow_version: int
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
