"""
The broker: carries messages between executor and bridge.

Publishing is part of the publisher's transaction: a message exists if, and only if, the change that caused it does.
Redelivery, reordering and loss on the way are always safe; the store knows what is still owed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from trunkline.messages import AgentResult, AgentTask, BrokerRecord, CancelTask, OutgoingMessage

Tx_contra = TypeVar("Tx_contra", contravariant=True)
AnyTx = TypeVar("AnyTx")

TaskMessage: TypeAlias = AgentTask | CancelTask

TakeTasks: TypeAlias = Callable[[AnyTx, Sequence[TaskMessage]], Awaitable[None]]
TakeResults: TypeAlias = Callable[[AnyTx, Sequence[AgentResult]], Awaitable[None]]


class Broker(Protocol[Tx_contra]):
    @property
    def hands_over_in_transaction(self) -> bool:
        """
        True: what is published is delivered in the same transaction. False: it leaves through the outbox and may be
        lost on the way, so results are kept, and tasks sent again, until they are known to have arrived.
        """
        ...

    async def publish_tasks(self, tx: Tx_contra, messages: Sequence[TaskMessage]) -> None: ...

    async def publish_results(self, tx: Tx_contra, results: Sequence[AgentResult]) -> None: ...


class Undelivered(NamedTuple):
    message: OutgoingMessage
    reason: str


class Producer(Protocol):
    """Brings messages from the outbox to their topics."""

    async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
        """
        Returns when each message is safe with the broker or has been given up, after 5 s at most; those given up.

        Raises `Unavailable` when the broker cannot be reached: then all count as not delivered.
        """
        ...


class RecordSource(Protocol):
    """Records of some topics for one group of consumers: each comes to one member, at least once."""

    @property
    def failure(self) -> str | None:
        """Why nothing can come at present, for /readyz."""
        ...

    def waiting(self, limit: int) -> Sequence[BrokerRecord]:
        """Those that came and are not settled, oldest first; the same ones again until they are settled."""
        ...

    def settle(self, records: Sequence[BrokerRecord]) -> None:
        """They are durable elsewhere: the group need not get them again."""
        ...

    def on_arrival(self, notify: Callable[[], None]) -> None: ...


class ConsumerGroup(NamedTuple):
    """Processes that share the records of a topic among them."""

    name: str
    topic: str
    # Of the processes.
    role: str
    pool: str | None = None


class Lag(NamedTuple):
    """How far a group is behind."""

    group: ConsumerGroup
    # Records that it has not settled; None: not known.
    waiting: int | None
    partitions: int | None
    # Why it is not known.
    failure: str | None = None
