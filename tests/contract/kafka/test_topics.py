"""Creating and checking topics: every problem is found, and the suggested fix solves it."""

from __future__ import annotations

import gc
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from trunkline.brokers.kafka import KafkaConnection
from trunkline.brokers.kafka.topics import TopicPlan, check_topics, create_topics, delete_topics
from trunkline.errors import ConfigurationError, Unavailable
from trunkline.messages import TopicNames

pytestmark = pytest.mark.anyio


async def test_a_missing_topic_is_found_made_and_not_made_again(
    connection: KafkaConnection, topic_prefix: str
) -> None:
    names = [f"{topic_prefix}a", f"{topic_prefix}b"]
    findings = await check_topics(connection, names, partitions=3)
    assert [(finding.topic, finding.problem) for finding in findings] == [(name, "missing") for name in names]
    assert all("trunkline topics create" in finding.fix and finding.stops_work for finding in findings)
    assert await create_topics(connection, names, TopicPlan(3)) == dict.fromkeys(names, "created")
    assert await check_topics(connection, names, partitions=3) == []
    assert await create_topics(connection, names, TopicPlan(3)) == dict.fromkeys(names, "unchanged")


async def test_a_topic_with_too_few_partitions_is_found_and_widened(
    connection: KafkaConnection, topic_prefix: str
) -> None:
    name = f"{topic_prefix}narrow"
    await create_topics(connection, [name], TopicPlan(2))
    (finding,) = await check_topics(connection, [name], partitions=5)
    assert (finding.topic, finding.problem, finding.stops_work) == (name, "partitions", False)
    assert "2 of 5" in finding.why
    assert await create_topics(connection, [name], TopicPlan(5)) == {name: "widened"}
    assert await check_topics(connection, [name], partitions=5) == []


async def test_a_topic_with_more_partitions_is_left_as_it_is(
    connection: KafkaConnection, topic_prefix: str
) -> None:
    name = f"{topic_prefix}wide"
    await create_topics(connection, [name], TopicPlan(5))
    assert await create_topics(connection, [name], TopicPlan(2)) == {name: "unchanged"}
    assert await check_topics(connection, [name], partitions=2) == []


async def test_records_are_kept_as_long_as_the_plan_says(
    connection: KafkaConnection, topic_prefix: str, kafka_admin: AdminClient
) -> None:
    name = f"{topic_prefix}kept"
    await create_topics(connection, [name], TopicPlan(1, retention=timedelta(hours=2)))
    resource = ConfigResource(ResourceType.TOPIC, name)
    (future,) = kafka_admin.describe_configs([resource]).values()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - the library's futures
    entries = cast("dict[str, Entry]", future.result())  # pyright: ignore[reportUnknownMemberType] - the library's futures
    assert entries["retention.ms"].value == "7200000"


class Entry:
    value: str


async def test_a_deleted_topic_is_missing_and_to_delete_it_again_is_nothing(
    connection: KafkaConnection, topic_prefix: str
) -> None:
    name = f"{topic_prefix}gone"
    await create_topics(connection, [name], TopicPlan(1))
    for _ in range(2):
        await delete_topics(connection, [name])
    assert [finding.problem for finding in await check_topics(connection, [name])] == ["missing"]


async def test_a_plan_that_the_cluster_cannot_carry_out_names_the_settings(
    connection: KafkaConnection, topic_prefix: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await create_topics(connection, [f"{topic_prefix}x"], TopicPlan(1, replication=7))
    assert "TRUNKLINE_TOPIC_REPLICATION" in caught.value.fix


async def test_a_name_that_no_topic_can_have_is_refused(connection: KafkaConnection) -> None:
    with pytest.raises(ConfigurationError, match="no/such"):
        await create_topics(connection, ["no/such topic"], TopicPlan(1))


async def test_a_cluster_that_cannot_be_reached_is_one_finding_for_all_topics() -> None:
    nowhere = KafkaConnection(servers="127.0.0.1:9")
    (finding,) = await check_topics(nowhere, ["a", "b"])
    assert (finding.topic, finding.problem, finding.stops_work) == (None, "unreachable", True)
    assert "127.0.0.1:9" in finding.why
    assert "TRUNKLINE_BROKER" in finding.fix
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9"):
        await create_topics(nowhere, ["a"], TopicPlan(1))


def clients() -> int:
    """How many of the library's clients live in this process: each has one such thread."""
    names = (task.read_text() for task in Path("/proc/self/task").glob("*/comm"))
    return sum(name.strip() == "rdk:main" for name in names)


async def test_no_client_is_left_to_the_garbage_collector(
    connection: KafkaConnection, topics: TopicNames
) -> None:
    before = clients()
    gc.disable()
    try:
        await check_topics(connection, [topics.tasks, f"{topics.tasks}.missing"])
        assert clients() == before
    finally:
        gc.enable()


async def test_settings_that_make_no_sense_say_so(kafka_servers: str) -> None:
    odd = KafkaConnection(servers=kafka_servers, security_protocol="sasl_ssl", sasl_mechanism="NONSENSE")
    with pytest.raises(ConfigurationError, match="NONSENSE"):
        await check_topics(odd, ["a"])
