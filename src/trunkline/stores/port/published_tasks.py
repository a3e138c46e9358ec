"""
Runs that callers started over A2A, as they list them, and the messages that followed the first one.

The row of a task is written with its run, and follows it: `tx.runs.insert` and `tx.runs.write_transitions` keep it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.state import TaskState


class PublishedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a caller started."""

    run_id: RunId
    # `workflows/NAME` or `agents/NAME`.
    publication: str
    # The id of an API key; empty: no keys are in use.
    caller: str
    context_id: str
    state: TaskState
    updated_at: Instant


class TaskPlace(NamedTuple):
    """Where a task stands in a list: the last one of a page."""

    updated_at: Instant
    run_id: RunId


class TaskFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks of one publication and one caller; None asks for nothing in particular."""

    publication: str
    # None: those of all callers.
    caller: str | None
    context_id: str | None = None
    state: TaskState | None = None
    # From this time on.
    since: Instant | None = None


class FollowUp(msgspec.Struct, frozen=True, kw_only=True):
    """A question and the message with which its caller answered it."""

    run_id: RunId
    # That of the input which the message became: a question is answered once.
    key: str
    at: Instant
    # JSON: the question as a message of the agent, and the answer as `CallerMessage`.
    question: bytes
    answer: bytes


class PublishedTaskReads(Protocol):
    async def get(self, run_id: RunId) -> PublishedTask | None: ...

    async def page(
        self, where: TaskFilter, *, limit: int, before: TaskPlace | None = None
    ) -> list[PublishedTask]:
        """Last changed first; `before` is the place of the last one seen."""
        ...

    async def count(self, where: TaskFilter, *, most: int) -> int:
        """How many there are, at most `most`."""
        ...

    async def follow_ups(self, run_id: RunId) -> list[FollowUp]:
        """Oldest first."""
        ...


class PublishedTaskWrites(Protocol):
    async def add_follow_ups(self, follow_ups: Sequence[FollowUp]) -> None:
        """One whose key the run has already is left out."""
        ...
