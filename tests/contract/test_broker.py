"""What every broker promises: a message exists if, and only if, the change that caused it does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest
from tests.contract.backends import BrokerHarness, OpenBroker
from tests.contract.bridges import ME, claim
from tests.contract.samples import NOW, insert, new_run, queue, run_id, task, woken

from trunkline.brokers.base import TaskMessage
from trunkline.executor.input_sources import queue_results
from trunkline.jsontypes import encode
from trunkline.messages import AgentResult, AgentTask, CancelTask
from trunkline.stores.base import QueuedTask, Store, TaskKey, Transaction

pytestmark = pytest.mark.anyio


async def take_tasks(tx: Transaction, messages: Sequence[TaskMessage]) -> None:
    """Takes tasks in as a bridge does, message by message."""
    for message in messages:
        if isinstance(message, AgentTask):
            await tx.tasks.put([QueuedTask(message, encode(message))])
        else:
            await tx.tasks.stop(ME, [TaskKey(message.task_id, message.attempt)])


@pytest.fixture
async def harness(store: Store, open_broker: OpenBroker) -> AsyncGenerator[BrokerHarness]:
    async with open_broker(store, take_tasks, queue_results) as opened:
        yield opened


async def publish(
    store: Store,
    harness: BrokerHarness,
    tasks: Sequence[TaskMessage] = (),
    results: Sequence[AgentResult] = (),
) -> None:
    """In one transaction; returns when all of it has arrived."""
    async with store.transaction() as tx:
        await harness.broker.publish_tasks(tx, tasks)
        await harness.broker.publish_results(tx, results)
    await harness.arrive()


def result(number: int) -> AgentResult:
    made = task(number)
    return AgentResult(
        task_id=made.task_id, run_id=made.run_id, step="a", attempt=1, status="success", at=NOW
    )


async def claimed_runs(store: Store) -> list[str]:
    return sorted(each.task.run_id for each in await claim(store))


async def test_a_published_task_reaches_the_bridge_as_it_is(store: Store, harness: BrokerHarness) -> None:
    await insert(store, new_run(1), new_run(2))
    await publish(store, harness, [task(1), task(2)])
    claims = await claim(store)
    assert sorted((each.task for each in claims), key=lambda made: made.run_id) == [task(1), task(2)]


async def test_a_published_result_reaches_the_executor(store: Store, harness: BrokerHarness) -> None:
    await insert(store, new_run(1))
    await publish(store, harness, results=[result(1)])
    assert [run.run_id for run in await woken(store)] == [run_id(1)]


async def test_nothing_of_a_transaction_that_failed_is_delivered(
    store: Store, harness: BrokerHarness
) -> None:
    await insert(store, new_run(1))

    async def fail() -> None:
        async with store.transaction() as tx:
            await harness.broker.publish_tasks(tx, [task(1)])
            await harness.broker.publish_results(tx, [result(1)])
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    await harness.arrive()
    assert await claimed_runs(store) == []
    assert await woken(store) == []


async def test_what_is_published_twice_counts_once(store: Store, harness: BrokerHarness) -> None:
    await insert(store, new_run(1))
    for _ in range(2):
        await publish(store, harness, [task(1), task(1)], [result(1), result(1)])
    assert await claimed_runs(store) == [run_id(1)]
    assert [len(run.items) for run in await woken(store)] == [1]


async def test_a_task_and_its_stop_arrive_in_the_order_in_which_they_were_published(
    store: Store, harness: BrokerHarness
) -> None:
    await insert(store, new_run(1))
    stop = CancelTask(task_id=task(1).task_id, attempt=1, run_id=run_id(1))
    await publish(store, harness, [task(1), stop])
    assert await claimed_runs(store) == []


async def test_a_stop_that_overtakes_its_task_stops_it_all_the_same(
    store: Store, harness: BrokerHarness
) -> None:
    await insert(store, new_run(1))
    await publish(store, harness, [CancelTask(task_id=task(1).task_id, attempt=1, run_id=run_id(1))])
    await publish(store, harness, [task(1)])
    assert await claimed_runs(store) == []


async def test_a_result_for_a_run_that_is_gone_is_dropped(store: Store, harness: BrokerHarness) -> None:
    await publish(store, harness, results=[result(7)])
    assert await woken(store) == []


async def test_publishing_nothing_is_nothing(store: Store, harness: BrokerHarness) -> None:
    await queue(store)
    await publish(store, harness)
    assert await claimed_runs(store) == []


async def test_a_failing_receiver_fails_the_publisher_only_in_the_same_process(
    store: Store, open_broker: OpenBroker
) -> None:
    async def refuse(_tx: Transaction, _messages: Sequence[TaskMessage]) -> None:
        raise RuntimeError("on purpose")

    async with open_broker(store, refuse, queue_results) as carriage:

        async def publish_task() -> None:
            async with store.transaction() as tx:
                await tx.runs.insert([new_run(1)])
                await carriage.broker.publish_tasks(tx, [task(1)])
            await carriage.arrive()

        if carriage.broker.hands_over_in_transaction:
            with pytest.raises(RuntimeError, match="on purpose"):
                await publish_task()
            assert await store.runs.get(run_id(1)) is None
        else:
            await publish_task()
            assert await store.runs.get(run_id(1)) is not None
            (letter,) = await store.dead_letters.page(limit=10)
            assert "on purpose" in letter.reason
