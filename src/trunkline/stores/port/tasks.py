"""Tasks for agents, who has claimed them, and the leases of those who claim."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Literal, Protocol

import msgspec

from trunkline.agents import BreakerPolicy
from trunkline.clock import Instant
from trunkline.messages import AgentTask, TaskKey

# `in_doubt`: may have been called, must not be called again; its caller may still deliver the answer.
TaskStatus = Literal["queued", "claimed", "remote", "in_doubt", "done"]


class QueuedTask(msgspec.Struct, frozen=True):
    """A task that the bridge has taken in."""

    task: AgentTask
    payload: bytes


class ClaimedTask(msgspec.Struct, frozen=True, kw_only=True):
    """
    A task that this bridge has claimed; its answer counts only while the epoch is the same.

    With `remote_task_id` the agent has taken the task already: it is asked, not called.
    """

    key: TaskKey
    task: AgentTask
    epoch: int
    remote_task_id: str | None = None
    # The conversation that the agent has put the task into.
    context_id: str | None = None
    # The end of the attempt, known once the agent has taken the task.
    deadline: Instant | None = None
    # When the agent was called first; None: it has not been called yet.
    called_at: Instant | None = None
    polls: int = 0
    # Of the stored task, with its input.
    payload_bytes: int = 0
    # The agent's, where it has one: how the call ends is to be noted (`AgentWrites.record_calls`).
    breaker: BreakerPolicy | None = None
    # Let through to see whether the agent works again.
    is_probe: bool = False


class StoppedTask(msgspec.Struct, frozen=True, kw_only=True):
    """
    A task that is to stop, and its status before.

    `queued` tasks are done now. `claimed` tasks are held by a bridge. `remote` tasks were claimed by this call, so
    that their agents can be asked to cancel. The agent of a `done` task is asked only if it waits for a reply. If the
    holder of a task dies before the task has ended, `reclaim` still knows that it is to stop.
    """

    claim: ClaimedTask
    was: TaskStatus


class ReclaimedTasks(msgspec.Struct, frozen=True, kw_only=True):
    """What an earlier owner had in its hands when it died, apart from what is simply queued again."""

    # Marked `at_most_once`; in doubt from here on, at the same epoch: a late answer still counts.
    in_doubt: list[ClaimedTask]
    # The processes whose leases have passed, as people know them.
    gone: list[str] = []
    # They were to end. Ended here, unless the agent has taken them: then they are claimed, so that it can be told.
    stopped: list[ClaimedTask]


class TaskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a bridge writes about a task it has claimed. `poll_at`: not the end, ask again then.

    `holds`: not the end either, the call continues; a bridge that takes it over can read what is stored.
    """

    key: TaskKey
    epoch: int
    poll_at: Instant | None = None
    holds: bool = False
    remote_task_id: str | None = None
    context_id: str | None = None
    deadline: Instant | None = None
    polls: int = 0
    # The encoded `AgentResult`, kept until the executor has it, where the broker may lose messages.
    result: bytes | None = None
    # When the agent was called, and how that has ended if it has.
    called_at: Instant | None = None
    ended_at: Instant | None = None
    outcome: str | None = None
    error_code: str | None = None
    # What is kept of the task from here on; None: all of it.
    payload: bytes | None = None
    # How large the stored task is, if it is large: some stores write it again with every answer.
    task_bytes: int = 0

    @property
    def new_status(self) -> TaskStatus:
        if self.holds:
            return "claimed"
        return "done" if self.poll_at is None else "remote"


class TaskWrites(Protocol):
    async def put(self, queued: Sequence[QueuedTask]) -> list[bytes]:
        """
        A known task stays as it is, whatever its status; a task of a run that has ended or is gone is dropped.

        Returns the stored results of known tasks: the sender of a repeated task does not have its result.
        """
        ...

    async def claim(
        self, owner: str, limit: int, pools: Collection[str | None] | None = None
    ) -> list[ClaimedTask]:
        """
        Queued tasks whose agents have a free slot, and remote tasks that are due to be polled.

        Only of these pools (None in it: tasks without a pool), or of all. Nothing for an owner whose lease has
        passed, and nothing for an agent whose secret is missing: its tasks wait until the secret is set.

        Of queued tasks no more than the agent's rate and breaker let through at this moment; a token is taken for
        each. Remote tasks are polled at any time.
        """
        ...

    async def stopping(self, owner: str) -> list[ClaimedTask]:
        """Claimed by `owner`, and to end: they were stopped, or their run has ended."""
        ...

    async def held(self, owner: str) -> list[ClaimedTask]:
        """Claimed by `owner`, and not to end: what it has to call, also after a commit that seemed to fail."""
        ...

    async def stop(self, owner: str, keys: Sequence[TaskKey]) -> list[StoppedTask]:
        """An unknown task leaves a tombstone, so that it is never called; it is not returned."""
        ...

    async def write_answers(self, owner: str, answers: Sequence[TaskAnswer]) -> set[TaskKey]:
        """
        Returns the keys of tasks that `owner` does not hold any more: nothing of them is written.

        A task that is to end, and whose agent goes on with it, stays claimed, so that the agent can be told.
        """
        ...

    async def reclaim(self, owner: str, grace: timedelta = timedelta(0)) -> ReclaimedTasks:
        """
        Take over the tasks of owners that are gone: queue them again, or poll them where the agent has taken them.

        A task that must not be called again is in doubt instead. An owner is gone when its lease has passed; where
        one process owns the store, every other owner is gone. Does nothing while the database has been up for less
        than `grace`: owners could not renew their leases while it was down.
        """
        ...

    async def next_poll(self) -> Instant | None:
        """
        When there will be something to claim without a notification: a remote task to poll, or a queued one that its
        agent's rate or breaker has kept `claim` of this transaction from taking.
        """
        ...

    async def poll_soon(self, key: TaskKey) -> bool:
        """
        A remote task is due to be polled at once; a claimed one as soon as it is remote, if it ever is.

        False when it is neither.
        """
        ...

    async def results(self, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
        """The encoded results, for messages that only refer to them; settled ones are missing."""
        ...

    async def keep_results(self, results: Mapping[TaskKey, bytes]) -> None:
        """Store results of tasks that have ended without an answer, as `TaskAnswer.result` does for the others."""
        ...


class LeaseWrites(Protocol):
    """Where one process owns the store, its lease never ends."""

    async def hold(self, owner: str, lasts: timedelta, process: str = "") -> None:
        """Claims of `owner`, which people know as `process`, are its own for that long from now."""
        ...

    async def release(self, owner: str) -> None:
        """When it stops: other owners may take its tasks at once."""
        ...
