"""What every store promises about subscriptions and their deliveries."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.contract.samples import NOW, id_of, insert, new_run, run_id

from trunkline.clock import Instant, after
from trunkline.errors import AlreadyExists
from trunkline.stores.base import ParentStep, Store
from trunkline.stores.port.automation.subscriptions import Attempt, Delivery, SubscriptionRecord
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

HOUR = timedelta(hours=1)


def subscription(name: str) -> SubscriptionRecord:
    return SubscriptionRecord(
        id=id_of(name), name=name, definition=b'{"x":"\x00"}', version=1, created_at=NOW, updated_at=NOW
    )


def delivery(number: int, *, of: str = "a", at: Instant = NOW) -> Delivery:
    return Delivery(
        id=run_id(number),
        subscription_id=id_of(of),
        event_id=f"{number}/\x00",
        type="run.failed",
        run_id=run_id(number) if number % 2 else None,
        event=b'{"x":"\x00"}',
        created_at=at,
    )


async def add(store: Store, *names: str, deliveries: list[Delivery] | None = None) -> None:
    async with store.transaction() as tx:
        for name in names:
            await tx.subscriptions.insert(subscription(name))
        await tx.subscriptions.put_deliveries(deliveries or [])


async def by_name(store: Store, name: str) -> SubscriptionRecord:
    found = await store.subscriptions.get(name)
    assert found is not None
    return found


async def fail(store: Store, error: str, *, disable_before: Instant) -> bool:
    async with store.transaction() as tx:
        return await tx.subscriptions.note_failure(id_of("a"), error, disable_before=disable_before)


async def test_subscriptions_are_listed_in_the_order_of_their_names(store: Store) -> None:
    await add(store, "b", "A", "a")
    assert [each.name for each in await store.subscriptions.page(limit=10)] == ["A", "a", "b"]
    assert [each.name for each in await store.subscriptions.page(limit=1, after="A")] == ["a"]
    async with store.transaction() as tx:
        assert [each.name for each in await tx.subscriptions.all()] == ["A", "a", "b"]
    assert await store.subscriptions.by_id(id_of("a")) == subscription("a")
    assert await store.subscriptions.by_id("nothing") is None
    assert await store.subscriptions.get("nothing") is None


async def test_a_name_is_taken_once(store: Store) -> None:
    await add(store, "a")
    with pytest.raises(AlreadyExists):
        await add(store, "a")


async def test_an_update_replaces_the_definition_and_the_state(store: Store) -> None:
    await add(store, "a")
    changed = msgspec.structs.replace(
        subscription("a"), definition=b"{}", version=2, updated_at=after(NOW, HOUR), failing_since=NOW,
        error="no\x00", disabled_at=after(NOW, HOUR),
    )  # fmt: skip
    async with store.transaction() as tx:
        await tx.subscriptions.update(changed)
    assert await by_name(store, "a") == changed


async def test_a_subscription_that_fails_for_too_long_is_disabled(store: Store, clock: FakeClock) -> None:
    await add(store, "a")
    first = clock.now()
    assert not await fail(store, "one", disable_before=after(first, -HOUR))
    clock.advance(HOUR)
    assert not await fail(store, "two", disable_before=after(clock.now(), -2 * HOUR))
    found = await by_name(store, "a")
    assert (found.failing_since, found.error, found.disabled_at) == (first, "two", None)
    assert await fail(store, "three", disable_before=after(clock.now(), -HOUR))
    disabled_at = clock.now()
    clock.advance(HOUR)
    assert await fail(store, "four", disable_before=after(clock.now(), -HOUR))
    assert (await by_name(store, "a")).disabled_at == disabled_at


async def test_a_success_ends_the_failures(store: Store, clock: FakeClock) -> None:
    await add(store, "a")
    await fail(store, "one", disable_before=after(clock.now(), -HOUR))
    async with store.transaction() as tx:
        await tx.subscriptions.note_success(id_of("a"))
    found = await by_name(store, "a")
    assert (found.failing_since, found.error) == (None, None)
    clock.advance(HOUR)
    assert not await fail(store, "two", disable_before=after(clock.now(), -HOUR))


async def test_a_failure_of_a_subscription_that_is_gone_is_left_out(store: Store) -> None:
    assert not await fail(store, "one", disable_before=NOW)


async def test_deliveries_are_listed_newest_first(store: Store) -> None:
    await add(store, "a", deliveries=[delivery(number) for number in range(1, 4)] + [delivery(9, of="b")])
    assert await store.subscriptions.deliveries(id_of("a"), limit=2) == [delivery(3), delivery(2)]
    older = await store.subscriptions.deliveries(id_of("a"), limit=2, before=run_id(2))
    assert older == [delivery(1)]
    assert await store.subscriptions.delivery(run_id(2)) == delivery(2)
    assert await store.subscriptions.delivery("nothing") is None


async def test_an_attempt_is_noted_with_its_delivery(store: Store, clock: FakeClock) -> None:
    await add(store, "a", deliveries=[delivery(1), delivery(2)])
    attempts = [
        Attempt(delivery_id=run_id(1), status="pending", error="no\x00"),
        Attempt(delivery_id=run_id(2), status="failed", error="old", was_sent=False),
        Attempt(delivery_id=run_id(3), status="delivered"),
    ]
    async with store.transaction() as tx:
        await tx.subscriptions.note_attempts(attempts)
    first, second = (
        await store.subscriptions.delivery(run_id(1)),
        await store.subscriptions.delivery(run_id(2)),
    )
    assert first is not None
    assert second is not None
    assert (first.status, first.attempts, first.error, first.attempted_at) == (
        "pending", 1, "no\x00", clock.now(),
    )  # fmt: skip
    assert (second.status, second.attempts, second.error) == ("failed", 0, "old")


async def test_a_delivery_that_has_ended_can_be_renewed(store: Store) -> None:
    await add(store, "a", deliveries=[delivery(1), delivery(2)])
    async with store.transaction() as tx:
        await tx.subscriptions.note_attempts([Attempt(delivery_id=run_id(1), status="failed", error="no")])
        assert await tx.subscriptions.renew_delivery(run_id(1))
        assert not await tx.subscriptions.renew_delivery(run_id(2))
        assert not await tx.subscriptions.renew_delivery(run_id(3))
    found = await store.subscriptions.delivery(run_id(1))
    assert found is not None
    assert (found.status, found.attempts, found.error) == ("pending", 0, None)


async def test_a_deleted_subscription_takes_its_deliveries_with_it(store: Store) -> None:
    await add(store, "a", "b", deliveries=[delivery(1), delivery(2, of="b")])
    async with store.transaction() as tx:
        assert await tx.subscriptions.delete("a")
        assert not await tx.subscriptions.delete("a")
    assert await store.subscriptions.get("a") is None
    assert await store.subscriptions.delivery(run_id(1)) is None
    assert await store.subscriptions.delivery(run_id(2)) == delivery(2, of="b")


async def test_old_deliveries_are_forgotten_in_batches(store: Store) -> None:
    times = [after(NOW, number * HOUR) for number in range(4)]
    await add(store, "a", deliveries=[delivery(number, at=at) for number, at in enumerate(times)])
    async with store.transaction() as tx:
        assert await tx.subscriptions.forget_deliveries(times[3], 2) == 2
        assert await tx.subscriptions.forget_deliveries(times[3], 2) == 1
        assert await tx.subscriptions.forget_deliveries(times[3], 2) == 0
    left = await store.subscriptions.deliveries(id_of("a"), limit=10)
    assert [each.id for each in left] == [run_id(3)]


async def test_the_labels_of_several_runs_are_read_at_once(store: Store) -> None:
    runs = [
        msgspec.structs.replace(new_run(1), labels={"team": "a", "tier\u00fc": "x"}),
        msgspec.structs.replace(new_run(2), labels={"team": "b"}),
        new_run(3),
    ]
    await insert(store, *runs)
    async with store.transaction() as tx:
        found = await tx.subscriptions.labels_of([run.id for run in runs])
    assert found == {runs[0].id: runs[0].labels, runs[1].id: runs[1].labels}


async def test_a_block_has_the_labels_of_the_run_that_it_is_a_part_of(store: Store) -> None:
    root = msgspec.structs.replace(new_run(1), labels={"team": "a"})
    block, nested = (
        msgspec.structs.replace(new_run(number), parent=ParentStep(run_id(number - 1), "b"), block=place)
        for number, place in ((2, "b"), (3, "b.b"))
    )
    # A run of another workflow, and a block in it.
    child = msgspec.structs.replace(
        new_run(4), parent=ParentStep(nested.id, "c"), depth=1, labels={"team": "b"}
    )
    part_of_child = msgspec.structs.replace(new_run(5), parent=ParentStep(child.id, "b"), depth=1, block="b")
    bare = msgspec.structs.replace(new_run(6), parent=ParentStep(root.id, "c"), depth=1)
    await insert(store, root, block, nested, child, part_of_child, bare)
    async with store.transaction() as tx:
        found = await tx.subscriptions.labels_of([run_id(number) for number in range(1, 7)])
    assert found == {
        root.id: {"team": "a"},
        block.id: {"team": "a"},
        nested.id: {"team": "a"},
        child.id: {"team": "b"},
        part_of_child.id: {"team": "b"},
    }
