"""The offsets that are committed: those of settled messages, and never those of messages still in progress."""

from __future__ import annotations

import asyncio
import secrets

import pytest
from confluent_kafka import Consumer, TopicPartition

from trunkline.brokers.kafka import KafkaConnection, open_producer, open_source
from trunkline.messages import OutgoingMessage, TopicNames

pytestmark = pytest.mark.anyio

TIMEOUT_SECONDS = 60.0
SENT = 6


def committed(servers: str, group: str, topic: str) -> int:
    """How many records of the topic the group need not get again."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    try:
        partitions = [TopicPartition(topic, number) for number in range(4)]
        return sum(max(found.offset, 0) for found in consumer.committed(partitions, timeout=TIMEOUT_SECONDS))
    finally:
        consumer.close()


@pytest.mark.parametrize("settled", [0, SENT])
async def test_a_consumer_that_leaves_tells_of_what_is_settled_and_of_nothing_else(
    connection: KafkaConnection, topics: TopicNames, settled: int
) -> None:
    group = f"group-{secrets.token_hex(6)}"
    async with open_producer(connection) as producer:
        messages = [OutgoingMessage(topics.tasks, f"run-{number}", b"{}") for number in range(SENT)]
        assert await producer.send(messages) == []
    async with open_source(connection, group=group, topics=[topics.tasks]) as source:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while len(source.waiting(100)) < SENT:
                await asyncio.sleep(0.01)
        source.settle(source.waiting(settled))
    assert await asyncio.to_thread(committed, connection.servers, group, topics.tasks) == settled
