"""
`TaskClaimer`, a part of the bridge's commit loop: queues tasks, claims them, and takes over those of dead bridges.

Calls themselves run elsewhere (`calls/active_calls.py`); nothing here waits for an agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Literal, TypeAlias

import msgspec
import structlog

from trunkline.bridge.calls.active_calls import ActiveCalls
from trunkline.bridge.calls.results import ids_of
from trunkline.bridge.lease_heartbeat import RECLAIM_GRACE, Heartbeat
from trunkline.brokers.base import Broker, TaskMessage
from trunkline.clock import Instant, after
from trunkline.jsontypes import encode
from trunkline.messages import AgentResult, AgentTask, CancelTask
from trunkline.stores.base import ClaimedTask, QueuedTask, StoppedTask, TaskKey, Transaction
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# Connections of the transport that are not for calls, but for cards, tokens and cancellations.
_OTHER_CONNECTIONS = 64
MAX_CALLS = 960
# Bounds the time for which one transaction holds the writer.
MAX_CLAIMS_PER_TURN = 256

# A second after another bridge was told to stop a task, its holder knows.
_CHECK_EVERY = timedelta(seconds=1)

_NOW = Instant(0)

_results: msgspec.json.Decoder[AgentResult] = msgspec.json.Decoder(AgentResult)

Ending: TypeAlias = Literal["cancelled", "unknown"]


class TaskClaimer:
    """
    A part of the commit loop, after the driver: a task is claimed in the turn that made it.

    Once `stopping` is set it claims nothing more; what is under way goes on.
    """

    def __init__(
        self,
        broker: Broker[Transaction],
        calls: ActiveCalls,
        owner: str,
        stopping: asyncio.Event,
        *,
        pools: Collection[str | None] | None = None,
        heartbeat: Heartbeat | None = None,
        max_connections: int = MAX_CALLS + _OTHER_CONNECTIONS,
    ) -> None:
        """`max_connections`: how many the transport can have."""
        self._broker = broker
        self._calls = calls
        self._owner = owner
        self._pools = pools
        # Where others may die and leave tasks behind, and may stop ours.
        self._heartbeat = heartbeat
        self._next_check_at = _NOW
        self._claimed: list[ClaimedTask] = []
        self._stopped: list[StoppedTask] = []
        self._to_cancel: list[ClaimedTask] = []
        # The last commit may have happened though we were told that it failed.
        self._commit_uncertain = False
        self._next_poll: Instant | None = None
        self._more = False
        self._lacked_memory = False
        self._stopping = stopping
        # A call must not wait for a connection: that would count as the agent's time.
        self._max_calls = max(min(MAX_CALLS, max_connections - _OTHER_CONNECTIONS), max_connections // 2)

    async def take_tasks(self, tx: Transaction, messages: Sequence[TaskMessage]) -> None:
        """Takes messages from the broker in; a task that is known already is left alone."""
        tasks = [message for message in messages if isinstance(message, AgentTask)]
        stops = [message for message in messages if isinstance(message, CancelTask)]
        if tasks:
            known = await tx.tasks.put([QueuedTask(task, encode(task)) for task in tasks])
            if known:
                # Sent again, so their results have not arrived.
                await self._broker.publish_results(tx, [_results.decode(result) for result in known])
        if stops:
            keys = [TaskKey(message.task_id, message.attempt) for message in stops]
            self._stopped += await tx.tasks.stop(self._owner, keys)

    async def reclaim(self, tx: Transaction) -> None:
        """Tasks that a process had claimed when it died are called again, are in doubt, or end as they were to end."""
        left = await tx.tasks.reclaim(self._owner, RECLAIM_GRACE)
        if left.in_doubt or left.gone:
            log.warning(log_events.TASKS_RECLAIMED, outcome_unknown=len(left.in_doubt), gone=left.gone)
        results = [_result_without_call(claim, "unknown", tx.now) for claim in left.in_doubt]
        results += [
            _result_without_call(claim, "cancelled", tx.now)
            for claim in left.stopped
            if not claim.remote_task_id
        ]
        await self._publish(tx, results)
        self._stopped += [
            StoppedTask(claim=claim, was="remote") for claim in left.stopped if claim.remote_task_id
        ]

    async def _publish(self, tx: Transaction, results: Sequence[AgentResult]) -> None:
        """Results that no call has brought."""
        if not results:
            return
        if not self._broker.hands_over_in_transaction:
            await tx.tasks.keep_results(
                {TaskKey(result.task_id, result.attempt): encode(result) for result in results}
            )
        await self._broker.publish_results(tx, results)

    async def _check_other_bridges(self, tx: Transaction) -> None:
        """Takes over the tasks of dead bridges, and reads which of our tasks another bridge was asked to stop."""
        if self._heartbeat is None or tx.now < self._next_check_at:
            return
        self._next_check_at = after(tx.now, _CHECK_EVERY)
        self._to_cancel = await tx.tasks.stopping(self._owner)
        if self._heartbeat.has_stable_lease(tx.now):
            await self.reclaim(tx)

    async def work(self, tx: Transaction) -> None:
        await self._check_other_bridges(tx)
        queued = [task.claim for task in self._stopped if task.was == "queued"]
        await self._publish(tx, [_result_without_call(claim, "cancelled", tx.now) for claim in queued])
        # Those results wait in the inbox: the driver had its turn already.
        self._more = bool(queued)
        is_open = not self._stopping.is_set()
        room = min(MAX_CLAIMS_PER_TURN, self._max_calls - self._calls.in_flight)
        # More calls would only wait behind those that wait for memory, with their inputs in it.
        self._lacked_memory = not self._calls.has_memory
        may_claim = is_open and room > 0 and not self._lacked_memory
        self._claimed = await tx.tasks.claim(self._owner, room, self._pools) if may_claim else []
        self._more = self._more or len(self._claimed) == MAX_CLAIMS_PER_TURN
        if self._commit_uncertain and is_open and self._heartbeat is not None:
            held = await tx.tasks.held(self._owner)
            self._claimed = [claim for claim in held if not self._calls.has(claim.key)]
        self._next_poll = await tx.tasks.next_poll() if is_open else None

    def committed(self) -> None:
        for claim in self._claimed:
            self._calls.start(claim)
        for agent in {claim.task.agent for claim in self._claimed if claim.is_probe}:
            log.info(log_events.BREAKER_PROBED, agent=agent)
        for task in self._stopped:
            match task.was:
                case "claimed":
                    self._calls.cancel(task.claim)
                case "remote":
                    self._calls.cancel_remote(task.claim, ended=True)
                case "done" | "in_doubt":
                    if task.claim.remote_task_id is not None:
                        self._calls.cancel_remote(task.claim, ended=False)
                case "queued":
                    pass
        for claim in self._to_cancel:
            self._calls.ensure_ended(claim)
        self._reset()
        self._commit_uncertain = False

    def rolled_back(self) -> None:
        self._reset()
        self._commit_uncertain = True
        self._next_check_at = _NOW

    def _reset(self) -> None:
        self._claimed = []
        self._stopped = []
        self._to_cancel = []

    def next_wake(self) -> Instant | None:
        # The memory that was missing was given back when this turn was committed.
        if self._more or (self._lacked_memory and self._calls.has_memory):
            return _NOW
        return self._next_poll


def _result_without_call(claim: ClaimedTask, status: Ending, at: Instant) -> AgentResult:
    return AgentResult(**ids_of(claim), status=status, at=at)
