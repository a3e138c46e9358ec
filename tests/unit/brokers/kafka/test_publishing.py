"""Publishing by way of the outbox: what can be lost on its way is remembered until its result has come."""

from __future__ import annotations

import msgspec
import pytest
from tests.contract.samples import NOW, insert, key_of, new_run, run_id, task

from trunkline.brokers.kafka import KafkaBroker
from trunkline.jsontypes import encode
from trunkline.messages import AgentResult, AgentTask, CancelTask, OutgoingMessage, TopicNames
from trunkline.messages.codec import decode_task
from trunkline.stores.base import Store

pytestmark = pytest.mark.anyio


async def pool_of(agent: str) -> str | None:
    return "gpu" if agent == "Painter" else None


@pytest.fixture
def broker() -> KafkaBroker:
    return KafkaBroker(TopicNames(), pool_of)


async def outbox(store: Store) -> list[OutgoingMessage]:
    async with store.transaction() as tx:
        return await tx.outbox.take(100)


def tasks_in(messages: list[OutgoingMessage]) -> list[AgentTask]:
    return [decode_task(message.value) for message in messages]


async def test_a_published_task_is_in_the_outbox_and_is_remembered(store: Store, broker: KafkaBroker) -> None:
    await insert(store, new_run(1))
    async with store.transaction() as tx:
        await broker.publish_tasks(tx, [task(1)])
    assert tasks_in(await outbox(store)) == [task(1)]
    async with store.transaction() as tx:
        assert await tx.dispatches.payloads([key_of(task(1))]) == {key_of(task(1)): encode(task(1))}


async def test_a_task_says_where_its_result_should_come_and_the_result_goes_there(store: Store) -> None:
    partitions = iter([3, 1])
    broker = KafkaBroker(TopicNames(), pool_of, reply_partition=lambda: next(partitions))
    await insert(store, new_run(1))
    async with store.transaction() as tx:
        await broker.publish_tasks(tx, [task(1)])
        # Its executor has other partitions by now.
        await broker.resend_tasks(tx, [task(1)])
    sent = tasks_in(await outbox(store))
    assert [made.reply_partition for made in sent] == [3, 1]
    result = AgentResult(
        task_id=task(1).task_id,
        run_id=run_id(1),
        step="a",
        attempt=1,
        status="success",
        at=NOW,
        reply_partition=3,
    )
    async with store.transaction() as tx:
        await broker.publish_results(tx, [result, msgspec.structs.replace(result, reply_partition=None)])
    assert [message.partition for message in await outbox(store)] == [3, None]


async def test_a_stop_is_not_remembered(store: Store, broker: KafkaBroker) -> None:
    await insert(store, new_run(1))
    stop = CancelTask(task_id=task(1).task_id, attempt=1, run_id=run_id(1), agent="A")
    async with store.transaction() as tx:
        await broker.publish_tasks(tx, [stop])
        assert await tx.dispatches.payloads([key_of(task(1))]) == {}
    assert len(await outbox(store)) == 1


async def test_a_task_of_a_pool_goes_to_the_pools_topic(store: Store, broker: KafkaBroker) -> None:
    await insert(store, new_run(1), new_run(2))
    async with store.transaction() as tx:
        await broker.publish_tasks(tx, [task(1, agent="Painter"), task(2)])
    sent = await outbox(store)
    assert [message.topic for message in sent] == [TopicNames().tasks_of("gpu"), TopicNames().tasks]
    assert [made.pool for made in tasks_in(sent)] == ["gpu", None]
