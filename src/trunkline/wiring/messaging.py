"""
How tasks and results travel between executor and bridge.

In one process they are handed over inside the publisher's transaction, so both share one commit loop; otherwise they
leave through the outbox, and each role has a loop of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Protocol

from trunkline.brokers.base import Broker, Lag, RecordSource, TakeTasks
from trunkline.brokers.memory import MemoryBroker
from trunkline.executor.input_sources import queue_results
from trunkline.services.commit_loop import CommitLoop, CommitPart
from trunkline.stores.base import Transaction
from trunkline.wiring.interceptors import Interceptors


class Messaging(Protocol):
    @property
    def broker(self) -> Broker[Transaction]: ...

    async def bridge_parts(self, take: TakeTasks[Transaction], loop: CommitLoop) -> Sequence[CommitPart]:
        """What brings tasks into the bridge's turn, before everything else in it."""
        ...

    async def executor_parts(self, loop: CommitLoop) -> Sequence[CommitPart]:
        """What brings results into the executor's turn, before everything else in it."""
        ...

    async def command_source(self) -> RecordSource | None:
        """What starts runs by messages, if anything does."""
        ...

    async def last_parts(self) -> Sequence[CommitPart]:
        """What has to come last in every turn of one loop; another loop needs parts of its own."""
        ...

    def publishing(self) -> AbstractAsyncContextManager[None]:
        """Messages travel while the block runs; at its end those that have been published are on their way."""
        ...

    async def dependency_problems(self) -> Mapping[str, str | None]:
        """By dependency: why it cannot be used, or None."""
        ...

    def warnings(self) -> Sequence[str]:
        """What stops nothing, and should not stay as it is."""
        ...

    async def consumer_lags(self, pools: Sequence[str]) -> Sequence[Lag] | None:
        """How far each group of consumers is behind, those of these pools too; None: there are none."""
        ...


class MemoryMessaging:
    def __init__(self, interceptors: Interceptors) -> None:
        self._memory: MemoryBroker[Transaction] = MemoryBroker()
        self.broker = interceptors.broker(self._memory)

    async def bridge_parts(self, take: TakeTasks[Transaction], loop: CommitLoop) -> Sequence[CommitPart]:
        del loop
        self._memory.deliver_tasks_to(take)
        return []

    async def executor_parts(self, loop: CommitLoop) -> Sequence[CommitPart]:
        del loop
        self._memory.deliver_results_to(partial(queue_results, final_once=True))
        return []

    async def command_source(self) -> RecordSource | None:
        return None

    async def last_parts(self) -> Sequence[CommitPart]:
        return []

    def publishing(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def dependency_problems(self) -> Mapping[str, str | None]:
        return {}

    def warnings(self) -> Sequence[str]:
        return ()

    async def consumer_lags(self, pools: Sequence[str]) -> Sequence[Lag] | None:
        del pools
        return None
