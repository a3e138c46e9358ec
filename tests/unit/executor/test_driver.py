"""The driver: one transition, one transaction, and nothing of it when the transaction fails."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.executor.executor_harness import ExecutorHarness

from trunkline.clock import after
from trunkline.machine.inputs import PauseRequested, ReplyGiven, ResumeRequested
from trunkline.messages import AgentTask, CancelTask, ReplyMessage, StepError
from trunkline.stores.base import WorkflowVersion

pytestmark = pytest.mark.anyio

CHAIN = """
name: chain
steps:
  a: {agent: A}
  b: {agent: B, input: "${ steps.a.output }"}
"""
LIMITED = "{name: limited, deadline: 1m, steps: {a: {agent: A}}}"


def timeout() -> StepError:
    return StepError(code="agent_timeout", message="Too slow.")


async def test_a_turn_writes_the_run_its_events_and_its_task(executor: ExecutorHarness) -> None:
    run_id = await executor.start(CHAIN, {"topic": "owls"})
    record, steps = await executor.run(run_id)
    assert (record.status, record.version, record.seq, record.started_at) == (
        "RUNNING", 1, 2, executor.clock.now(),
    )  # fmt: skip
    assert (steps["a"].status, steps["a"].input) == ("RUNNING", b'{"topic":"owls"}')
    assert await executor.history(run_id) == ["RunStarted", "StepStarted"]
    assert executor.task("a").input_data == {"topic": "owls"}


async def test_a_run_goes_from_answer_to_answer_to_its_end(executor: ExecutorHarness) -> None:
    run_id = await executor.start(CHAIN)
    await executor.answer(executor.task("a"), "success", output={"text": "owls"})
    await executor.turn()
    await executor.answer(executor.task("b"), "success", output="done")
    await executor.turn()
    record, steps = await executor.run(run_id)
    assert (record.status, record.output, record.version) == ("COMPLETED", b'"done"', 3)
    assert steps["a"].output == b'{"text":"owls"}'
    assert (await executor.history(run_id))[-1] == "RunCompleted"


async def test_an_answer_that_comes_twice_counts_once(executor: ExecutorHarness) -> None:
    run_id = await executor.start(CHAIN)
    for _ in range(2):
        await executor.answer(executor.task("a"), "success", output=1)
        await executor.turn()
    assert (await executor.run(run_id))[0].version == 2
    assert len(executor.published) == 2


async def test_an_answer_that_was_given_up_for_lost_still_resolves_the_doubt(
    executor: ExecutorHarness,
) -> None:
    run_id = await executor.start("{name: once, steps: {a: {agent: A, delivery: at_most_once}}}")
    await executor.answer(executor.task("a"), "unknown")
    await executor.turn()
    assert (await executor.run(run_id))[0].status == "WAITING"
    await executor.answer(executor.task("a"), "success", output="late")
    await executor.turn()
    record, _ = await executor.run(run_id)
    assert (record.status, record.output) == ("COMPLETED", b'"late"')


async def test_a_turn_without_anything_to_take_in_changes_nothing(executor: ExecutorHarness) -> None:
    run_id = await executor.start(CHAIN)
    await executor.turn()
    assert (await executor.run(run_id))[0].version == 1


async def test_runs_that_are_woken_together_move_together(executor: ExecutorHarness) -> None:
    version = (await executor.workflows.save(CHAIN.encode())).version
    ids = [await executor.accept(version, number) for number in range(20)]
    await executor.turn()
    assert [(await executor.run(run_id))[0].status for run_id in ids] == ["RUNNING"] * 20
    assert [task.input_data for task in executor.published if isinstance(task, AgentTask)] == list(range(20))


async def test_a_turn_that_is_rolled_back_is_taken_again_from_what_is_stored(
    executor: ExecutorHarness,
) -> None:
    run_id = await executor.start(CHAIN)
    await executor.answer(executor.task("a"), "success", output=1)

    async def fail() -> None:
        async with executor.store.transaction() as tx:
            await executor.driver.work(tx)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    executor.driver.rolled_back()
    assert (await executor.run(run_id))[0].version == 1
    executor.published.clear()
    await executor.turn()
    assert (await executor.run(run_id))[0].version == 2
    assert [task.step for task in executor.published if isinstance(task, AgentTask)] == ["b"]


async def test_a_state_kept_at_an_older_version_is_read_again(executor: ExecutorHarness) -> None:
    run_id = await executor.start(CHAIN)
    other = executor.another_driver()
    await executor.put(run_id, "pause/1", PauseRequested())
    await executor.turn(other)
    await executor.answer(executor.task("a"), "success", output=1)
    await executor.turn()
    record, steps = await executor.run(run_id)
    assert (record.status, record.version, steps["a"].status) == ("PAUSED", 3, "COMPLETED")
    await executor.put(run_id, "resume/1", ResumeRequested())
    await executor.turn(other)
    assert executor.task("b").input_data == 1


async def test_a_decision_that_fails_ends_its_own_run_and_no_other(executor: ExecutorHarness) -> None:
    poisoned, healthy = await executor.start(LIMITED), await executor.start(CHAIN)
    await executor.put(poisoned, "reply/nobody/0", ReplyGiven("nobody", ReplyMessage(text="Hello?")))
    await executor.answer(executor.task("a"), "success", output=1)
    await executor.turn()
    record, steps = await executor.run(poisoned)
    assert record.error is not None
    assert (record.status, record.error.code, steps["a"].status) == ("FAILED", "internal_error", "CANCELLED")
    assert (await executor.run(healthy))[1]["b"].status == "RUNNING"
    assert CancelTask(task_id=f"{poisoned}/a/0", attempt=1, run_id=poisoned, agent="A") in executor.published
    assert (await executor.store.backlog.count()).timers == 0


async def test_an_input_that_cannot_be_read_ends_its_own_run_and_no_other(executor: ExecutorHarness) -> None:
    broken, healthy = await executor.start(LIMITED), await executor.start(CHAIN)
    await executor.put(broken, "result/a/1", b'{"type":"result_arrived","result":' + b"[" * 100_000)
    await executor.put(healthy, "pause/1", PauseRequested())
    await executor.turn()
    assert (await executor.run(broken))[0].status == "FAILED"
    assert (await executor.run(healthy))[0].status == "PAUSED"
    assert (await executor.store.backlog.count()).inbox == 0


async def test_a_run_whose_workflow_cannot_be_used_any_more_ends_and_no_other(
    executor: ExecutorHarness,
) -> None:
    healthy = await executor.start(CHAIN)
    refused = WorkflowVersion(
        workflow_id="018f0000-0000-7000-8000-aaaaaaaaaaaa",
        name="refused",
        version=1,
        canonical=b'{"name":"refused","steps":{"a":{"agent":"A","needs":["gone"]}}}',
        source=b"",
        created_at=executor.clock.now(),
    )
    async with executor.store.transaction() as tx:
        await tx.workflows.insert_version(refused)
    run_id = await executor.accept(refused)
    await executor.put(healthy, "pause/1", PauseRequested())
    await executor.turn()
    record, _ = await executor.run(run_id)
    assert record.error is not None
    assert record.status == "FAILED"
    assert record.error.message.startswith("The run's workflow can no longer be used: ")
    assert (await executor.run(healthy))[0].status == "PAUSED"


async def test_a_retry_is_timed_and_taken_when_it_is_due(executor: ExecutorHarness) -> None:
    run_id = await executor.start(
        "{name: w, steps: {a: {agent: A, retry: {first_delay: 5s, jitter: false}}}}"
    )
    await executor.answer(executor.task("a"), "error", error=timeout())
    await executor.turn()
    assert executor.timers.next_wake() == after(executor.clock.now(), timedelta(seconds=5))
    executor.clock.advance(timedelta(seconds=4))
    await executor.turn()
    assert len(executor.published) == 1
    executor.clock.advance(timedelta(seconds=1))
    await executor.turn()
    assert (executor.task("a").attempt, executor.task("a").task_id) == (2, f"{run_id}/a/0")
    assert executor.timers.next_wake() is None


async def test_a_timer_that_was_taken_in_a_turn_that_failed_is_taken_again(executor: ExecutorHarness) -> None:
    run_id = await executor.start(LIMITED)
    executor.clock.advance(timedelta(minutes=1))

    async def fail() -> None:
        async with executor.store.transaction() as tx:
            await executor.timers.work(tx)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    executor.timers.rolled_back()
    await executor.turn()
    assert (await executor.run(run_id))[0].status == "FAILED"


async def test_watchers_of_a_run_are_woken_when_a_change_is_durable(executor: ExecutorHarness) -> None:
    run_id = await executor.start(CHAIN)
    with executor.watchers.watch(run_id) as watch:
        await executor.put(run_id, "pause/1", PauseRequested())
        await executor.turn()
        await watch.changed(60)
    assert (await executor.run(run_id))[0].status == "PAUSED"


async def test_more_inputs_than_a_turn_takes_are_taken_in_the_next(executor: ExecutorHarness) -> None:
    run_id = await executor.start(CHAIN)
    for number in range(520):
        await executor.put(run_id, f"pause/{number}", PauseRequested())
    await executor.turn()
    assert executor.driver.next_wake() == 0
    assert (await executor.store.backlog.count()).inbox == 8
    await executor.turn()
    assert executor.driver.next_wake() is None
    assert (await executor.store.backlog.count()).inbox == 0
