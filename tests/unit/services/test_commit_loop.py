"""The commit loop: its parts learn the outcome of a turn after its end, and not before."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from trunkline.clock import Instant, after
from trunkline.messages import OutgoingMessage
from trunkline.services.commit_loop import CommitLoop
from trunkline.stores.base import Store, Transaction
from trunkline.telemetry.metrics import Metrics
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio


class Writer:
    """Writes a row in every turn, and notes what it hears."""

    def __init__(self) -> None:
        self.called: list[str] = []

    async def work(self, tx: Transaction) -> None:
        self.called.append("work")
        await tx.outbox.put([OutgoingMessage("topic", "key", b"value")])

    def committed(self) -> None:
        self.called.append("committed")

    def rolled_back(self) -> None:
        self.called.append("rolled back")

    def next_wake(self) -> Instant | None:
        return None


class FailsOnce(Writer):
    async def work(self, tx: Transaction) -> None:
        await super().work(tx)
        if self.called.count("work") == 1:
            raise RuntimeError("on purpose")


async def test_a_turn_that_fails_is_never_reported_as_committed_and_leaves_nothing(
    store: Store, clock: FakeClock
) -> None:
    first, second = Writer(), FailsOnce()
    loop = CommitLoop(store, clock, Metrics())
    loop.set_parts([first, second])
    loop.stop()
    async with asyncio.timeout(60):
        await loop.run()
    assert first.called == second.called == ["work", "rolled back"]
    assert loop.failure == "on purpose"
    assert (await store.backlog.count()).outbox == 0


async def test_parts_are_notified_of_a_commit_when_it_is_durable_and_all_have_worked(
    store: Store, clock: FakeClock
) -> None:
    order: list[tuple[str, str]] = []

    class Named(Writer):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        async def work(self, tx: Transaction) -> None:
            del tx
            order.append((self.name, "work"))

        def committed(self) -> None:
            order.append((self.name, "committed"))

    loop = CommitLoop(store, clock, Metrics())
    loop.set_parts([Named("a"), Named("b")])
    loop.stop()
    async with asyncio.timeout(60):
        await loop.run()
    assert order == [("a", "work"), ("b", "work"), ("a", "committed"), ("b", "committed")]
    assert loop.failure is None


async def test_what_is_due_by_the_stores_clock_is_not_looked_for_again_and_again_by_ours(
    store: Store, clock: FakeClock
) -> None:
    ours = FakeClock(after(clock.now(), timedelta(hours=1)))
    again = asyncio.Event()

    class Waiting(Writer):
        async def work(self, tx: Transaction) -> None:
            del tx
            if self.called:
                again.set()
            self.called.append("work")

        def next_wake(self) -> Instant | None:
            return after(clock.now(), timedelta(minutes=1))

    loop = CommitLoop(store, ours, Metrics())
    loop.set_parts([Waiting()])
    running = asyncio.create_task(loop.run())
    # Shorter than the longest nap.
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(again.wait(), 0.3)
    loop.stop()
    await running
