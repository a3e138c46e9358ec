"""Results that could have been lost on their way: taken in once, and their tasks are not sent again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.executor.executor_harness import ExecutorHarness

from trunkline.executor.input_sources import queue_delivered_results
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.messages import AgentResult, AgentTask, Dispatch, ResultStatus, TaskKey

pytestmark = pytest.mark.anyio

ONE = "{name: one, steps: {a: {agent: A, delivery: at_most_once}}}"


def key_of(task: AgentTask) -> TaskKey:
    return TaskKey(task.task_id, task.attempt)


async def dispatch(executor: ExecutorHarness, task: AgentTask) -> None:
    """As a broker does that can lose messages."""
    async with executor.store.transaction() as tx:
        await tx.dispatches.put(
            [Dispatch(key_of(task), RunId(task.run_id), encode(task))], timedelta(seconds=30)
        )


async def arrive(executor: ExecutorHarness, task: AgentTask, status: ResultStatus) -> None:
    result = AgentResult(
        task_id=task.task_id,
        run_id=task.run_id,
        step=task.step,
        attempt=task.attempt,
        status=status,
        at=executor.clock.now(),
        remote_task_id="remote-1" if status == "working" else None,
    )
    async with executor.store.transaction() as tx:
        await queue_delivered_results(tx, [result])


async def is_sent_again(executor: ExecutorHarness, task: AgentTask) -> bool:
    async with executor.store.transaction() as tx:
        return key_of(task) in await tx.dispatches.payloads([key_of(task)])


async def test_a_result_wakes_its_run_and_its_task_is_not_sent_again(executor: ExecutorHarness) -> None:
    run_id = await executor.start(ONE)
    await dispatch(executor, executor.task("a"))
    assert await is_sent_again(executor, executor.task("a"))
    await arrive(executor, executor.task("a"), "success")
    assert not await is_sent_again(executor, executor.task("a"))
    await executor.turn()
    assert (await executor.run(run_id))[0].status == "COMPLETED"


async def test_a_result_that_arrives_twice_wakes_its_run_once(executor: ExecutorHarness) -> None:
    run_id = await executor.start(ONE)
    for _ in range(2):
        await arrive(executor, executor.task("a"), "working")
        await executor.turn()
    assert await executor.history(run_id) == ["RunStarted", "StepStarted", "StepWorking"]
    assert (await executor.run(run_id))[0].version == 2


@pytest.mark.parametrize("status", ["working", "unknown"])
async def test_a_task_is_sent_again_until_its_last_result_is_here(
    executor: ExecutorHarness, status: ResultStatus
) -> None:
    run_id = await executor.start(ONE)
    await dispatch(executor, executor.task("a"))
    await arrive(executor, executor.task("a"), status)
    assert await is_sent_again(executor, executor.task("a"))
    await executor.turn()
    await arrive(executor, executor.task("a"), "success")
    assert not await is_sent_again(executor, executor.task("a"))
    await executor.turn()
    assert (await executor.run(run_id))[0].status == "COMPLETED"
