"""The broker inside one process: hands each message to its taker at once, in the publisher's own transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from trunkline.brokers.base import AnyTx, TakeResults, TakeTasks, TaskMessage
from trunkline.messages import AgentResult


class MemoryBroker(Generic[AnyTx]):
    hands_over_in_transaction = True

    def __init__(self) -> None:
        self._take_tasks: list[TakeTasks[AnyTx]] = []
        self._take_results: list[TakeResults[AnyTx]] = []

    def deliver_tasks_to(self, take: TakeTasks[AnyTx]) -> None:
        self._take_tasks.append(take)

    def deliver_results_to(self, take: TakeResults[AnyTx]) -> None:
        self._take_results.append(take)

    async def publish_tasks(self, tx: AnyTx, messages: Sequence[TaskMessage]) -> None:
        for take in self._take_tasks:
            await take(tx, messages)

    async def publish_results(self, tx: AnyTx, results: Sequence[AgentResult]) -> None:
        for take in self._take_results:
            await take(tx, results)
