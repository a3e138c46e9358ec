"""From the outbox to the input queue through a real broker: long, repeated and malformed messages among good ones."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence

import msgspec
import pytest
from tests.contract.bridges import ME, claim, hold
from tests.contract.kafka.kafka_harness import kafka_harness
from tests.contract.samples import NOW, inputs_of, insert, key_of, new_run, run_id, task, woken

from trunkline.brokers.base import TaskMessage
from trunkline.brokers.kafka import KafkaBroker, KafkaConnection, open_producer, open_source
from trunkline.executor.input_sources import queue_delivered_results
from trunkline.jsontypes import encode
from trunkline.messages import ANY_PARTITION, AgentResult, AgentTask, OutgoingMessage, TopicNames
from trunkline.messages.codec import MAX_VALUE_BYTES, encode_task
from trunkline.stores.base import QueuedTask, Store, TaskAnswer, Transaction

pytestmark = pytest.mark.anyio

Arrive = Callable[[], asyncio.Future[None]]


async def take_tasks(tx: Transaction, messages: Sequence[TaskMessage]) -> None:
    tasks = [message for message in messages if isinstance(message, AgentTask)]
    await tx.tasks.put([QueuedTask(each, encode(each)) for each in tasks])


@pytest.fixture
async def harness(
    store: Store, connection: KafkaConnection, topics: TopicNames
) -> AsyncGenerator[tuple[KafkaBroker, Arrive]]:
    async with kafka_harness(connection, topics, store, take_tasks, queue_delivered_results) as opened:
        yield opened


def long_task(number: int) -> AgentTask:
    return msgspec.structs.replace(task(number), input_data="ü" * MAX_VALUE_BYTES)


async def test_a_task_above_512_kb_arrives_whole(store: Store, harness: tuple[KafkaBroker, Arrive]) -> None:
    broker, arrive = harness
    await insert(store, new_run(1), new_run(2))
    async with store.transaction() as tx:
        await broker.publish_tasks(tx, [long_task(1), task(2)])
    await arrive()
    claims = sorted(await claim(store), key=lambda each: each.task.run_id)
    assert [each.task for each in claims] == [long_task(1), task(2)]


async def test_a_result_above_512_kb_arrives_whole_and_a_second_time_is_nothing(
    store: Store, harness: tuple[KafkaBroker, Arrive]
) -> None:
    broker, arrive = harness
    await insert(store, new_run(1))
    async with store.transaction() as tx:
        await broker.publish_tasks(tx, [task(1)])
    await arrive()
    (claimed,) = await claim(store)
    result = AgentResult(
        task_id=task(1).task_id,
        run_id=run_id(1),
        step="a",
        attempt=1,
        status="success",
        at=NOW,
        output=msgspec.Raw(encode("x" * MAX_VALUE_BYTES)),
    )
    async with store.transaction() as tx:
        await tx.tasks.write_answers(
            ME, [TaskAnswer(key=claimed.key, epoch=claimed.epoch, result=encode(result))]
        )
        await broker.publish_results(tx, [result])
    await arrive()
    (run,) = await woken(store)
    (payload,) = inputs_of(run)
    assert b"x" * MAX_VALUE_BYTES in payload
    # It is settled by now, and the second record names nothing that there is.
    async with store.transaction() as tx:
        assert await tx.dispatches.payloads([key_of(task(1))]) == {}
        await broker.publish_results(tx, [result])
    await arrive()
    assert [len(each.items) for each in await woken(store)] == [1]
    assert await store.dead_letters.page(limit=10) == []


async def test_tasks_of_a_batch_go_to_one_partition_and_results_to_the_one_that_is_asked_for(
    connection: KafkaConnection, topics: TopicNames
) -> None:
    def outgoing(topic: str, number: int, partition: int | None) -> OutgoingMessage:
        return OutgoingMessage(topic, f"run-{number}", b"{}", partition=partition)

    async with (
        open_source(connection, group=topics.tasks, topics=[topics.tasks, topics.results]) as source,
        open_producer(connection) as producer,
    ):
        for _ in range(2):
            messages = [outgoing(topics.tasks, number, ANY_PARTITION) for number in range(20)]
            assert await producer.send(messages) == []
        by_key = [outgoing(topics.results, number, None) for number in range(20)]
        asked = [outgoing(topics.results, number, 2) for number in range(20, 40)]
        # There is none with that number.
        wrong = [outgoing(topics.results, number, 1_000) for number in range(40, 60)]
        assert await producer.send([*by_key, *asked, *wrong]) == []
        while len(records := source.waiting(1_000)) < 100:
            await asyncio.sleep(0.01)
    tasks = Counter(record.partition for record in records if record.topic == topics.tasks)
    assert sorted(tasks.values()) == [20, 20]
    partitions: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
    for record in records:
        if record.topic == topics.results:
            number = int((record.key or b"").removeprefix(b"run-"))
            partitions[number // 20].add(record.partition)
    assert partitions[1] == {2}
    assert len(partitions[0]) > 1
    assert len(partitions[2]) > 1


async def test_what_the_broker_delivers_twice_is_called_once(
    store: Store, harness: tuple[KafkaBroker, Arrive], topics: TopicNames
) -> None:
    broker, arrive = harness
    await insert(store, new_run(1))
    async with store.transaction() as tx:
        await broker.publish_tasks(tx, [task(1)])
        await broker.resend_tasks(tx, [task(1)])
        await tx.outbox.put([encode_task(task(1), topics.tasks)])
    await arrive()
    assert [each.task for each in await claim(store)] == [task(1)]
    assert await claim(store) == []


async def test_poison_among_good_ones_goes_to_the_dead_letters_and_the_good_arrive(
    store: Store, harness: tuple[KafkaBroker, Arrive], topics: TopicNames
) -> None:
    broker, arrive = harness
    await insert(store, *(new_run(number) for number in range(1, 21)))
    poison = [
        OutgoingMessage(topics.tasks, run_id(number), b"\xff poison %d" % number) for number in range(1, 21)
    ]
    async with store.transaction() as tx:
        for number, bad in enumerate(poison, start=1):
            await tx.outbox.put([bad])
            await broker.publish_tasks(tx, [task(number)])
    await arrive()
    await hold(store, ME)
    assert len(await claim(store)) == 20
    letters = await store.dead_letters.page(limit=100)
    assert {letter.value for letter in letters} == {bad.value for bad in poison}
    assert {letter.topic for letter in letters} == {topics.tasks}
    assert all(letter.reason for letter in letters)


async def test_what_the_database_refuses_does_not_hold_up_the_others(
    store: Store, harness: tuple[KafkaBroker, Arrive], topics: TopicNames
) -> None:
    broker, arrive = harness
    await insert(store, *(new_run(number) for number in range(1, 11)))
    # Readable, and no database has a place for them: the one for an id that is none, the other for a NUL in a text.
    odd = [
        msgspec.structs.replace(task(1), run_id="no id at all"),
        msgspec.structs.replace(task(2), task_id="a\u0000b"),
    ]
    async with store.transaction() as tx:
        await broker.publish_tasks(tx, [task(number) for number in range(1, 6)])
        await tx.outbox.put([encode_task(each, topics.tasks) for each in odd])
        await broker.publish_tasks(tx, [task(number) for number in range(6, 11)])
    await arrive()
    assert {each.task.run_id for each in await claim(store)} >= {run_id(number) for number in range(1, 11)}
    # SQLite takes any text, and then there is no such run.
    letters = await store.dead_letters.page(limit=10)
    assert {letter.value for letter in letters} <= {encode(each) for each in odd}


async def test_tasks_and_stops_of_an_agent_go_to_the_topic_of_its_pool(store: Store) -> None:
    names = TopicNames()

    async def pool_of(agent: str) -> str | None:
        return "gpu" if agent == "G" else None

    broker = KafkaBroker(names, pool_of)
    await insert(store, new_run(1), new_run(2))
    async with store.transaction() as tx:
        await broker.publish_tasks(tx, [task(1), task(2, agent="G")])
        await broker.resend_tasks(tx, [task(2, agent="G")])
        sent = await tx.outbox.take(100)
        dispatched = await tx.dispatches.payloads([key_of(task(1)), key_of(task(2))])
    assert [message.topic for message in sent] == [
        "trunkline.tasks",
        "trunkline.tasks.gpu",
        "trunkline.tasks.gpu",
    ]
    assert sent[1] == sent[2]
    pooled = msgspec.structs.replace(task(2, agent="G"), pool="gpu")
    assert dispatched == {key_of(task(1)): encode(task(1)), key_of(task(2)): encode(pooled)}
