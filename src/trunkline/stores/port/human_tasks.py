"""
In whose inbox the steps are that wait for a person, and what people have written to each other about them.

Only steps that have assignees, a due time or a claim are listed here; `store.runs.waiting_steps` has all of them. Both
end with their run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.port.runs import WaitingStep, WaitKind, WaitPosition


class ListedTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a step waits for, in the inboxes of some people and groups."""

    run_id: RunId
    step: str
    # Empty: in the inbox of nobody in particular.
    people: Sequence[str]
    since: Instant
    due: Instant | None


class HumanTaskKey(NamedTuple):
    """One thing that a step asks people: a step may ask more than once."""

    run_id: RunId
    step: str
    attempts: int
    replies: int


class TaskComment(msgspec.Struct, frozen=True, kw_only=True):
    at: Instant
    # None: it is not known.
    by: str | None
    text: str


class ListedTaskFilter(msgspec.Struct, frozen=True, kw_only=True):
    """`people` or `overdue_at` is there."""

    # In the inbox of at least one of them; None: of anyone.
    people: Sequence[str] | None = None
    # Due before this time.
    overdue_at: Instant | None = None
    kind: WaitKind | None = None
    # A name or an id.
    workflow: str | None = None


class HumanTaskReads(Protocol):
    async def page(
        self, where: ListedTaskFilter, *, limit: int, after: WaitPosition | None = None
    ) -> list[WaitingStep]:
        """
        Oldest first; those that are overdue, in the order in which they became it.

        In that order, the time in `after` is the one at which the last step became overdue.
        """
        ...

    async def comments(self, key: HumanTaskKey) -> list[TaskComment]:
        """Oldest first."""
        ...


class HumanTaskWrites(Protocol):
    async def list(self, tasks: Sequence[ListedTask]) -> None:
        """Each replaces what was listed for its step; no step comes twice."""
        ...

    async def unlist(self, places: Sequence[tuple[RunId, str]]) -> None: ...

    async def comment(self, key: HumanTaskKey, comment: TaskComment, *, most: int) -> bool:
        """False: there are `most` comments already, or the run does not exist."""
        ...
