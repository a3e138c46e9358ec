"""What is reported to which subscription, and which queue it goes into."""

from __future__ import annotations

from datetime import timedelta

import pytest

from trunkline.id_generation import new_id
from trunkline.ids import RunId
from trunkline.services.subscriptions.definition import (
    ChangeType,
    SubscriptionDefinition,
    canonical_subscription,
)
from trunkline.services.subscriptions.directory import FRESH_FOR, SubscriptionDirectory
from trunkline.services.subscriptions.reporter import LANES, Change, ChangeReporter, RunSubject, queues_of
from trunkline.stores.base import Store
from trunkline.stores.port.automation.subscriptions import SubscriptionRecord
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

ID = "018f0000-0000-7000-8000-000000000001"
LASTS = timedelta(seconds=30)


async def add(store: Store, *types: ChangeType) -> None:
    definition = SubscriptionDefinition(name="s", url="https://example.com/", types=types)
    async with store.transaction() as tx:
        await tx.subscriptions.insert(
            SubscriptionRecord(
                id=ID,
                name="s",
                definition=canonical_subscription(definition),
                version=1,
                created_at=tx.now,
                updated_at=tx.now,
            )
        )


def failed(run_id: RunId, seq: int, type_: ChangeType = "run.failed") -> Change:
    return Change(type_, run_id, {}, RunSubject(run_id, "w", seq))


async def report(store: Store, reporter: ChangeReporter, *changes: Change) -> None:
    async with store.transaction() as tx:
        await reporter.report(tx, changes)


async def queued(store: Store) -> dict[str, list[str]]:
    """The ids of the events in each queue."""
    async with store.transaction() as tx:
        claimed = await tx.callbacks.claim(new_id(), limit=100, each=100, lasts=LASTS)
    found: dict[str, list[str]] = {}
    for queue in claimed:
        for callback in queue.callbacks:
            delivery = await store.subscriptions.delivery(callback.payload.decode())
            assert delivery is not None
            found.setdefault(queue.queue, []).append(delivery.event_id)
    return found


async def test_the_deliveries_of_a_run_are_in_one_queue_in_their_order(store: Store) -> None:
    await add(store, "run.failed", "step.failed")
    reporter = ChangeReporter(SubscriptionDirectory())
    runs = [RunId(new_id()) for _ in range(LANES * 4)]
    await report(store, reporter, *(failed(run_id, 1, "step.failed") for run_id in runs))
    await report(store, reporter, *(failed(run_id, 2) for run_id in runs))
    found = await queued(store)
    assert found.keys() <= {*queues_of(ID)}
    # All of them are used, by so many runs.
    assert len(found) > LANES / 2
    for run_id in runs:
        of_run = [[event for event in events if event.startswith(run_id)] for events in found.values()]
        assert [events for events in of_run if events] == [[f"{run_id}/1", f"{run_id}/2"]]


async def test_only_wanted_types_are_stored(store: Store) -> None:
    await add(store, "run.failed")
    reporter = ChangeReporter(SubscriptionDirectory())
    run_id = RunId(new_id())
    breaker = Change("breaker.open", "agent", {})
    await report(store, reporter, breaker, failed(run_id, 1, "step.failed"), failed(run_id, 2))
    assert list((await queued(store)).values()) == [[f"{run_id}/2"]]


async def test_what_is_not_about_a_run_has_a_queue_of_its_own(store: Store) -> None:
    await add(store, "breaker.open")
    await report(store, ChangeReporter(SubscriptionDirectory()), Change("breaker.open", "agent", {}))
    assert list(await queued(store)) == [queues_of(ID)[0]]


async def test_a_subscription_of_another_process_counts_after_a_second(
    store: Store, clock: FakeClock
) -> None:
    reporter, run_id = ChangeReporter(SubscriptionDirectory()), RunId(new_id())
    await report(store, reporter, failed(run_id, 1))
    await add(store, "run.failed")
    await report(store, reporter, failed(run_id, 2))
    assert await queued(store) == {}
    clock.advance(FRESH_FOR)
    await report(store, reporter, failed(run_id, 3))
    assert list((await queued(store)).values()) == [[f"{run_id}/3"]]


async def test_a_subscription_of_this_process_counts_at_once(store: Store) -> None:
    directory = SubscriptionDirectory()
    reporter, run_id = ChangeReporter(directory), RunId(new_id())
    await report(store, reporter, failed(run_id, 1))
    await add(store, "run.failed")
    directory.forget()
    await report(store, reporter, failed(run_id, 2))
    assert list((await queued(store)).values()) == [[f"{run_id}/2"]]


async def test_what_is_rolled_back_is_not_reported(store: Store) -> None:
    await add(store, "run.failed")
    reporter = ChangeReporter(SubscriptionDirectory())

    async def report_and_fail() -> None:
        async with store.transaction() as tx:
            await reporter.report(tx, [failed(RunId(new_id()), 1)])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await report_and_fail()
    assert await queued(store) == {}
