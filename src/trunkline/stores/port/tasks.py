"""What a store keeps of tasks and calls, as its port hands it over."""

from __future__ import annotations

from typing import Literal

import msgspec

from trunkline.agents import BreakerPolicy
from trunkline.agents.call_limits.breaker import BreakerStatus, CallEnd
from trunkline.agents.call_limits.limit_state import AgentLimitState
from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.messages import AgentTask, TaskKey

# `in_doubt`: may have been called, must not be called again; whoever called it may still bring the answer.
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
    # The agent's, where it has one: how the call ends is to be noted (`note_calls`).
    breaker: BreakerPolicy | None = None
    # Let through to see whether the agent works again.
    is_probe: bool = False


class StoppedTask(msgspec.Struct, frozen=True, kw_only=True):
    """
    A task that is to end, and where it stood.

    `queued` ones are done now; `claimed` ones are in somebody's hands; `remote` ones were claimed by this call, so
    that the agent can be told; `done` ones are told only if the agent waits for a reply. Whoever holds one may die
    before it has ended: `reclaim_tasks` remembers that it is to end.
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

    `holds`: not the end either, the call goes on; whoever takes it over from a dead bridge knows what is written.
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

    @property
    def new_status(self) -> TaskStatus:
        if self.holds:
            return "claimed"
        return "done" if self.poll_at is None else "remote"


class NotedCall(msgspec.Struct, frozen=True):
    """How a call of an agent with a breaker has ended."""

    agent: str
    policy: BreakerPolicy
    end: CallEnd


class BreakerChange(msgspec.Struct, frozen=True):
    """A breaker that has opened or closed."""

    agent: str
    status: BreakerStatus
    reason: str | None = None


class AgentLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent has to do, and what bridges know of it together."""

    at: Instant
    # Claimed by a bridge, or taken by the agent.
    in_flight: int
    queued: int
    state: AgentLimitState


class ExchangeRecord(msgspec.Struct, frozen=True):
    """One HTTP exchange of a step: `record` is JSON text, already redacted and cut."""

    run_id: RunId
    step: str
    attempt: int
    record: bytes
