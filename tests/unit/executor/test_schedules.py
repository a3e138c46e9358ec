"""Schedules: each scheduled instant starts one run, in one transaction with its firing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from tests.unit.executor.trigger_harness import TriggerHarness, hour, open_triggers

from trunkline.clock import rfc3339
from trunkline.executor.schedules import MAX_QUEUED
from trunkline.jsontypes import decode

pytestmark = pytest.mark.anyio


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncGenerator[TriggerHarness]:
    async with open_triggers(tmp_path) as opened:
        yield opened


async def test_a_firing_starts_a_run_that_knows_its_trigger(harness: TriggerHarness) -> None:
    await harness.schedule(
        {"every": "1h"}, input={"at": "${ trigger.scheduled_at }", "of": "${ trigger.name }"}
    )
    await harness.at(hours=1, seconds=3)
    (run,) = await harness.started()
    assert decode(run.input) == {"at": rfc3339(hour(1)), "of": "t"}
    assert (run.trigger, run.started_by, run.status) == ("t", "trigger:t", "RUNNING")
    (firing,) = await harness.firings()
    assert (firing.outcome, firing.run_id, firing.scheduled_at) == ("started", run.id, hour(1))
    assert firing.at == harness.clock.now()


async def test_nothing_starts_before_its_time_and_nothing_twice(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h", "overlap": "allow"})
    await harness.at(minutes=59, seconds=59)
    assert await harness.started() == []
    for _ in range(3):
        await harness.at(seconds=1)
    assert len(await harness.started()) == 1


async def test_the_loop_sleeps_until_the_next_firing(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h"})
    await harness.look()
    assert harness.part.next_wake() == hour(1)
    await harness.at(hours=1)
    assert harness.part.next_wake() == hour(2)


async def test_a_turn_that_does_not_commit_has_started_nothing(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h"})
    harness.clock.advance(timedelta(hours=1))
    await harness.crash()
    assert await harness.started() == []
    await harness.look()
    assert len(await harness.started()) == 1


async def test_two_executors_start_one_run(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h"})
    other = harness.part
    harness.restart()
    await harness.at(hours=1)
    async with harness.store.transaction() as tx:
        await other.work(tx)
    assert len(await harness.started()) == 1


async def test_an_instant_that_has_started_its_run_before_starts_no_second_one(
    harness: TriggerHarness,
) -> None:
    await harness.schedule({"every": "1h", "overlap": "allow"})
    await harness.at(hours=1)
    (run,) = await harness.started()
    trigger = await harness.triggers.get("t")
    async with harness.store.transaction() as tx:
        await tx.triggers.update([msgspec.structs.replace(trigger, scheduled_at=hour(1), due=hour(1))])
    await harness.at(seconds=1)
    assert [each.id for each in await harness.started()] == [run.id]
    assert await harness.outcomes() == ["started"]
    assert (await harness.triggers.get("t")).due == hour(2)


async def test_a_firing_is_skipped_while_the_run_of_an_earlier_one_goes_on(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h"})
    await harness.at(hours=1)
    await harness.at(hours=1)
    (run,) = await harness.started()
    firings = await harness.firings()
    assert [firing.outcome for firing in firings] == ["started", "skipped"]
    assert run.id in (firings[1].reason or "")
    await harness.end(run.id)
    await harness.at(hours=1)
    assert await harness.outcomes() == ["started", "skipped", "started"]


async def test_runs_of_a_trigger_that_allows_it_overlap(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h", "overlap": "allow"})
    await harness.at(hours=1)
    await harness.at(hours=1)
    assert len(await harness.started()) == 2


async def test_the_run_of_an_earlier_firing_is_cancelled_for_the_next(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h", "overlap": "cancel_previous"})
    await harness.at(hours=1)
    await harness.at(hours=1)
    first, second = await harness.started()
    assert first.cancel_requested_at is not None
    assert second.cancel_requested_at is None


async def test_queued_firings_start_one_after_the_other_when_runs_end(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h", "overlap": "queue"}, input={"at": "${ trigger.scheduled_at }"})
    for _ in range(3):
        await harness.at(hours=1)
    assert await harness.outcomes() == ["started", "queued", "queued"]
    for number in (1, 2):
        last = (await harness.started())[-1]
        await harness.end(last.id)
        # The end was in that turn; the next one starts what has waited for it.
        assert harness.part.next_wake() == 0
        await harness.look()
        runs = await harness.started()
        assert len(runs) == number + 1
        assert decode(runs[-1].input) == {"at": rfc3339(hour(number + 1))}
    assert await harness.outcomes() == ["started"] * 3
    assert len({firing.run_id for firing in await harness.firings()}) == 3


async def test_the_queue_of_a_trigger_has_a_limit(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h", "overlap": "queue"})
    for _ in range(MAX_QUEUED + 3):
        await harness.at(hours=1)
    outcomes = await harness.outcomes()
    assert outcomes == ["started", *["queued"] * MAX_QUEUED, "skipped", "skipped"]


async def test_a_queued_firing_that_cannot_start_lets_the_next_one_go_on(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h", "overlap": "queue"})
    for _ in range(3):
        await harness.at(hours=1)
    await harness.workflows.save(b"{name: report, input: {required: [x]}, steps: {work: {agent: A}}}")
    (run,) = await harness.started()
    await harness.end(run.id)
    await harness.look()
    await harness.look()
    assert await harness.outcomes() == ["started", "failed", "failed"]


async def test_a_trigger_that_queues_no_more_drops_what_is_queued(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h", "overlap": "queue"})
    for _ in range(2):
        await harness.at(hours=1)
    await harness.schedule({"every": "1h"})
    assert await harness.outcomes() == ["started", "skipped"]


async def test_a_firing_that_can_start_no_run_says_why_and_the_next_one_is_tried(
    harness: TriggerHarness,
) -> None:
    await harness.schedule({"every": "1h"}, input={"n": "${ trigger.nothing }"})
    await harness.at(hours=1)
    await harness.at(hours=1)
    firings = await harness.firings()
    assert [firing.outcome for firing in firings] == ["failed", "failed"]
    assert "trigger has no key 'nothing'" in (firings[0].reason or "")
    assert await harness.started() == []


async def test_a_trigger_whose_definition_cannot_be_used_does_not_stop_the_others(
    harness: TriggerHarness,
) -> None:
    await harness.schedule({"every": "1h"})
    broken = await harness.triggers.get("t")
    async with harness.store.transaction() as tx:
        await tx.triggers.insert(
            msgspec.structs.replace(
                broken, id="018f0000-0000-7000-8000-000000000000", name="a", definition=b"{"
            )
        )
    await harness.at(hours=1)
    assert len(await harness.started()) == 1
    assert (await harness.triggers.get("a")).due is None


async def test_what_was_missed_is_in_the_history(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h", "catch_up": "last"})
    await harness.at(hours=5, minutes=30)
    firings = await harness.firings()
    assert [(firing.outcome, firing.scheduled_at) for firing in firings] == [
        ("missed", hour(1)),
        ("started", hour(5)),
    ]
    assert rfc3339(hour(4)) in (firings[0].reason or "")


async def test_a_paused_trigger_fires_again_at_its_next_time(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h", "catch_up": "all"})
    await harness.triggers.set_enabled("t", enabled=False)
    await harness.at(hours=3, minutes=30)
    assert await harness.firings() == []
    assert (await harness.triggers.set_enabled("t", enabled=True)).scheduled_at == hour(4)
    await harness.at(minutes=30)
    assert [firing.scheduled_at for firing in await harness.firings()] == [hour(4)]


async def test_another_description_does_not_move_the_next_firing(harness: TriggerHarness) -> None:
    await harness.schedule({"every": "1h"})
    harness.clock.advance(timedelta(hours=1))
    await harness.schedule({"every": "1h"}, description="new")
    assert (await harness.triggers.get("t")).scheduled_at == hour(1)
    await harness.look()
    assert await harness.outcomes() == ["started"]


async def test_a_list_of_times_is_over_after_the_last(harness: TriggerHarness) -> None:
    await harness.schedule({"at": [rfc3339(hour(1)), rfc3339(hour(2))], "overlap": "allow"})
    await harness.at(hours=1)
    await harness.at(hours=1)
    trigger = await harness.triggers.get("t")
    assert (trigger.scheduled_at, trigger.due) == (None, None)
    assert await harness.outcomes() == ["started", "started"]
