"""Tasks whose results are overdue: sent again, ever more rarely, and by nobody who could not say so."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.executor.executor_harness import ExecutorHarness

from trunkline.brokers.kafka import RESEND_AFTER, KafkaBroker
from trunkline.executor.task_resending import TaskResender
from trunkline.messages import AgentTask, TopicNames
from trunkline.messages.codec import decode_task

pytestmark = pytest.mark.anyio

ONE = "{name: one, steps: {a: {agent: A}}}"


async def no_pool(_agent: str) -> str | None:
    return None


@pytest.fixture
def broker() -> KafkaBroker:
    return KafkaBroker(TopicNames(), no_pool)


@pytest.fixture
async def sent(executor: ExecutorHarness, broker: KafkaBroker) -> AgentTask:
    """A task that has left for its bridge."""
    await executor.start(ONE)
    async with executor.store.transaction() as tx:
        await broker.publish_tasks(tx, [executor.task("a")])
        await tx.outbox.take(10)
    return executor.task("a")


async def turn(executor: ExecutorHarness, resends: TaskResender) -> list[AgentTask]:
    """One turn of the commit loop; what it has put into the outbox."""
    async with executor.store.transaction() as tx:
        await resends.work(tx)
    resends.committed()
    async with executor.store.transaction() as tx:
        return [decode_task(message.value) for message in await tx.outbox.take(10)]


async def test_a_task_whose_result_does_not_come_is_sent_again_ever_more_rarely(
    executor: ExecutorHarness, broker: KafkaBroker, sent: AgentTask
) -> None:
    resends = TaskResender(broker)
    begun = executor.clock.now()
    times: list[float] = []
    for _ in range(24):
        for again in await turn(executor, resends):
            assert again == sent
            times.append((executor.clock.now() - begun) / 1_000_000)
        executor.clock.advance(timedelta(seconds=10))
    assert times == [30, 90, 210]


async def test_a_task_that_was_sent_again_in_a_turn_that_failed_is_still_due(
    executor: ExecutorHarness, broker: KafkaBroker, sent: AgentTask
) -> None:
    resends = TaskResender(broker)
    executor.clock.advance(RESEND_AFTER)

    async def fail() -> None:
        async with executor.store.transaction() as tx:
            await resends.work(tx)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    resends.rolled_back()
    assert await turn(executor, resends) == [sent]
