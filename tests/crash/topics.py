"""What an operator, or an accident, can do to topics and to the offsets of a group."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import Literal

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.services import wait_for_futures

from trunkline.messages import TopicNames

_SECONDS = 60.0


class Topics:
    def __init__(self, servers: str, admin: AdminClient, names: TopicNames) -> None:
        self._servers = servers
        self._admin = admin
        self.names = names

    async def make(self, *topics: str, partitions: int = 4) -> None:
        await asyncio.to_thread(self._make, topics, partitions)

    async def delete(self, *topics: str) -> None:
        await asyncio.to_thread(self._delete, topics)

    async def truncate(self, topic: str) -> int:
        """Deletes all records; how many there have been."""
        return await asyncio.to_thread(self._truncate, topic)

    async def written(self, topic: str) -> int:
        """How many records it has had so far."""
        ends = await asyncio.to_thread(self._ends, topic)
        return sum(end.offset for end in ends)

    async def reset_offsets(self, group: str, topic: str, to: Literal["earliest", "latest"]) -> None:
        """The group must have no members."""
        await asyncio.to_thread(self._reset_offsets, group, topic, to)

    async def write(self, records: Sequence[tuple[str, bytes, bytes, dict[str, bytes]]]) -> None:
        """Topic, key, value and headers of each."""
        producer = Producer({"bootstrap.servers": self._servers})
        for topic, key, value, headers in records:
            producer.produce(topic, value, key, headers=list(headers.items()))
        assert await asyncio.to_thread(producer.flush, _SECONDS) == 0

    def _make(self, topics: Sequence[str], partitions: int) -> None:
        wait_for_futures(self._admin.create_topics([NewTopic(topic, partitions) for topic in topics]))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - the library's futures

    def _delete(self, topics: Sequence[str]) -> None:
        wait_for_futures(self._admin.delete_topics(list(topics)))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - as above

    def _truncate(self, topic: str) -> int:
        ends = self._ends(topic)
        for future in self._admin.delete_records(ends).values():  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - as above
            future.result(_SECONDS)  # pyright: ignore[reportUnknownMemberType] - as above
        return sum(end.offset for end in ends)

    def _reset_offsets(self, group: str, topic: str, to: Literal["earliest", "latest"]) -> None:
        places = self._ends(topic)
        if to == "earliest":
            places = [TopicPartition(topic, place.partition, 0) for place in places]
        wanted = [ConsumerGroupTopicPartitions(group, places)]
        wait_for_futures(self._admin.alter_consumer_group_offsets(wanted))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - as above

    def _ends(self, topic: str) -> list[TopicPartition]:
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": secrets.token_hex(8)})
        try:
            partitions = self._admin.list_topics(topic, timeout=_SECONDS).topics[topic].partitions
            return [TopicPartition(topic, number, _end_of(consumer, topic, number)) for number in partitions]
        finally:
            consumer.close()


def _end_of(consumer: Consumer, topic: str, partition: int) -> int:
    return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_SECONDS)[1]
