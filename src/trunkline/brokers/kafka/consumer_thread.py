"""
The thread that owns the Kafka consumer: polls, commits, pauses and resumes.

It reports new records, lost partitions and errors to the event loop, which tells it what is settled.
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
from trunkline.brokers.kafka.consumer_health import ConsumerHealth
from trunkline.brokers.kafka.error_messages import error_of
from trunkline.brokers.kafka.partitions import AssignedPartition, size_of
from trunkline.messages import BrokerRecord
from trunkline.telemetry import log_events

log = structlog.stdlib.get_logger()

# While no records arrive, the longest delay before the thread notices a settled offset, a stop or a full buffer.
_POLL_SECONDS = 0.1
_MOST_A_POLL = 500
_FETCH_WAIT_MS = 100
_COMMIT_EVERY_SECONDS = 0.05
_COMMIT_AGAIN_SECONDS = 1.0
_START_AGAIN_SECONDS = 1.0

# After this time without a heartbeat a member is removed, and its partitions go to the others.
SESSION = timedelta(seconds=6)

Arrivals: TypeAlias = Sequence[tuple[AssignedPartition, BrokerRecord]]


class BufferCapacity(NamedTuple):
    """How much may be buffered before the partitions are paused; they resume at half of it."""

    records: int = 5_000
    size: int = 32 * 1024 * 1024


class ConsumerCallbacks(NamedTuple):
    """What the thread calls, in the thread."""

    arrive: Callable[[Arrivals], None]
    lose: Callable[[AssignedPartition], None]
    report_failure: Callable[[str | None], None]
    # How many records, and bytes, have left the buffer so far.
    gone: Callable[[], tuple[int, int]]


class ConsumerThread(threading.Thread):
    def __init__(
        self,
        connection: KafkaConnection,
        group: str,
        topics: Sequence[str],
        capacity: BufferCapacity,
        callbacks: ConsumerCallbacks,
        session: timedelta,
    ) -> None:
        super().__init__(name=f"kafka-{group}", daemon=True)
        self._connection = connection
        self._group = group
        self._topics = list(topics)
        self._capacity = capacity
        self._callbacks = callbacks
        self._session_ms = round(session.total_seconds() * 1000)
        self._health = ConsumerHealth(connection.servers, topics, callbacks.report_failure)
        self._stopping = threading.Event()
        self._partitions: dict[tuple[str, int], AssignedPartition] = {}
        # The numbers of the partitions that are assigned. Replaced as a whole: the event loop reads it.
        self.assigned: Sequence[int] = ()
        # Written by the event loop, emptied here.
        self._settled: dict[AssignedPartition, int] = {}
        self._settled_lock = threading.Lock()
        self._commit_at = 0.0
        self._handed = 0
        self._handed_bytes = 0
        self._paused: set[AssignedPartition] = set()

    # --- called by the event loop

    def commit(self, offsets: dict[AssignedPartition, int]) -> None:
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
                self._health.report_error(error_of(exc))
                self._stopping.wait(_START_AGAIN_SECONDS)
            except Exception as exc:
                # A thread's outermost loop: if it ended silently, its partitions would stay unread.
                log.exception(log_events.TURN_FAILED)
                self._health.report_error(KafkaError(KafkaError.UNKNOWN, repr(exc)))
                self._stopping.wait(_START_AGAIN_SECONDS)

    def _consume(self) -> None:
        """Runs until it is stopped or the consumer fails."""
        consumer = self._consumer()
        try:
            consumer.subscribe(
                self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
            )
            while not self._stopping.is_set():
                self._health.probe(consumer)
                self._commit_settled(consumer)
                self._regulate(consumer)
                self._poll(consumer)
        finally:
            # Leaves the group, which revokes what is assigned; without a broker it only ends.
            consumer.close()
            self._forget(list(self._partitions))

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
                "error_cb": self._health.report_error,
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
            self._health.report_success()
            self._callbacks.arrive(arrivals)

    def _arrival(self, message: Message) -> tuple[AssignedPartition, BrokerRecord] | None:
        error = message.error()
        topic, number, offset = message.topic(), message.partition(), message.offset()
        if error is not None:
            if error.fatal():
                raise KafkaException(error)
            self._health.report_error(error, topic)
            return None
        if topic is None or number is None or offset is None:
            return None
        partition = self._partitions.get((topic, number))
        return None if partition is None else (partition, _record(topic, number, offset, message))

    # --- partitions come and go

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._health.report_success()
        for each in partitions:
            self._partitions[each.topic, each.partition] = AssignedPartition(each.topic, each.partition)
        self.assigned = sorted(number for _, number in self._partitions)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit_at = 0.0
        self._commit_settled(consumer)
        self._lost(consumer, partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        places = {(each.topic, each.partition) for each in partitions}
        # The library keeps a pause beyond the loss: one that came back later would stand still forever.
        consumer.resume(
            _topic_partitions(
                [partition for partition in self._paused if (partition.topic, partition.number) in places]
            )
        )
        self._forget(places)

    def _forget(self, places: Collection[tuple[str, int]]) -> None:
        for place in places:
            partition = self._partitions.pop(place, None)
            if partition is not None:
                self._paused.discard(partition)
                self._callbacks.lose(partition)
        self.assigned = sorted(number for _, number in self._partitions)

    # --- offsets

    def _commit_settled(self, consumer: Consumer) -> None:
        # Closing would wait for a commit that is not answered.
        if not self._settled or self._health.is_broken or monotonic() < self._commit_at:
            return
        with self._settled_lock:
            settled, self._settled = self._settled, {}
        offsets = [
            TopicPartition(partition.topic, partition.number, offset)
            for partition, offset in settled.items()
            # What is not ours any more is another member's to commit.
            if self._partitions.get((partition.topic, partition.number)) is partition
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
        log.debug(log_events.OFFSETS_NOT_COMMITTED, error=str(reason))
        self._commit_at = monotonic() + _COMMIT_AGAIN_SECONDS
        with self._settled_lock:
            for each in failed:
                partition = self._partitions.get((each.topic, each.partition))
                if partition is not None:
                    self._settled.setdefault(partition, each.offset)

    # --- back-pressure

    def _regulate(self, consumer: Consumer) -> None:
        gone, gone_bytes = self._callbacks.gone()
        held, held_bytes = self._handed - gone, self._handed_bytes - gone_bytes
        if held >= self._capacity.records or held_bytes >= self._capacity.size:
            flowing = [partition for partition in self._partitions.values() if partition not in self._paused]
            if flowing:
                consumer.pause(_topic_partitions(flowing))
                self._paused.update(flowing)
        elif self._paused and held <= self._capacity.records // 2 and held_bytes <= self._capacity.size // 2:
            consumer.resume(_topic_partitions(self._paused))
            self._paused.clear()


def _topic_partitions(
    partitions: Sequence[AssignedPartition] | set[AssignedPartition],
) -> list[TopicPartition]:
    return [TopicPartition(partition.topic, partition.number) for partition in partitions]


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
