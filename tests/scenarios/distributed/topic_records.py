"""What is on the topics, as any other program would see it, and a way to write there."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.services import PARTITIONS

from trunkline.messages import TopicNames


class TopicRecord(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes
    headers: dict[str, bytes]
    partition: int


class TopicReader(NamedTuple):
    servers: str
    topics: TopicNames

    async def read(self, topic: str, enough: Callable[[Sequence[TopicRecord]], bool]) -> list[TopicRecord]:
        """All records from the first one on, until there are enough."""
        return await asyncio.to_thread(self._read, topic, enough)

    async def written(self, *topics: str) -> list[TopicRecord]:
        """All that the topics have now."""
        return [record for topic in topics for record in await asyncio.to_thread(self._all_of, topic)]

    def _read(self, topic: str, enough: Callable[[Sequence[TopicRecord]], bool]) -> list[TopicRecord]:
        consumer = self._consumer(topic)
        seen: list[TopicRecord] = []
        try:
            while not enough(seen):
                for message in consumer.consume(100, timeout=0.5):
                    assert message.error() is None, message.error()
                    headers = {
                        name: value for name, value in message.headers() or [] if isinstance(value, bytes)
                    }
                    key, value = message.key(), message.value()
                    assert isinstance(value, bytes)
                    key = key if isinstance(key, bytes) else None
                    seen.append(TopicRecord(topic, key, value, headers, message.partition() or 0))
        finally:
            consumer.close()
        return seen

    def _all_of(self, topic: str) -> list[TopicRecord]:
        consumer = self._consumer(topic)
        try:
            ends = [
                consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=60)[1]
                for number in range(PARTITIONS)
            ]
        finally:
            consumer.close()
        return self._read(topic, lambda seen: len(seen) >= sum(ends))

    def _consumer(self, topic: str) -> Consumer:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": secrets.token_hex(8)})
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        return consumer

    async def write(
        self, topic: str, value: bytes, key: bytes | None = None, headers: Mapping[str, bytes] | None = None
    ) -> None:
        producer = Producer({"bootstrap.servers": self.servers})
        producer.produce(topic, value, key, headers=list((headers or {}).items()))
        assert await asyncio.to_thread(producer.flush, 60) == 0
