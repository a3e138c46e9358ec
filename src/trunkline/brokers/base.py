"""
The broker: carries messages between executor and bridge.

Publishing is part of the publisher's transaction: a message exists if, and only if, the change that caused it does.
Redelivery, reordering and loss on the way are always safe; the store knows what is still owed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from trunkline.messages import AgentResult, AgentTask, CancelTask

Tx_contra = TypeVar("Tx_contra", contravariant=True)
AnyTx = TypeVar("AnyTx")

TaskMessage: TypeAlias = AgentTask | CancelTask

TakeTasks: TypeAlias = Callable[[AnyTx, Sequence[TaskMessage]], Awaitable[None]]
TakeResults: TypeAlias = Callable[[AnyTx, Sequence[AgentResult]], Awaitable[None]]


class Broker(Protocol[Tx_contra]):
    @property
    def hands_over_in_transaction(self) -> bool:
        """True: what is published is delivered in the same transaction, so nothing of it need be kept to send again."""
        ...

    async def publish_tasks(self, tx: Tx_contra, messages: Sequence[TaskMessage]) -> None: ...

    async def publish_results(self, tx: Tx_contra, results: Sequence[AgentResult]) -> None: ...
