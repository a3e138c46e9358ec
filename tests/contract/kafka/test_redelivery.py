"""Redelivery by a real broker: repeated messages, partitions that move to another member, and outages."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from concurrent.futures import Future
from typing import cast

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import TopicPartition
from deploy.local.kafka import KafkaProcess
from tests.services import private_kafka

from trunkline.brokers.base import Producer
from trunkline.brokers.kafka import BufferCapacity, KafkaConnection, open_producer, open_source
from trunkline.brokers.kafka.topics import TopicPlan, create_topics
from trunkline.errors import Unavailable
from trunkline.messages import BrokerRecord, OutgoingMessage, TopicNames

pytestmark = pytest.mark.anyio

# Longer than a member that has died keeps its partitions, on a machine that is busy.
TIMEOUT_SECONDS = 60.0


@pytest.fixture
def group() -> str:
    return f"group-{secrets.token_hex(6)}"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


def message(topic: str, number: int) -> OutgoingMessage:
    return OutgoingMessage(
        topic, f"run-{number}", str(number).encode(), (("trunkline-type", b"agent-task"), ("empty", b""))
    )


def numbers(records: Sequence[BrokerRecord]) -> list[int]:
    return [int(record.value or b"-1") for record in records]


async def send(connection: KafkaConnection, topic: str, wanted: Sequence[int]) -> None:
    async with open_producer(connection) as producer:
        assert await producer.send([message(topic, number) for number in wanted]) == []


async def test_a_record_comes_as_it_was_sent_in_the_order_of_its_key(
    connection: KafkaConnection, topics: TopicNames, group: str
) -> None:
    sent = [
        OutgoingMessage(topics.tasks, "run-1", str(number).encode(), (("a", b"\xff\x00"), ("a", b"")))
        for number in range(50)
    ]
    async with (
        open_producer(connection) as producer,
        open_source(connection, group=group, topics=[topics.tasks]) as source,
    ):
        assert await producer.send(sent) == []
        await until(lambda: len(source.waiting(100)) == 50)
        records = source.waiting(100)
    assert numbers(records) == list(range(50))
    assert {record.key for record in records} == {b"run-1"}
    assert {record.headers for record in records} == {(("a", b"\xff\x00"), ("a", b""))}
    assert {record.topic for record in records} == {topics.tasks}
    assert len({record.partition for record in records}) == 1


async def test_a_key_that_is_no_text_and_no_key_at_all_travel_too(
    connection: KafkaConnection, topics: TopicNames, group: str
) -> None:
    odd = OutgoingMessage(topics.tasks, "", b"1", (), b"\xff\xfe")
    none = OutgoingMessage(topics.tasks, "", b"2")
    async with (
        open_producer(connection) as producer,
        open_source(connection, group=group, topics=[topics.tasks]) as source,
    ):
        assert await producer.send([odd, none]) == []
        await until(lambda: len(source.waiting(100)) == 2)
        assert {record.value: record.key for record in source.waiting(100)} == {b"1": b"\xff\xfe", b"2": None}


async def test_records_wait_until_they_are_settled_and_wake_the_loop(
    connection: KafkaConnection, topics: TopicNames, group: str
) -> None:
    arrival = asyncio.Event()
    async with open_source(connection, group=group, topics=[topics.tasks]) as source:
        source.on_arrival(arrival.set)
        await send(connection, topics.tasks, range(10))
        await asyncio.wait_for(arrival.wait(), TIMEOUT_SECONDS)
        await until(lambda: len(source.waiting(100)) == 10)
        first = source.waiting(4)
        assert source.waiting(4) == first
        source.settle(first)
        assert len(source.waiting(100)) == 6
        assert not set(numbers(first)) & set(numbers(source.waiting(100)))


async def test_what_is_settled_does_not_come_again_and_what_is_not_does(
    connection: KafkaConnection, topics: TopicNames, group: str
) -> None:
    await send(connection, topics.tasks, range(100))
    async with open_source(connection, group=group, topics=[topics.tasks]) as source:
        await until(lambda: len(source.waiting(1_000)) == 100)
        settled = source.waiting(60)
        source.settle(settled)
        left = set(numbers(source.waiting(1_000)))
    async with open_source(connection, group=group, topics=[topics.tasks]) as source:
        await until(lambda: left <= set(numbers(source.waiting(1_000))))
        assert set(numbers(source.waiting(1_000))) == left


# Takes what comes, says how much, and settles nothing.
MEMBER = """
import asyncio, sys
from trunkline.brokers.kafka import KafkaConnection, open_source

async def main(servers, group, topic, number):
    async with open_source(KafkaConnection(servers=servers), group=group, topics=[topic]) as source:
        while len(source.waiting(1_000)) < int(number):
            await asyncio.sleep(0.01)
        print("full", flush=True)
        await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_what_a_member_had_in_its_hands_when_it_was_killed_comes_to_another(
    connection: KafkaConnection, topics: TopicNames, group: str
) -> None:
    await send(connection, topics.tasks, range(50))
    arguments = (connection.servers, group, topics.tasks, "50")
    member = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MEMBER, *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert member.stdout is not None
    assert await asyncio.wait_for(member.stdout.readline(), TIMEOUT_SECONDS) == b"full\n"
    member.kill()
    await member.wait()
    async with open_source(connection, group=group, topics=[topics.tasks]) as source:
        await until(lambda: set(numbers(source.waiting(1_000))) == set(range(50)))


async def test_an_offset_never_passes_a_record_that_is_not_settled(
    connection: KafkaConnection, topics: TopicNames, group: str
) -> None:
    sent = [OutgoingMessage(topics.tasks, "one-key", str(number).encode()) for number in range(10)]
    async with open_producer(connection) as producer:
        assert await producer.send(sent) == []
    async with open_source(connection, group=group, topics=[topics.tasks]) as source:
        await until(lambda: len(source.waiting(100)) == 10)
        records = source.waiting(100)
        source.settle([*records[:3], *records[4:]])
    async with open_source(connection, group=group, topics=[topics.tasks]) as source:
        await until(lambda: 9 in numbers(source.waiting(100)))
        assert numbers(source.waiting(100)) == list(range(3, 10))


async def test_when_a_second_member_joins_nothing_is_lost_and_no_partition_has_two_readers(
    connection: KafkaConnection, topics: TopicNames, group: str
) -> None:
    await send(connection, topics.tasks, range(400))
    async with open_source(connection, group=group, topics=[topics.tasks]) as first:
        await until(lambda: len(first.waiting(1_000)) == 400)
        held = first.waiting(1_000)
        async with open_source(connection, group=group, topics=[topics.tasks]) as second:
            await until(lambda: len(second.waiting(1_000)) > 0 and len(first.waiting(1_000)) < 400)
            await until(lambda: len(first.waiting(1_000)) + len(second.waiting(1_000)) == 400)
            mine, yours = first.waiting(1_000), second.waiting(1_000)
            assert {record.partition for record in mine}.isdisjoint({record.partition for record in yours})
            assert set(numbers(mine)) | set(numbers(yours)) == set(range(400))
            # What was in its hands before it lost them: its offsets are not its own to move any more.
            first.settle(held)
        await until(lambda: set(numbers(first.waiting(1_000))) == set(numbers(yours)))


async def test_a_full_buffer_pauses_the_partitions_and_an_empty_one_lets_them_go_on(
    connection: KafkaConnection, topics: TopicNames, group: str
) -> None:
    await send(connection, topics.tasks, range(3_000))
    seen: set[int] = set()
    capacity = BufferCapacity(records=100)
    async with open_source(connection, group=group, topics=[topics.tasks], capacity=capacity) as source:
        while len(seen) < 3_000:
            await until(
                lambda: len(source.waiting(5_000)) >= 100 or len(seen) + len(source.waiting(5_000)) >= 3_000
            )
            # One poll brings up to 501, and one more may be under way.
            assert len(source.waiting(5_000)) <= 1_200
            records = source.waiting(5_000)
            seen.update(numbers(records))
            source.settle(records)
    assert seen == set(range(3_000))


async def test_a_buffer_is_full_of_bytes_too(
    connection: KafkaConnection, topics: TopicNames, group: str
) -> None:
    async with open_producer(connection) as producer:
        assert (
            await producer.send(
                [OutgoingMessage(topics.tasks, str(number), bytes(400_000)) for number in range(24)]
            )
            == []
        )
    count = 0
    capacity = BufferCapacity(size=1_000_000)
    async with open_source(connection, group=group, topics=[topics.tasks], capacity=capacity) as source:
        while count < 24:
            await until(lambda: len(source.waiting(100)) > 0)
            records = source.waiting(2)
            count += len(records)
            source.settle(records)
    assert count == 24


async def test_a_partition_that_was_paused_when_another_took_it_flows_when_it_comes_back(
    connection: KafkaConnection, topics: TopicNames, group: str
) -> None:
    await send(connection, topics.tasks, range(400))
    seen: set[int] = set()

    def has_taken(wanted: Set[int]) -> bool:
        records = first.waiting(1_000)
        seen.update(numbers(records))
        first.settle(records)
        return wanted <= seen

    few = BufferCapacity(records=10)
    async with open_source(connection, group=group, topics=[topics.tasks], capacity=few) as first:
        await until(lambda: len(first.waiting(1_000)) >= 10)
        async with open_source(connection, group=group, topics=[topics.tasks]) as second:
            await until(lambda: len(second.waiting(1_000)) > 0)
            await until(lambda: has_taken(set(range(400)) - set(numbers(second.waiting(1_000)))))
            yours = set(numbers(second.waiting(1_000)))
        # It had room when they came back: nothing but the change of hands can let them flow.
        seen.clear()
        await until(lambda: has_taken(yours))


async def test_a_topic_that_is_missing_is_named_and_found_once_it_is_made(
    connection: KafkaConnection, topic_prefix: str, group: str
) -> None:
    topic = f"{topic_prefix}late"
    async with open_source(connection, group=group, topics=[topic]) as source:
        await until(lambda: topic in (source.failure or ""))
        assert "trunkline topics create" in (source.failure or "")
        async with open_producer(connection) as producer:
            (refused,) = await producer.send([message(topic, 1)])
            assert topic in refused.reason
            assert "trunkline topics create" in refused.reason
            await create_topics(connection, [topic], TopicPlan(2))
            async with asyncio.timeout(TIMEOUT_SECONDS):
                while await producer.send([message(topic, 2)]):
                    await asyncio.sleep(0.1)
        await until(lambda: 2 in numbers(source.waiting(10)))
        assert source.failure is None


async def test_one_missing_topic_and_one_long_message_do_not_hold_up_the_others(
    connection: KafkaConnection, topics: TopicNames, topic_prefix: str
) -> None:
    bad = [message(f"{topic_prefix}missing", 1), OutgoingMessage(topics.tasks, "k", bytes(2_000_000))]
    good = [message(topics.tasks, number) for number in range(20)]
    async with open_producer(connection) as producer:
        undelivered = await producer.send([*good[:10], *bad, *good[10:]])
    assert [each.message for each in undelivered] == bad
    assert "max.message.bytes" in undelivered[1].reason


async def test_a_topic_that_is_truncated_goes_on_with_what_is_left(
    connection: KafkaConnection, topics: TopicNames, group: str, kafka_admin: AdminClient
) -> None:
    await send(connection, topics.tasks, range(100))
    async with open_source(connection, group=group, topics=[topics.tasks]) as source:
        await until(lambda: len(source.waiting(1_000)) == 100)
        source.settle(source.waiting(20))
    # To the end of each partition.
    ends = [TopicPartition(topics.tasks, partition, -1) for partition in range(4)]
    deleted = cast("Mapping[TopicPartition, Future[object]]", kafka_admin.delete_records(ends))  # pyright: ignore[reportUnknownMemberType] - the library's futures
    for future in deleted.values():
        await asyncio.wrap_future(future)
    await send(connection, topics.tasks, range(200, 210))
    async with open_source(connection, group=group, topics=[topics.tasks]) as source:
        await until(lambda: set(numbers(source.waiting(1_000))) == set(range(200, 210)))


async def test_a_stop_leaves_the_group_so_that_another_gets_the_partitions_before_a_session_ends(
    connection: KafkaConnection, topics: TopicNames, group: str
) -> None:
    await send(connection, topics.tasks, range(10))
    async with open_source(connection, group=group, topics=[topics.tasks]) as first:
        await until(lambda: len(first.waiting(100)) == 10)
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with open_source(connection, group=group, topics=[topics.tasks]) as second:
        await until(lambda: len(second.waiting(100)) == 10)
    assert loop.time() - started < 30


async def test_without_a_listener_sending_fails_in_time_and_a_source_stops(group: str) -> None:
    nowhere = KafkaConnection(servers="127.0.0.1:9")
    loop = asyncio.get_running_loop()
    async with open_producer(nowhere) as producer, open_source(nowhere, group=group, topics=["t"]) as source:
        assert source.failure is not None
        started = loop.time()
        with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9.*refused"):
            await producer.send([message("t", 1)])
        assert loop.time() - started < 20
        await until(lambda: "refused" in (source.failure or ""))
        assert "TRUNKLINE_BROKER" in (source.failure or "")


# --- a broker of its own, which is killed


@pytest.fixture
def kafka() -> Generator[KafkaProcess]:
    with private_kafka() as process:
        yield process


async def test_a_broker_that_is_killed_and_comes_back_is_found_again_by_both_sides(
    kafka: KafkaProcess, group: str
) -> None:
    connection = KafkaConnection(servers=kafka.servers)
    await create_topics(connection, ["tasks"], TopicPlan(4))
    async with (
        open_producer(connection) as producer,
        open_source(connection, group=group, topics=["tasks"]) as source,
    ):
        assert await producer.send([message("tasks", 1)]) == []
        await until(lambda: numbers(source.waiting(10)) == [1])
        source.settle(source.waiting(10))
        await asyncio.to_thread(kafka.kill)
        with pytest.raises(Unavailable):
            await producer.send([message("tasks", 2)])
        await until(lambda: source.failure is not None)
        await asyncio.to_thread(kafka.restart)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not await sent(producer, [message("tasks", 3)]):
                await asyncio.sleep(0.1)
        await until(lambda: 3 in numbers(source.waiting(10)))
        # What was given up does not trickle out later.
        assert 2 not in numbers(source.waiting(10))
        assert source.failure is None


async def sent(producer: Producer, messages: Sequence[OutgoingMessage]) -> bool:
    try:
        return await producer.send(messages) == []
    except Unavailable:
        return False


async def test_a_stop_does_not_hang_when_the_broker_has_gone(kafka: KafkaProcess, group: str) -> None:
    connection = KafkaConnection(servers=kafka.servers)
    await create_topics(connection, ["tasks"], TopicPlan(4))
    async with open_source(connection, group=group, topics=["tasks"]) as source:
        await send(connection, "tasks", range(5))
        await until(lambda: len(source.waiting(10)) == 5)
        await asyncio.to_thread(kafka.kill)
        source.settle(source.waiting(10))
        loop = asyncio.get_running_loop()
        started = loop.time()
    assert loop.time() - started < 20
