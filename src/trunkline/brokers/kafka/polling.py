"""
The thread that polls: everything that is asked of the consumer is asked here.

It tells the event loop what has come, what is not ours any more, and what is wrong; it is told what is settled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from time import monotonic
from typing import NamedTuple, TypeAlias

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from trunkline.brokers.kafka.connection import KafkaConnection, library_log
from trunkline.brokers.kafka.contact import Contact
from trunkline.brokers.kafka.lanes import Lane, size_of
from trunkline.brokers.kafka.words import error_of
from trunkline.messages import BrokerRecord
from trunkline.telemetry import names

log = structlog.stdlib.get_logger()

# How long a settled offset, a stop or a full buffer may wait for the thread's attention when nothing comes.
_POLL_SECONDS = 0.1
_MOST_A_POLL = 500
_FETCH_WAIT_MS = 100
_COMMIT_EVERY_SECONDS = 0.05
_COMMIT_AGAIN_SECONDS = 1.0
_START_AGAIN_SECONDS = 1.0

# A member that is silent for so long is gone, and its partitions go to the others.
SESSION = timedelta(seconds=6)

Arrivals: TypeAlias = Sequence[tuple[Lane, BrokerRecord]]


class Capacity(NamedTuple):
    """How much may wait before the partitions are paused; they go on at half of it."""

    records: int = 5_000
    size: int = 32 * 1024 * 1024


class Listener(NamedTuple):
    """Whom the thread tells; each is called in the thread."""

    arrive: Callable[[Arrivals], None]
    lose: Callable[[Lane], None]
    tell: Callable[[str | None], None]
    # How many records, and bytes, have left the buffer so far.
    gone: Callable[[], tuple[int, int]]


class Poller(threading.Thread):
    def __init__(
        self,
        connection: KafkaConnection,
        group: str,
        topics: Sequence[str],
        capacity: Capacity,
        listener: Listener,
        session: timedelta,
    ) -> None:
        super().__init__(name=f"kafka-{group}", daemon=True)
        self._connection = connection
        self._group = group
        self._topics = list(topics)
        self._capacity = capacity
        self._listener = listener
        self._session_ms = round(session.total_seconds() * 1000)
        self._contact = Contact(connection.servers, topics, listener.tell)
        self._stopping = threading.Event()
        self._lanes: dict[tuple[str, int], Lane] = {}
        # Written by the event loop, emptied here.
        self._settled: dict[Lane, int] = {}
        self._settled_lock = threading.Lock()
        self._commit_at = 0.0
        self._handed = 0
        self._handed_bytes = 0
        self._paused: set[Lane] = set()

    # --- called by the event loop

    def commit(self, offsets: dict[Lane, int]) -> None:
        with self._settled_lock:
            self._settled.update(offsets)

    def stop(self) -> None:
        self._stopping.set()

    # --- the thread

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._consume()
            except KafkaException as exc:
                self._contact.hear(error_of(exc))
                self._stopping.wait(_START_AGAIN_SECONDS)
            except Exception as exc:
                # A thread's outermost loop: one that ended in silence would leave its partitions to nobody.
                log.exception(names.TURN_FAILED)
                self._contact.hear(KafkaError(KafkaError.UNKNOWN, repr(exc)))
                self._stopping.wait(_START_AGAIN_SECONDS)

    def _consume(self) -> None:
        """Until it is stopped, or the consumer is of no more use."""
        consumer = self._consumer()
        try:
            consumer.subscribe(
                self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
            )
            while not self._stopping.is_set():
                self._contact.look(consumer)
                self._commit_settled(consumer)
                self._regulate(consumer)
                self._poll(consumer)
        finally:
            # Leaves the group, which revokes what is assigned; without a broker it only ends.
            consumer.close()
            self._forget(list(self._lanes))

    def _consumer(self) -> Consumer:
        options = self._connection.options(
            group_id=self._group,
            group_protocol="classic",
            partition_assignment_strategy="cooperative-sticky",
            session_timeout_ms=self._session_ms,
            heartbeat_interval_ms=self._session_ms // 3,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            auto_offset_reset="earliest",
            # One request at a time asks a broker for all partitions; one that is assigned later waits for its end.
            fetch_wait_max_ms=_FETCH_WAIT_MS,
            queued_max_messages_kbytes=16 * 1024,
            fetch_queue_backoff_ms=50,
        )
        return Consumer(
            {
                **options,
                "error_cb": self._contact.hear,
                "on_commit": self._committed,
                "logger": library_log(),
            }
        )

    def _poll(self, consumer: Consumer) -> None:
        first = consumer.poll(_POLL_SECONDS)
        if first is None:
            return
        # Not all in one: it would wait until there are so many, or the time is over.
        arrivals = [
            arrival
            for message in (first, *consumer.consume(_MOST_A_POLL, timeout=0))
            if (arrival := self._arrival(message)) is not None
        ]
        if arrivals:
            self._handed += len(arrivals)
            self._handed_bytes += sum(size_of(record) for _, record in arrivals)
            self._contact.works()
            self._listener.arrive(arrivals)

    def _arrival(self, message: Message) -> tuple[Lane, BrokerRecord] | None:
        error = message.error()
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if error is not None:
            if error.fatal():
                raise KafkaException(error)
            self._contact.hear(error, topic)
            return None
        if topic is None or partition is None or offset is None:
            return None
        lane = self._lanes.get((topic, partition))
        return None if lane is None else (lane, _record(topic, partition, offset, message))

    # --- partitions come and go

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._contact.works()
        for each in partitions:
            self._lanes[each.topic, each.partition] = Lane(each.topic, each.partition)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit_at = 0.0
        self._commit_settled(consumer)
        self._lost(consumer, partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = {(each.topic, each.partition) for each in partitions}
        # The library keeps a pause beyond the loss: one that came back later would stand still for ever.
        consumer.resume(_places([lane for lane in self._paused if (lane.topic, lane.partition) in places]))
        self._forget(places)

    def _forget(self, places: Collection[tuple[str, int]]) -> None:
        for place in places:
            lane = self._lanes.pop(place, None)
            if lane is not None:
                self._paused.discard(lane)
                self._listener.lose(lane)

    # --- offsets

    def _commit_settled(self, consumer: Consumer) -> None:
        # Closing would wait for a commit that nobody answers.
        if not self._settled or self._contact.is_broken or monotonic() < self._commit_at:
            return
        with self._settled_lock:
            settled, self._settled = self._settled, {}
        offsets = [
            TopicPartition(lane.topic, lane.partition, offset)
            for lane, offset in settled.items()
            # What is not ours any more is another member's to commit.
            if self._lanes.get((lane.topic, lane.partition)) is lane
        ]
        if not offsets:
            return
        self._commit_at = monotonic() + _COMMIT_EVERY_SECONDS
        try:
            consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as exc:
            self._committed(error_of(exc), offsets)

    def _committed(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        """A commit that failed is made again, unless a later one has taken its place; a second delivery is harmless."""
        failed = [each for each in offsets if error is not None or each.error is not None]
        if not failed:
            return
        reason = error or failed[0].error
        log.debug(names.OFFSETS_NOT_COMMITTED, error=str(reason))
        self._commit_at = monotonic() + _COMMIT_AGAIN_SECONDS
        with self._settled_lock:
            for each in failed:
                lane = self._lanes.get((each.topic, each.partition))
                if lane is not None:
                    self._settled.setdefault(lane, each.offset)

    # --- back-pressure

    def _regulate(self, consumer: Consumer) -> None:
        gone, gone_bytes = self._listener.gone()
        held, held_bytes = self._handed - gone, self._handed_bytes - gone_bytes
        if held >= self._capacity.records or held_bytes >= self._capacity.size:
            flowing = [lane for lane in self._lanes.values() if lane not in self._paused]
            if flowing:
                consumer.pause(_places(flowing))
                self._paused.update(flowing)
        elif self._paused and held <= self._capacity.records // 2 and held_bytes <= self._capacity.size // 2:
            consumer.resume(_places(self._paused))
            self._paused.clear()


def _places(lanes: Sequence[Lane] | set[Lane]) -> list[TopicPartition]:
    return [TopicPartition(lane.topic, lane.partition) for lane in lanes]


def _record(topic: str, partition: int, offset: int, message: Message) -> BrokerRecord:
    found = message.headers() or ()
    headers = found.items() if isinstance(found, dict) else found
    return BrokerRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        key=message.key(),
        value=message.value(),
        headers=tuple((name, _bytes(value)) for name, value in headers),
    )


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""
