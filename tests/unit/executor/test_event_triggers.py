"""Triggers that listen to events and to the ends of runs: one run for each firing, and a limit for chains."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.executor.trigger_harness import TriggerHarness, open_triggers

from trunkline.clock import after
from trunkline.errors import Invalid
from trunkline.executor.event_triggers import MAX_FIRINGS_PER_TURN
from trunkline.jsontypes import Json, encode
from trunkline.services.triggers.triggers import MAX_LISTENERS
from trunkline.stores.port.automation.received_events import NewEvent

pytestmark = pytest.mark.anyio

SETTING = "{name: report, steps: {work: {set: {n: '${ input.n }'}}}}"
OTHER = "{name: other, steps: {work: {agent: A}}}"


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncGenerator[TriggerHarness]:
    async with open_triggers(tmp_path) as opened:
        await opened.workflows.save(SETTING.encode())
        await opened.workflows.save(OTHER.encode())
        yield opened


async def listen(harness: TriggerHarness, name: str = "t", **fields: object) -> None:
    await harness.triggers.save(name, encode({"name": name, "workflow": "report", **fields}))


def event(number: int, data: Json = None, type_: str = "paid") -> NewEvent:
    return NewEvent(id=f"e{number}", source="shop", type=type_, key=f"k{number}", data=encode(data))


async def arrive(harness: TriggerHarness, *events: NewEvent) -> None:
    async with harness.store.transaction() as tx:
        await tx.received_events.put(events, 100)


async def test_an_event_of_the_type_starts_a_run_with_what_it_carries(harness: TriggerHarness) -> None:
    await listen(harness, event={"type": ["paid", "refunded"]}, input={"n": "${ event.data.n }"})
    await arrive(harness, event(1, {"n": 5}), event(2, {"n": 6}, "refunded"), event(3, {"n": 7}, "other"))
    await harness.listen()
    assert [run.input for run in await harness.started()] == [b'{"n":5}', b'{"n":6}']
    firings = await harness.firings()
    assert [firing.outcome for firing in firings] == ["started", "started"]
    assert [firing.run_id for firing in firings] == [run.id for run in await harness.started()]


async def test_the_same_event_again_starts_nothing(harness: TriggerHarness) -> None:
    await listen(harness, event={"type": "paid"}, input={"n": 1})
    for _ in range(2):
        await arrive(harness, event(1))
        await harness.listen()
    assert len(await harness.started()) == 1


async def test_a_turn_that_does_not_commit_leaves_the_pending_firing(harness: TriggerHarness) -> None:
    await listen(harness, event={"type": "paid"}, input={"n": 1})
    await arrive(harness, event(1))
    with suppress(RuntimeError):
        async with harness.store.transaction() as tx:
            await harness.event_part.work(tx)
            raise RuntimeError
    harness.event_part.rolled_back()
    await harness.listen()
    assert await harness.outcomes() == ["started"]


async def test_more_pending_firings_than_a_turn_takes_are_all_taken(harness: TriggerHarness) -> None:
    await listen(harness, event={"type": "paid"}, input={"n": 1})
    count = MAX_FIRINGS_PER_TURN + 1
    await arrive(harness, *(event(number) for number in range(count)))
    await harness.listen()
    assert len(await harness.started()) == MAX_FIRINGS_PER_TURN
    assert harness.event_part.next_wake() == 0
    await harness.listen()
    assert len(await harness.started()) == count


async def test_a_filter_and_a_key_decide_which_events_count(harness: TriggerHarness) -> None:
    source = {"type": "paid", "filter": "event.data.n > 1", "idempotency_key": "${ event.data.order }"}
    await listen(harness, event=source, input={"n": "${ event.data.n }"})
    await arrive(
        harness,
        event(1, {"n": 1, "order": "a"}),
        event(2, {"n": 2, "order": "a"}),
        event(3, {"n": 3, "order": "a"}),
        event(4, "no number"),
    )
    await harness.listen()
    firings = await harness.firings()
    assert sorted(firing.outcome for firing in firings) == ["filtered", "filtered", "skipped", "started"]
    (skipped,) = [firing for firing in firings if firing.outcome == "skipped"]
    (run,) = await harness.started()
    assert skipped.reason == f"Run {run.id} was started for the same key before."


async def test_an_input_that_cannot_be_made_is_noted_and_the_others_go_on(harness: TriggerHarness) -> None:
    await listen(harness, event={"type": "paid"}, input={"n": "${ event.data.missing.field }"})
    await listen(harness, "u", event={"type": "paid"}, input={"n": 1})
    await arrive(harness, event(1, {}))
    await harness.listen()
    (failed,) = await harness.firings()
    assert failed.outcome == "failed"
    assert "missing" in str(failed.reason)
    assert [firing.outcome for firing in await harness.firings("u")] == ["started"]


async def test_a_paused_trigger_does_not_listen(harness: TriggerHarness) -> None:
    await listen(harness, event={"type": "paid"}, input={"n": 1})
    await arrive(harness, event(1))
    await harness.triggers.set_enabled("t", enabled=False)
    await arrive(harness, event(2))
    await harness.listen()
    assert [(firing.outcome, firing.reason) for firing in await harness.firings()] == [
        ("skipped", "The trigger was paused.")
    ]
    await harness.triggers.set_enabled("t", enabled=True)
    await arrive(harness, event(3))
    await harness.listen()
    assert await harness.outcomes() == ["skipped", "started"]


async def test_the_end_of_a_run_starts_another(harness: TriggerHarness) -> None:
    await listen(harness, run={"workflow": "report"}, workflow="other", input={"from": "${ run.output }"})
    await listen(harness, "failures", run={"workflow": "report", "status": "failed"}, workflow="other")
    await listen(harness, "start", event={"type": "paid"}, input={"n": 3})
    await arrive(harness, event(1))
    await harness.listen()
    await harness.listen()
    runs = await harness.started()
    assert len(runs) == 2
    first, second = runs
    assert (first.workflow_name, second.workflow_name) == ("report", "other")
    assert second.input == b'{"from":{"n":3}}'
    assert (second.trigger, second.correlation_id, second.depth) == ("t", first.correlation_id, 1)
    assert await harness.firings("failures") == []


async def test_a_chain_of_runs_that_start_one_another_ends(harness: TriggerHarness) -> None:
    await listen(harness, run={"workflow": "report", "status": ["COMPLETED", "FAILED"]}, input={"n": 1})
    await listen(harness, "start", event={"type": "paid"}, input={"n": 1})
    await arrive(harness, event(1))
    for _ in range(20):
        await harness.listen()
    runs = await harness.started()
    assert [run.depth for run in runs] == list(range(11))
    last = (await harness.firings())[-1]
    reason = (
        f"Run {runs[-1].id} is the last of 10 runs that started one another. Runs that triggers start when a run"
        " ends and child runs of steps count together."
    )
    assert (last.outcome, last.reason) == ("failed", reason)


async def test_the_number_of_triggers_for_one_event_is_limited(harness: TriggerHarness) -> None:
    for number in range(MAX_LISTENERS):
        await listen(harness, f"t{number}", event={"type": "paid"})
    with pytest.raises(Invalid, match="100 triggers already listen"):
        await listen(harness, "more", event={"type": "paid"})
    assert await harness.store.triggers.get("more") is None
    await listen(harness, "more", event={"type": "paid"}, enabled=False)


async def test_an_event_is_kept_until_its_firing_is_taken(harness: TriggerHarness) -> None:
    await listen(harness, event={"type": "paid"}, input={"n": 1})
    await arrive(harness, event(1), event(2, type_="other"))
    async with harness.store.transaction() as tx:
        assert await tx.received_events.delete(after(tx.now, timedelta(hours=1)), 10) == 1
    await harness.listen()
    assert await harness.outcomes() == ["started"]
