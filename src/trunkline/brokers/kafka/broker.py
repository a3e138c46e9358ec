"""
Publishing by way of Kafka: a message goes into the outbox, in the publisher's transaction, and a relay sends it.

A message can be lost on its way, so each task is remembered until its result has come, and sent again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Protocol, TypeAlias

import msgspec

from trunkline.brokers.base import TaskMessage
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.messages import AgentResult, AgentTask, Dispatch, OutgoingMessage, TaskKey, TopicNames
from trunkline.messages.codec import encode_result, encode_task

# Well over the time in which a bridge that has died is replaced: a task that only waits is not sent again.
RESEND_AFTER = timedelta(seconds=30)

PoolOf: TypeAlias = Callable[[str], Awaitable[str | None]]
ReplyPartition: TypeAlias = Callable[[], int | None]


class OutboxWriter(Protocol):
    async def put(self, messages: Sequence[OutgoingMessage]) -> None: ...


class DispatchWriter(Protocol):
    async def put(self, dispatches: Sequence[Dispatch], resend_after: timedelta) -> None: ...


class OutboxTransaction(Protocol):
    """What publishing needs of a store's transaction."""

    @property
    def outbox(self) -> OutboxWriter: ...

    @property
    def dispatches(self) -> DispatchWriter: ...


class KafkaBroker:
    """
    A `Broker`. `pool_of` says which pool of bridges calls an agent.

    `reply_partition` is where the results of tasks should come that are published now; None: where their keys lead.
    """

    hands_over_in_transaction = False

    def __init__(
        self,
        names: TopicNames,
        pool_of: PoolOf,
        *,
        resend_after: timedelta = RESEND_AFTER,
        reply_partition: ReplyPartition = lambda: None,
    ) -> None:
        self._reply_partition = reply_partition
        self._names = names
        self._pool_of = pool_of
        self._resend_after = resend_after

    async def publish_tasks(self, tx: OutboxTransaction, messages: Sequence[TaskMessage]) -> None:
        outgoing: list[OutgoingMessage] = []
        dispatches: list[Dispatch] = []
        partition = self._reply_partition()
        for message, pool in zip(messages, await self._pools(messages), strict=True):
            if isinstance(message, AgentTask):
                task = msgspec.structs.replace(message, pool=pool, reply_partition=partition)
                payload = encode(task)
                key = TaskKey(task.task_id, task.attempt)
                dispatches.append(Dispatch(key, RunId(task.run_id), payload))
                outgoing.append(encode_task(task, self._names.tasks_of(pool), payload))
            else:
                outgoing.append(encode_task(message, self._names.tasks_of(pool)))
        if dispatches:
            await tx.dispatches.put(dispatches, self._resend_after)
        if outgoing:
            await tx.outbox.put(outgoing)

    async def resend_tasks(self, tx: OutboxTransaction, tasks: Sequence[AgentTask]) -> None:
        """Sends tasks again that are among the dispatches already. An agent may have moved to another pool since."""
        pools = await self._pools(tasks)
        partition = self._reply_partition()
        await tx.outbox.put(
            [
                encode_task(
                    msgspec.structs.replace(task, pool=pool, reply_partition=partition),
                    self._names.tasks_of(pool),
                )
                for task, pool in zip(tasks, pools, strict=True)
            ]
        )

    async def publish_results(self, tx: OutboxTransaction, results: Sequence[AgentResult]) -> None:
        await self._put(tx, [encode_result(result, self._names.results) for result in results])

    async def _put(self, tx: OutboxTransaction, outgoing: Sequence[OutgoingMessage]) -> None:
        if outgoing:
            await tx.outbox.put(outgoing)

    async def _pools(self, messages: Sequence[TaskMessage]) -> list[str | None]:
        pools = {agent: await self._pool_of(agent) for agent in {message.agent for message in messages}}
        return [pools[message.agent] for message in messages]
