"""Runs that flow control holds back: they start once, in their order, and none waits forever."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.unit.executor.test_event_triggers import arrive, event
from tests.unit.executor.trigger_harness import TriggerHarness, open_triggers

from trunkline.id_generation import new_run_id
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.machine.inputs import CancelRequested
from trunkline.services.runs.queued_starts import start_behind_workflow_gate
from trunkline.stores.base import NewRun

pytestmark = pytest.mark.anyio


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncGenerator[TriggerHarness]:
    async with open_triggers(tmp_path) as opened:
        await opened.workflows.save(b"{name: report, steps: {work: {agent: A}}}")
        yield opened


async def prepare(harness: TriggerHarness, **flow: object) -> None:
    source = {"name": "t", "workflow": "report", "event": {"type": "paid"}, "input": {"n": "${ event.data }"}}
    await harness.triggers.save("t", encode({**source, **flow}))


async def come(harness: TriggerHarness, *numbers: int) -> None:
    """One after the other; the key is in the tens."""
    for number in numbers:
        await arrive(harness, event(number, number))
        await harness.listen()


async def statuses(harness: TriggerHarness) -> list[str]:
    """Oldest first."""
    return [run.status for run in await harness.started()]


async def run_at(harness: TriggerHarness, place: int) -> RunId:
    return (await harness.started())[place].id


async def end(harness: TriggerHarness, place: int) -> None:
    await harness.end(await run_at(harness, place))
    await harness.look()


async def test_a_run_waits_until_one_with_the_same_key_ends(harness: TriggerHarness) -> None:
    await prepare(harness, concurrency={"limit": 1, "key": "input.n / 10"})
    await come(harness, 11, 12, 21, 13)
    assert await statuses(harness) == ["RUNNING", "PENDING", "RUNNING", "PENDING"]
    wait = await harness.store.start_queue.get(await run_at(harness, 1))
    assert wait is not None
    assert wait.reason == "concurrency"
    await end(harness, 2)
    assert await statuses(harness) == ["RUNNING", "PENDING", "COMPLETED", "PENDING"]
    await end(harness, 0)
    assert await statuses(harness) == ["COMPLETED", "RUNNING", "COMPLETED", "PENDING"]
    await end(harness, 1)
    await end(harness, 3)
    assert await statuses(harness) == ["COMPLETED"] * 4
    await harness.look()
    async with harness.store.transaction() as tx:
        assert await tx.start_queue.next_due() is None


async def test_a_run_that_is_cancelled_while_it_waits_leaves_its_place(harness: TriggerHarness) -> None:
    await prepare(harness, concurrency={"limit": 1})
    await come(harness, 1, 2, 3)
    await harness.put(await run_at(harness, 1), "cancel", CancelRequested())
    await harness.look()
    await end(harness, 0)
    assert await statuses(harness) == ["COMPLETED", "CANCELLED", "RUNNING"]


async def test_a_run_above_the_limit_is_cancelled_with_the_reason(harness: TriggerHarness) -> None:
    await prepare(harness, concurrency={"limit": 1, "on_limit": "drop"})
    await come(harness, 1, 2)
    first, second = await harness.started()
    assert (first.status, second.status) == ("RUNNING", "CANCELLED")
    assert second.error is not None
    assert (second.error.code, second.error.message) == (
        "not_started",
        "As many runs with the same key as the limit, 1, had not ended (on_limit: drop).",
    )
    await end(harness, 0)
    await come(harness, 3)
    assert await statuses(harness) == ["COMPLETED", "CANCELLED", "RUNNING"]


async def test_the_newest_replaces_the_oldest(harness: TriggerHarness) -> None:
    await prepare(harness, concurrency={"limit": 1, "on_limit": "cancel_oldest"})
    await come(harness, 1, 2, 3)
    await harness.look()
    task = harness.published[0]
    assert (await harness.started())[0].cancel_requested_at is not None
    await harness.answer(task, "cancelled")  # pyright: ignore[reportArgumentType] - a task, not its end
    await harness.look()
    await harness.look()
    assert await statuses(harness) == ["CANCELLED", "CANCELLED", "RUNNING"]


async def test_a_rate_spreads_the_starts(harness: TriggerHarness) -> None:
    await prepare(harness, throttle="2/m")
    await come(harness, 1, 2, 3, 4)
    assert await statuses(harness) == ["RUNNING", "RUNNING", "PENDING", "PENDING"]
    await harness.at(seconds=29)
    assert (await statuses(harness)).count("RUNNING") == 2
    await harness.at(seconds=1)
    assert await statuses(harness) == ["RUNNING", "RUNNING", "RUNNING", "PENDING"]
    await harness.at(seconds=30)
    assert await statuses(harness) == ["RUNNING"] * 4


async def test_the_last_of_several_starts_when_it_is_quiet(harness: TriggerHarness) -> None:
    await prepare(harness, debounce="30s by input.n / 10")
    await come(harness, 11, 12, 21)
    await harness.at(seconds=20)
    await come(harness, 13)
    await harness.at(seconds=10)
    assert await statuses(harness) == ["CANCELLED", "CANCELLED", "RUNNING", "PENDING"]
    await harness.at(seconds=20)
    assert await statuses(harness) == ["CANCELLED", "CANCELLED", "RUNNING", "RUNNING"]


async def test_an_executor_that_starts_again_goes_on_with_those_that_wait(harness: TriggerHarness) -> None:
    await prepare(harness, concurrency={"limit": 1}, priority=3)
    await come(harness, 1, 2)
    harness.restart()
    await end(harness, 0)
    assert await statuses(harness) == ["COMPLETED", "RUNNING"]


async def test_scheduled_runs_are_held_back_as_well(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h", "overlap": "allow"}, concurrency={"limit": 1})
    await harness.at(hours=1)
    await harness.at(hours=1)
    assert await statuses(harness) == ["RUNNING", "PENDING"]
    await end(harness, 0)
    assert await statuses(harness) == ["COMPLETED", "RUNNING"]


async def test_a_key_that_cannot_be_evaluated_is_noted(harness: TriggerHarness) -> None:
    await prepare(harness, concurrency={"limit": 1, "key": "input.missing"})
    await come(harness, 1)
    (firing,) = await harness.firings()
    assert (firing.outcome, "missing" in str(firing.reason)) == ("failed", True)


async def test_a_run_of_a_request_waits_until_one_of_the_same_workflow_ends(harness: TriggerHarness) -> None:
    text = b"{name: limited, steps: {work: {agent: A}}, concurrency: {limit: 1}}"
    saved = (await harness.workflows.save(text)).version
    compiled = await harness.workflows.compiled(saved.workflow_id, saved.version)
    for _ in range(2):
        start = start_behind_workflow_gate(saved.workflow_id, compiled, {}, harness.clock.now())
        run = NewRun(
            id=new_run_id(),
            workflow_id=saved.workflow_id,
            workflow_name=saved.name,
            workflow_version=saved.version,
            input=b"{}",
            correlation_id="c",
            created_at=harness.clock.now(),
            start=start,
        )
        async with harness.store.transaction() as tx:
            await tx.runs.insert([run])
            await harness.gate_part.begin(tx, [run])
        await harness.look()
    assert await statuses(harness) == ["RUNNING", "PENDING"]
    await end(harness, 0)
    assert await statuses(harness) == ["COMPLETED", "RUNNING"]
