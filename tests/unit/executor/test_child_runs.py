"""Runs that begin runs: in one transaction with the decision, and heard of in one with their end."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.executor.executor_harness import ExecutorHarness

from trunkline.ids import RunId, child_run_id
from trunkline.machine.inputs import CancelRequested, PauseRequested, ReplyGiven
from trunkline.machine.steps.child import MAX_DEPTH
from trunkline.messages import CancelTask, Question, ReplyMessage, StepError
from trunkline.stores.base import ParentStep

pytestmark = pytest.mark.anyio

CHILD = "{name: child, input: {type: object}, steps: {work: {agent: A}}}"
PARENT = "{name: parent, steps: {c: {workflow: child, input: {n: 1}}, after: {agent: B, needs: [c]}}}"


@pytest.fixture
async def parent(executor: ExecutorHarness) -> RunId:
    """Its child has begun, and has taken no turn yet."""
    await executor.workflows.save(CHILD.encode())
    return await executor.start(PARENT)


async def test_a_child_is_begun_with_the_decision_and_knows_where_it_comes_from(
    executor: ExecutorHarness, parent: RunId
) -> None:
    record, _ = await executor.run(child_run_id(parent, "c", 1))
    above, steps = await executor.run(parent)
    assert (record.workflow_name, record.input, record.status) == ("child", b'{"n":1}', "PENDING")
    assert (record.parent, record.depth) == (ParentStep(parent, "c"), 1)
    assert (record.correlation_id, record.trace) == (above.correlation_id, above.trace)
    assert (above.status, steps["c"].status) == ("RUNNING", "RUNNING")


async def test_a_child_inherits_what_agents_were_like_when_its_parent_was_accepted(
    executor: ExecutorHarness,
) -> None:
    await executor.workflows.save(CHILD.encode())
    version = (await executor.workflows.save(PARENT.encode())).version
    run_id = await executor.accept(version, routes=7)
    await executor.turn()
    assert (await executor.run(child_run_id(run_id, "c", 1)))[0].routing_version == 7


async def test_the_end_of_a_child_lets_its_parent_go_on(executor: ExecutorHarness, parent: RunId) -> None:
    await executor.turn()
    await executor.answer(executor.task("work"), "success", output={"text": "done"})
    await executor.turn()
    assert (await executor.run(child_run_id(parent, "c", 1)))[0].status == "COMPLETED"
    assert (await executor.store.backlog.count()).without_wake_reason == 0
    await executor.turn()
    assert (await executor.run(parent))[1]["c"].output == b'{"text":"done"}'
    assert executor.task("after").run_id == parent


async def test_a_parent_waits_with_its_child_and_goes_on_with_it(
    executor: ExecutorHarness, parent: RunId
) -> None:
    child = child_run_id(parent, "c", 1)
    await executor.turn()
    question = Question(kind="input", text="Which one?")
    await executor.answer(executor.task("work"), "interrupted", question=question)
    await executor.turn()
    await executor.turn()
    above, steps = await executor.run(parent)
    waiting = steps["c"].waiting_for
    assert waiting is not None
    assert (above.status, waiting.text, waiting.inside[0].run_id) == ("WAITING", "Which one?", child)
    await executor.put(child, "reply", ReplyGiven("work", ReplyMessage(text="that one")))
    await executor.turn()
    await executor.turn()
    above, steps = await executor.run(parent)
    assert (above.status, steps["c"].status, steps["c"].waiting_for) == ("RUNNING", "RUNNING", None)


async def test_the_loop_is_not_left_to_sleep_while_a_child_has_something_to_take_in(
    executor: ExecutorHarness, parent: RunId
) -> None:
    assert executor.driver.next_wake() == 0
    await executor.turn()
    assert executor.driver.next_wake() is None
    await executor.put(child_run_id(parent, "c", 1), "cancel", CancelRequested())
    await executor.answer(executor.task("work"), "cancelled")
    await executor.turn()
    assert executor.driver.next_wake() == 0


async def test_a_decision_that_is_not_written_begins_no_child(executor: ExecutorHarness) -> None:
    await executor.workflows.save(CHILD.encode())
    version = (await executor.workflows.save(PARENT.encode())).version
    run_id = await executor.accept(version)

    async def fail() -> None:
        async with executor.store.transaction() as tx:
            await executor.driver.work(tx)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    executor.driver.rolled_back()
    assert len(await executor.store.runs.page(limit=10)) == 1
    await executor.turn()
    assert (await executor.run(child_run_id(run_id, "c", 1)))[0].status == "PENDING"


async def test_a_child_receives_what_happens_to_its_parent(executor: ExecutorHarness, parent: RunId) -> None:
    await executor.turn()
    child = child_run_id(parent, "c", 1)
    await executor.put(parent, "pause", PauseRequested())
    for _ in range(2):
        await executor.turn()
    assert (await executor.run(child))[0].status == "PAUSED"
    await executor.put(parent, "cancel", CancelRequested())
    for _ in range(2):
        await executor.turn()
    assert isinstance(executor.published[-1], CancelTask)
    await executor.answer(executor.task("work"), "cancelled")
    for _ in range(2):
        await executor.turn()
    assert [(await executor.run(run_id))[0].status for run_id in (child, parent)] == ["CANCELLED"] * 2


async def test_a_child_that_cannot_be_decided_fails_its_parent_too(
    executor: ExecutorHarness, parent: RunId
) -> None:
    child = child_run_id(parent, "c", 1)
    await executor.put(child, "poison", b"{}")
    for _ in range(2):
        await executor.turn()
    assert (await executor.run(child))[0].status == "FAILED"
    error = (await executor.run(parent))[0].error
    assert error is not None
    assert (error.code, error.detail) == (
        "child_failed",
        {
            "run_id": child,
            "code": "internal_error",
            "message": "Trunkline could not decide how to continue this run.",
            "step": None,
        },
    )


@pytest.mark.parametrize(
    ("workflow", "code"),
    [
        ("{name: parent, steps: {c: {workflow: nobody}}}", "workflow_unknown"),
        ("{name: parent, steps: {c: {workflow: child, version: 2}}}", "workflow_unknown"),
        ("{name: parent, steps: {c: {workflow: child, input: [1]}}}", "child_input_invalid"),
    ],
    ids=["no workflow", "no version", "unfit input"],
)
async def test_a_child_that_cannot_begin_is_a_failure_of_the_step(
    executor: ExecutorHarness, workflow: str, code: str
) -> None:
    await executor.workflows.save(CHILD.encode())
    run_id = await executor.start(workflow)
    await executor.turn()
    record, steps = await executor.run(run_id)
    assert (record.status, steps["c"].status) == ("FAILED", "FAILED")
    assert isinstance(record.error, StepError)
    assert (record.error.code, record.error.step) == (code, "c")
    assert len(await executor.store.runs.page(limit=10)) == 1


async def test_runs_that_begin_one_another_for_ever_end_at_the_deepest(executor: ExecutorHarness) -> None:
    # Each alone is no circle; the second is saved by somebody who does not look.
    version = (await executor.workflows.save(b"{name: a, steps: {c: {workflow: b}}}")).version
    back = (await executor.workflows.save(b"{name: b, steps: {c: {workflow: x}}}")).version
    circle = msgspec.structs.replace(
        back, version=2, canonical=back.canonical.replace(b'"x"', b'"a"'), source=b""
    )
    async with executor.store.transaction() as tx:
        await tx.workflows.insert_version(circle)
    run_id = await executor.accept(version)
    for _ in range(3 * MAX_DEPTH):
        await executor.turn()
    runs = await executor.store.runs.page(limit=100)
    assert {run.status for run in runs} == {"FAILED"}
    assert sorted(run.depth for run in runs) == list(range(MAX_DEPTH + 1))
    error = (await executor.run(run_id))[0].error
    assert error is not None
    assert "already nested 10 levels deep" in error.message
    assert "Runs that triggers start when a run ends and child runs of steps count together." in error.message
