"""What the machine wishes to be done. The driver performs it, in the transaction that records the events."""

from __future__ import annotations

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.inputs import Input
from trunkline.messages import AgentTask


class DispatchTask(msgspec.Struct, frozen=True):
    task: AgentTask


class StopTask(msgspec.Struct, frozen=True):
    """Stop the call, and tell the agent where it has a task of its own."""

    task_id: str
    attempt: int


class StartRun(msgspec.Struct, frozen=True):
    """Begin a run for a step; where that cannot be, the step is told (`ChildRefused`)."""

    run_id: RunId
    step: str
    workflow: str
    # None: the latest.
    version: int | None
    input: bytes


class TellRun(msgspec.Struct, frozen=True):
    """Puts `item` into the inbox of a run that a step has begun."""

    run_id: RunId
    key: str
    item: Input


class StartTimer(msgspec.Struct, frozen=True):
    """Puts `item` into the run's inbox when it is due. `key` is unique for the run."""

    key: str
    due: Instant
    item: Input


class DropTimer(msgspec.Struct, frozen=True):
    key: str


Effect = DispatchTask | StopTask | StartRun | TellRun | StartTimer | DropTimer
