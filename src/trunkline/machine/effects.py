"""What follows from a turn. The driver performs the effects in the transaction that records the events."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.inputs import Input
from trunkline.messages import AgentTask
from trunkline.workflow import Select


class DispatchTask(msgspec.Struct, frozen=True):
    task: AgentTask


class StopTask(msgspec.Struct, frozen=True):
    """Stop the call, and tell the agent where it has a task of its own."""

    task_id: str
    attempt: int
    # Empty: that of the step's definition.
    agent: str = ""


class FindCandidates(msgspec.Struct, frozen=True, kw_only=True):
    """Look up the agents that the step may call; it gets `CandidatesFound`."""

    step: str
    # Given back with them.
    number: int
    skill: str | None
    tags: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    select: Select = "first"
    # Only this one.
    agent: str | None = None
    # All but these.
    without: tuple[str, ...] = ()
    # For a call in addition to the one with that number.
    hedge: bool = False
    # Only those that may be given work that another agent has.
    repeatable: bool = False


class ClaimOutput(msgspec.Struct, frozen=True):
    """Look up an output in the cache, or note that the step needs it; it gets `OutputLookedUp`."""

    step: str
    # Given back.
    number: int
    digest: str


class KeepOutput(msgspec.Struct, frozen=True):
    """Put an output into the cache, and let those know that wait for it."""

    step: str
    digest: str
    output: bytes
    ttl: timedelta
    # What it came from, by which it can be deleted: an agent or nothing.
    agent: str


class ReleaseOutput(msgspec.Struct, frozen=True):
    """The step no longer needs the output: another one that does may do the work."""

    step: str
    digest: str


class StartChildRun(msgspec.Struct, frozen=True):
    """Start a child run for a step; if that is not possible, the step gets `ChildRefused`."""

    run_id: RunId
    step: str
    workflow: str
    # None: the latest.
    version: int | None
    input: bytes
    # Of the parent's own workflow, instead of a whole workflow; None: a run of `workflow`.
    block: str | None = None


class SendRunInput(msgspec.Struct, frozen=True):
    """Puts `item` into the input queue of a run that a step has started."""

    run_id: RunId
    key: str
    item: Input


class StartTimer(msgspec.Struct, frozen=True):
    """Puts `item` into the run's input queue when it is due. `key` is unique for the run."""

    key: str
    due: Instant
    item: Input


class AwaitEvents(msgspec.Struct, frozen=True):
    """
    Bring the step the events of these types that arrive, and those that have arrived since the run was accepted.

    `last`: go on behind this number with those that have arrived already.
    """

    step: str
    attempt: int
    types: tuple[str, ...]
    key: str | None
    is_signal: bool
    last: int | None = None


class StopAwaitingEvents(msgspec.Struct, frozen=True):
    step: str


class ListTask(msgspec.Struct, frozen=True):
    """Show what the step waits for in the inboxes of these people and groups, and in no other."""

    step: str
    people: tuple[str, ...]
    since: Instant
    # When it becomes overdue.
    due: Instant | None = None


class UnlistTask(msgspec.Struct, frozen=True):
    step: str


class CancelTimer(msgspec.Struct, frozen=True):
    key: str


Effect = (
    DispatchTask
    | StopTask
    | FindCandidates
    | ClaimOutput
    | KeepOutput
    | ReleaseOutput
    | StartChildRun
    | SendRunInput
    | StartTimer
    | CancelTimer
    | AwaitEvents
    | StopAwaitingEvents
    | ListTask
    | UnlistTask
)
