"""
The state of a run, as the machine sees it and as the stores keep it.

A `RunState` is owned by whoever holds it: `evolve` changes it in place. It is worth only as much as the version it
was read at; the commit compares, and a holder that lost drops what it has.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.messages import StepError
from trunkline.workflow import Workflow

RunStatus = Literal["PENDING", "RUNNING", "WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"]
StepStatus = Literal[
    "PENDING", "RUNNING", "WAITING", "COMPLETED", "FAILED", "SKIPPED", "CANCELLED", "OUTCOME_UNKNOWN"
]
RUN_STATUSES: tuple[RunStatus, ...] = (
    "PENDING", "RUNNING", "WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED",
)  # fmt: skip
FINAL_RUN_STATUSES = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
FINAL_STEP_STATUSES = frozenset({"COMPLETED", "FAILED", "SKIPPED", "CANCELLED"})


class WaitingFor(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a step that is not done waits for."""

    kind: Literal["input", "auth", "retry", "remote", "outcome"]
    text: str
    until: Instant | None = None
