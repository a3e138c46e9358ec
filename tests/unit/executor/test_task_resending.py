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
async def sent(stage: ExecutorHarness, broker: KafkaBroker) -> AgentTask:
    """A task that has left for its bridge."""
    await stage.start(ONE)
    async with stage.store.transaction() as tx:
        await broker.publish_tasks(tx, [stage.task("a")])
        await tx.take_outbox(10)
    return stage.task("a")


async def turn(stage: ExecutorHarness, resends: TaskResender) -> list[AgentTask]:
    """One turn of the commit loop; what it has put into the outbox."""
    async with stage.store.transaction() as tx:
        await resends.work(tx)
    resends.committed()
    async with stage.store.transaction() as tx:
        return [decode_task(message.value) for message in await tx.take_outbox(10)]


async def test_a_task_whose_result_does_not_come_is_sent_again_ever_more_rarely(
    stage: ExecutorHarness, broker: KafkaBroker, sent: AgentTask
) -> None:
    resends = TaskResender(broker)
    begun = stage.clock.now()
    times: list[float] = []
    for _ in range(24):
        for again in await turn(stage, resends):
            assert again == sent
            times.append((stage.clock.now() - begun) / 1_000_000)
        stage.clock.advance(timedelta(seconds=10))
    assert times == [30, 90, 210]


async def test_a_task_that_was_sent_again_in_a_turn_that_failed_is_still_due(
    stage: ExecutorHarness, broker: KafkaBroker, sent: AgentTask
) -> None:
    resends = TaskResender(broker)
    stage.clock.advance(RESEND_AFTER)

    async def fail() -> None:
        async with stage.store.transaction() as tx:
            await resends.work(tx)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    resends.rolled_back()
    assert await turn(stage, resends) == [sent]
