"""How far a group of consumers is behind, as Kafka has it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient

from trunkline.brokers.base import ConsumerGroup, Lag, RecordSource
from trunkline.brokers.kafka import KafkaConnection, KafkaLag, open_producer, open_source
from trunkline.messages import OutgoingMessage, TopicNames

pytestmark = pytest.mark.anyio

TIMEOUT = 60.0
SENT = 6


def group_of(topic: str, pool: str | None = None) -> ConsumerGroup:
    return ConsumerGroup(f"group-{secrets.token_hex(6)}", topic, "bridge", pool)


async def fill(connection: KafkaConnection, topic: str) -> None:
    async with open_producer(connection) as producer:
        messages = [OutgoingMessage(topic, f"run-{number}", b"{}") for number in range(SENT)]
        assert await producer.send(messages) == []


async def all_there(source: RecordSource) -> None:
    async with asyncio.timeout(TIMEOUT):
        while len(source.waiting(100)) < SENT:
            await asyncio.sleep(0.01)


async def look(connection: KafkaConnection, *groups: ConsumerGroup) -> Sequence[Lag]:
    """As it is now: nobody has looked before. A topic that was just made may have no leader yet."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            found = await KafkaLag(connection).query(groups)
            if not any((lag.failure or "").startswith(("Kafka reported", "Kafka at")) for lag in found):
                return found


async def test_a_group_that_has_never_settled_anything_is_behind_from_the_beginning(
    connection: KafkaConnection, topics: TopicNames
) -> None:
    await fill(connection, topics.tasks)
    tasks, results = group_of(topics.tasks), group_of(topics.results)
    assert await look(connection, tasks, results) == [Lag(tasks, SENT, 4), Lag(results, 0, 4)]


async def test_what_is_settled_does_not_wait_and_what_comes_later_does(
    connection: KafkaConnection, topics: TopicNames
) -> None:
    group, other = group_of(topics.tasks), group_of(topics.tasks)
    await fill(connection, topics.tasks)
    async with open_source(connection, group=group.name, topics=[group.topic]) as source:
        await all_there(source)
        assert await look(connection, group) == [Lag(group, SENT, 4)]
        source.settle(source.waiting(100))
    assert await look(connection, group, other) == [Lag(group, 0, 4), Lag(other, SENT, 4)]
    await fill(connection, topics.tasks)
    assert await look(connection, group) == [Lag(group, SENT, 4)]


async def test_what_the_topic_has_no_longer_does_not_wait(
    connection: KafkaConnection, topics: TopicNames, kafka_admin: AdminClient
) -> None:
    group, other = group_of(topics.tasks), group_of(topics.tasks)
    await fill(connection, topics.tasks)
    async with open_source(connection, group=group.name, topics=[group.topic]) as source:
        await all_there(source)
        source.settle(source.waiting(1))
    assert await look(connection, group, other) == [Lag(group, SENT - 1, 4), Lag(other, SENT, 4)]
    ends = [TopicPartition(topics.tasks, number, OFFSET_END) for number in range(4)]
    for future in kafka_admin.delete_records(ends).values():  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - the library's futures
        await asyncio.to_thread(future.result, TIMEOUT)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - as above
    assert await look(connection, group, other) == [Lag(group, 0, 4), Lag(other, 0, 4)]


async def test_a_missing_topic_is_reported_with_the_others(
    connection: KafkaConnection, topics: TopicNames
) -> None:
    known, odd = group_of(topics.tasks), group_of("no/such topic")
    unknown = group_of(topics.tasks_of("gpu"), "gpu")
    there, missing, nonsense = await look(connection, known, unknown, odd)
    assert there == Lag(known, 0, 4)
    assert (missing.waiting, missing.partitions) == (nonsense.waiting, nonsense.partitions) == (None, None)
    assert (
        missing.failure
        == f"Kafka has no topic {unknown.topic}. Create it with: trunkline topics create --pool gpu"
    )
    assert "is not a valid topic name" in (nonsense.failure or "")


async def test_many_who_ask_get_what_one_has_found(connection: KafkaConnection, topics: TopicNames) -> None:
    group, other = group_of(topics.tasks), group_of(topics.results)
    lag = KafkaLag(connection)
    first, second = await asyncio.gather(lag.query([group]), lag.query([group]))
    assert first is second
    assert [each.group for each in await lag.query([group, other])] == [group, other]


async def test_a_kafka_that_is_away_and_settings_that_make_no_sense_are_said_of_each_group() -> None:
    groups = [group_of("tasks"), group_of("results")]
    away = await KafkaLag(KafkaConnection(servers="127.0.0.1:9")).query(groups)
    assert [(lag.group, lag.waiting, lag.partitions) for lag in away] == [
        (each, None, None) for each in groups
    ]
    assert all("127.0.0.1:9 cannot be reached" in (lag.failure or "") for lag in away)
    odd = KafkaConnection(servers="127.0.0.1:9", security_protocol="sasl_ssl", sasl_mechanism="NONSENSE")
    assert all("NONSENSE" in (lag.failure or "") for lag in await KafkaLag(odd).query(groups))
