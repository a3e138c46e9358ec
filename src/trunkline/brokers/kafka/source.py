"""
From the topics into the process: records wait here until they are settled, and only then do offsets move.

The event loop owns the records; a thread (`consumer_thread.py`) owns the consumer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

from trunkline.brokers.kafka.connection import KafkaConnection
from trunkline.brokers.kafka.consumer_health import no_answer_yet
from trunkline.brokers.kafka.consumer_thread import (
    SESSION,
    Arrivals,
    BufferCapacity,
    ConsumerCallbacks,
    ConsumerThread,
)
from trunkline.brokers.kafka.partitions import AssignedPartition, PendingRecords
from trunkline.messages import BrokerRecord

# A consumer that cannot leave its group in this time is left to its session's end.
_LEAVE_SECONDS = 1.5


class KafkaSource:
    """A `Source`; made by `open_source`."""

    def __init__(
        self,
        connection: KafkaConnection,
        *,
        group: str,
        topics: Sequence[str],
        capacity: BufferCapacity,
        session: timedelta,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting = PendingRecords()
        self._notify: Callable[[], None] = _ignore_arrival
        self.failure: str | None = no_answer_yet(connection.servers)
        callbacks = ConsumerCallbacks(
            self._schedule_arrival, self._schedule_loss, self._schedule_failure, self._removed
        )
        self._thread = ConsumerThread(connection, group, topics, capacity, callbacks, session)

    def waiting(self, limit: int) -> Sequence[BrokerRecord]:
        return self._waiting.first(limit)

    def settle(self, records: Sequence[BrokerRecord]) -> None:
        advanced = self._waiting.settle(records)
        if advanced:
            self._thread.commit({partition: partition.committable for partition in advanced})

    def on_arrival(self, notify: Callable[[], None]) -> None:
        self._notify = notify

    @property
    def assigned(self) -> Sequence[int]:
        """The numbers of the partitions whose records come here at present."""
        return self._thread.assigned

    def start(self) -> None:
        self._thread.start()

    def request_leave(self) -> None:
        """Lets several sources leave at the same time, because each takes a moment."""
        self._thread.stop()

    async def stop(self) -> None:
        """Leaves the group, so that others take over at once."""
        self._thread.stop()
        await asyncio.to_thread(self._thread.join, _LEAVE_SECONDS)

    # --- called by the thread

    def _schedule_arrival(self, arrivals: Arrivals) -> None:
        self._schedule(partial(self._arrive, arrivals))

    def _schedule_loss(self, partition: AssignedPartition) -> None:
        self._schedule(partial(self._waiting.drop, partition))

    def _schedule_failure(self, failure: str | None) -> None:
        self._schedule(partial(self._set_failure, failure))

    def _removed(self) -> tuple[int, int]:
        return self._waiting.gone, self._waiting.gone_bytes

    def _schedule(self, do: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(do)
        except RuntimeError:
            # The loop has ended while the consumer could not leave its group.
            self._thread.stop()

    # --- in the loop

    def _arrive(self, arrivals: Arrivals) -> None:
        self._waiting.arrive(arrivals)
        self._notify()

    def _set_failure(self, failure: str | None) -> None:
        self.failure = failure


def _ignore_arrival() -> None:
    """The default until a listener for arrivals is set."""


@asynccontextmanager
async def open_source(
    connection: KafkaConnection,
    *,
    group: str,
    topics: Sequence[str],
    capacity: BufferCapacity | None = None,
    session: timedelta = SESSION,
) -> AsyncGenerator[KafkaSource]:
    source = KafkaSource(
        connection, group=group, topics=topics, capacity=capacity or BufferCapacity(), session=session
    )
    source.start()
    try:
        yield source
    finally:
        await source.stop()
