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


async def test_a_turn_writes_the_run_its_events_and_its_task(stage: ExecutorHarness) -> None:
    run_id = await stage.start(CHAIN, {"topic": "owls"})
    record, steps = await stage.run(run_id)
    assert (record.status, record.version, record.seq, record.started_at) == (
        "RUNNING", 1, 2, stage.clock.now(),
    )  # fmt: skip
    assert (steps["a"].status, steps["a"].input) == ("RUNNING", b'{"topic":"owls"}')
    assert await stage.history(run_id) == ["RunStarted", "StepStarted"]
    assert stage.task("a").input_data == {"topic": "owls"}


async def test_a_run_goes_from_answer_to_answer_to_its_end(stage: ExecutorHarness) -> None:
    run_id = await stage.start(CHAIN)
    await stage.answer(stage.task("a"), "success", output={"text": "owls"})
    await stage.turn()
    await stage.answer(stage.task("b"), "success", output="done")
    await stage.turn()
    record, steps = await stage.run(run_id)
    assert (record.status, record.output, record.version) == ("COMPLETED", b'"done"', 3)
    assert steps["a"].output == b'{"text":"owls"}'
    assert (await stage.history(run_id))[-1] == "RunCompleted"


async def test_an_answer_that_comes_twice_counts_once(stage: ExecutorHarness) -> None:
    run_id = await stage.start(CHAIN)
    for _ in range(2):
        await stage.answer(stage.task("a"), "success", output=1)
        await stage.turn()
    assert (await stage.run(run_id))[0].version == 2
    assert len(stage.published) == 2


async def test_an_answer_that_was_given_up_for_lost_still_resolves_the_doubt(stage: ExecutorHarness) -> None:
    run_id = await stage.start("{name: once, steps: {a: {agent: A, delivery: at_most_once}}}")
    await stage.answer(stage.task("a"), "unknown")
    await stage.turn()
    assert (await stage.run(run_id))[0].status == "WAITING"
    await stage.answer(stage.task("a"), "success", output="late")
    await stage.turn()
    record, _ = await stage.run(run_id)
    assert (record.status, record.output) == ("COMPLETED", b'"late"')


async def test_a_turn_without_anything_to_take_in_changes_nothing(stage: ExecutorHarness) -> None:
    run_id = await stage.start(CHAIN)
    await stage.turn()
    assert (await stage.run(run_id))[0].version == 1


async def test_runs_that_are_woken_together_move_together(stage: ExecutorHarness) -> None:
    version = (await stage.workflows.save(CHAIN.encode())).version
    ids = [await stage.accept(version, number) for number in range(20)]
    await stage.turn()
    assert [(await stage.run(run_id))[0].status for run_id in ids] == ["RUNNING"] * 20
    assert [task.input_data for task in stage.published if isinstance(task, AgentTask)] == list(range(20))


async def test_a_turn_that_is_rolled_back_is_taken_again_from_what_is_stored(stage: ExecutorHarness) -> None:
    run_id = await stage.start(CHAIN)
    await stage.answer(stage.task("a"), "success", output=1)

    async def fail() -> None:
        async with stage.store.transaction() as tx:
            await stage.driver.work(tx)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    stage.driver.rolled_back()
    assert (await stage.run(run_id))[0].version == 1
    stage.published.clear()
    await stage.turn()
    assert (await stage.run(run_id))[0].version == 2
    assert [task.step for task in stage.published if isinstance(task, AgentTask)] == ["b"]


async def test_a_state_kept_at_an_older_version_is_read_again(stage: ExecutorHarness) -> None:
    run_id = await stage.start(CHAIN)
    other = stage.another_driver()
    await stage.put(run_id, "pause/1", PauseRequested())
    await stage.turn(other)
    await stage.answer(stage.task("a"), "success", output=1)
    await stage.turn()
    record, steps = await stage.run(run_id)
    assert (record.status, record.version, steps["a"].status) == ("PAUSED", 3, "COMPLETED")
    await stage.put(run_id, "resume/1", ResumeRequested())
    await stage.turn(other)
    assert stage.task("b").input_data == 1


async def test_a_decision_that_fails_ends_its_own_run_and_no_other(stage: ExecutorHarness) -> None:
    poisoned, healthy = await stage.start(LIMITED), await stage.start(CHAIN)
    await stage.put(poisoned, "reply/nobody/0", ReplyGiven("nobody", ReplyMessage(text="Hello?")))
    await stage.answer(stage.task("a"), "success", output=1)
    await stage.turn()
    record, steps = await stage.run(poisoned)
    assert record.error is not None
    assert (record.status, record.error.code, steps["a"].status) == ("FAILED", "internal_error", "CANCELLED")
    assert (await stage.run(healthy))[1]["b"].status == "RUNNING"
    assert CancelTask(task_id=f"{poisoned}/a/0", attempt=1, run_id=poisoned, agent="A") in stage.published
    assert (await stage.store.backlog()).timers == 0


async def test_an_input_that_cannot_be_read_ends_its_own_run_and_no_other(stage: ExecutorHarness) -> None:
    broken, healthy = await stage.start(LIMITED), await stage.start(CHAIN)
    await stage.put(broken, "result/a/1", b'{"type":"result_arrived","result":' + b"[" * 100_000)
    await stage.put(healthy, "pause/1", PauseRequested())
    await stage.turn()
    assert (await stage.run(broken))[0].status == "FAILED"
    assert (await stage.run(healthy))[0].status == "PAUSED"
    assert (await stage.store.backlog()).inbox == 0


async def test_a_run_whose_workflow_cannot_be_used_any_more_ends_and_no_other(stage: ExecutorHarness) -> None:
    healthy = await stage.start(CHAIN)
    refused = WorkflowVersion(
        workflow_id="018f0000-0000-7000-8000-aaaaaaaaaaaa",
        name="refused",
        version=1,
        canonical=b'{"name":"refused","steps":{"a":{"agent":"A","needs":["gone"]}}}',
        source=b"",
        created_at=stage.clock.now(),
    )
    async with stage.store.transaction() as tx:
        await tx.insert_workflow_version(refused)
    run_id = await stage.accept(refused)
    await stage.put(healthy, "pause/1", PauseRequested())
    await stage.turn()
    record, _ = await stage.run(run_id)
    assert record.error is not None
    assert record.status == "FAILED"
    assert record.error.message.startswith("The run's workflow cannot be used any more: ")
    assert (await stage.run(healthy))[0].status == "PAUSED"


async def test_a_retry_is_timed_and_taken_when_it_is_due(stage: ExecutorHarness) -> None:
    run_id = await stage.start("{name: w, steps: {a: {agent: A, retry: {first_delay: 5s, jitter: false}}}}")
    await stage.answer(stage.task("a"), "error", error=timeout())
    await stage.turn()
    assert stage.timers.next_wake() == after(stage.clock.now(), timedelta(seconds=5))
    stage.clock.advance(timedelta(seconds=4))
    await stage.turn()
    assert len(stage.published) == 1
    stage.clock.advance(timedelta(seconds=1))
    await stage.turn()
    assert (stage.task("a").attempt, stage.task("a").task_id) == (2, f"{run_id}/a/0")
    assert stage.timers.next_wake() is None


async def test_a_timer_that_was_taken_in_a_turn_that_failed_is_taken_again(stage: ExecutorHarness) -> None:
    run_id = await stage.start(LIMITED)
    stage.clock.advance(timedelta(minutes=1))

    async def fail() -> None:
        async with stage.store.transaction() as tx:
            await stage.timers.work(tx)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    stage.timers.rolled_back()
    await stage.turn()
    assert (await stage.run(run_id))[0].status == "FAILED"


async def test_who_watches_a_run_is_told_when_a_change_is_durable(stage: ExecutorHarness) -> None:
    run_id = await stage.start(CHAIN)
    with stage.watchers.watch(run_id) as watch:
        await stage.put(run_id, "pause/1", PauseRequested())
        await stage.turn()
        await watch.changed(60)
    assert (await stage.run(run_id))[0].status == "PAUSED"


async def test_more_inputs_than_a_turn_takes_are_taken_in_the_next(stage: ExecutorHarness) -> None:
    run_id = await stage.start(CHAIN)
    for number in range(520):
        await stage.put(run_id, f"pause/{number}", PauseRequested())
    await stage.turn()
    assert stage.driver.next_wake() == 0
    assert (await stage.store.backlog()).inbox == 8
    await stage.turn()
    assert stage.driver.next_wake() is None
    assert (await stage.store.backlog()).inbox == 0
