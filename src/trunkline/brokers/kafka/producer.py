"""
From the outbox to the topics: an idempotent producer that waits for every replica in sync.

One thread does all the waiting. What has not been acknowledged in time is taken out of the producer again, and the
producer is replaced: nothing trickles out later that the outbox still has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from trunkline.brokers.base import Undelivered
from trunkline.brokers.kafka.connection import KafkaConnection, library_log
from trunkline.brokers.kafka.error_messages import (
    describe,
    error_of,
    invalid_settings,
    is_unreachable,
    more_specific,
)
from trunkline.brokers.kafka.topic_partitions import TopicPartitions
from trunkline.errors import Unavailable
from trunkline.messages import OutgoingMessage

# The port allows 5 s; the rest is for taking back what was not delivered.
_MESSAGE_TIMEOUT_MS = 4_000
_FLUSH_SECONDS = 4.5
# A topic that is not there is reported after this long: everything in the same batch waits for it.
_MISSING_TOPIC_MS = 500
_CLOSE_SECONDS = 1.0


class KafkaProducer:
    """A `Producer`; made by `open_producer`."""

    def __init__(self, connection: KafkaConnection, thread: ThreadPoolExecutor) -> None:
        self._connection = connection
        self._thread = thread
        self._client: Producer | None = None
        self._partitions = TopicPartitions()
        # The last that was heard of the connection as a whole, unless a message has gone through since.
        self._connection_error: KafkaError | None = None

    async def send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
        if not messages:
            return []
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._send, messages)

    def give_up(self) -> None:
        """What is being sent counts as not delivered."""
        client = self._client
        if client is not None:
            client.purge(blocking=False)

    def close(self) -> None:
        """In the producer's thread."""
        client, self._client = self._client, None
        if client is not None:
            client.purge()
            _flush(client, _CLOSE_SECONDS)

    def _send(self, messages: Sequence[OutgoingMessage]) -> list[Undelivered]:
        batch = _DeliveryReports(len(messages))
        client = self.ready()
        self._partitions.begin_batch()
        for number, message in enumerate(messages):
            self._produce(client, message, number, batch)
        fatal = _flush(client, _FLUSH_SECONDS)
        if not batch.is_complete:
            client.purge()
            _flush(client, _CLOSE_SECONDS)
        if fatal is not None:
            self._on_error(fatal)
            self._client = None
        return self._outcome(messages, batch)

    def ready(self) -> Producer:
        """A client that works, or will when the brokers do. Raises `ConfigurationError`."""
        if self._client is None:
            options = self._connection.options(
                enable_idempotence=True,
                acks="all",
                linger_ms=2,
                message_timeout_ms=_MESSAGE_TIMEOUT_MS,
                topic_metadata_propagation_max_ms=_MISSING_TOPIC_MS,
                compression_type="lz4",
            )
            try:
                self._client = Producer({**options, "error_cb": self._on_error, "logger": library_log()})
            except KafkaException as exc:
                raise invalid_settings(exc) from exc
        return self._client

    def _produce(
        self, client: Producer, message: OutgoingMessage, number: int, batch: _DeliveryReports
    ) -> None:
        try:
            client.produce(
                message.topic,
                message.value,
                message.record_key,
                headers=list(message.headers),
                partition=self._partitions.of(client, message),
                on_delivery=partial(batch.report, number),
            )
        except BufferError:
            batch.report(number, KafkaError(KafkaError.REQUEST_TIMED_OUT, "the send queue is full"))
        except KafkaException as exc:
            batch.report(number, error_of(exc))

    def _on_error(self, error: KafkaError) -> None:
        self._connection_error = more_specific(self._connection_error, error)

    def _outcome(self, messages: Sequence[OutgoingMessage], batch: _DeliveryReports) -> list[Undelivered]:
        failures = batch.failures()
        if failures:
            # A topic that was deleted and made again may have fewer.
            self._partitions.forget()
        if len(failures) < len(messages):
            self._connection_error = None
        if any(is_unreachable(error) or error.fatal() for error in failures.values()):
            # Numbers that the brokers expect may be missing now, and a fatal error is final.
            self._client = None
        if len(failures) == len(messages) and all(is_unreachable(error) for error in failures.values()):
            text = describe(self._connection_error or next(iter(failures.values())), self._connection.servers)
            raise Unavailable(text.what, fix=text.fix)
        return [
            Undelivered(messages[number], self._reason(messages[number], error))
            for number, error in failures.items()
        ]

    def _reason(self, message: OutgoingMessage, error: KafkaError) -> str:
        return describe(error, self._connection.servers, message.topic).text


def _flush(client: Producer, seconds: float) -> KafkaError | None:
    """The error, if there is one that the client cannot recover from."""
    try:
        client.flush(seconds)
    except KafkaException as exc:
        return error_of(exc)
    return None


class _DeliveryReports:
    """The delivery reports of one batch."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._reports: dict[int, KafkaError | None] = {}

    @property
    def is_complete(self) -> bool:
        return len(self._reports) == self._size

    def report(self, number: int, error: KafkaError | None, _message: Message | None = None) -> None:
        self._reports[number] = error

    def failures(self) -> dict[int, KafkaError]:
        """By number. A record without a delivery report counts as not delivered."""
        silence = KafkaError(KafkaError.REQUEST_TIMED_OUT, "no acknowledgement arrived in time")
        reports = ((number, self._reports.get(number, silence)) for number in range(self._size))
        return {number: error for number, error in reports if error is not None}


@asynccontextmanager
async def open_producer(connection: KafkaConnection) -> AsyncGenerator[KafkaProducer]:
    thread = ThreadPoolExecutor(1, "kafka-producer")
    producer = KafkaProducer(connection, thread)
    try:
        producer.ready()
        yield producer
    finally:
        # The thread may be waiting for a broker that is away.
        producer.give_up()
        await asyncio.get_running_loop().run_in_executor(thread, producer.close)
        thread.shutdown()
