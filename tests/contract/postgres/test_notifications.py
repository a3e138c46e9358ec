"""What one process announces through PostgreSQL is received in every other, and a listener comes back after a cut."""

from __future__ import annotations

import asyncio

import pytest
from deploy.local.postgres import PostgresServer
from tests.contract.disconnects import disconnect_all, eventually
from tests.contract.samples import run_id

from trunkline.errors import Unavailable
from trunkline.ids import RunId
from trunkline.stores.base import InputsQueued, Notification, PollsDue, RunsChanged, Store

pytestmark = pytest.mark.anyio


async def test_a_notification_reaches_every_process_once_it_is_committed(one: Store, two: Store) -> None:
    received: list[Notification] = []
    many = [RunId(f"018f0000-0000-7000-8000-{number:012x}") for number in range(1_000)]

    async def fail() -> None:
        async with one.transaction() as tx:
            await tx.notify(RunsChanged([run_id(9)]))
            raise RuntimeError("on purpose")

    async with two.listen(received.append):
        with pytest.raises(RuntimeError, match="on purpose"):
            await fail()
        async with one.transaction() as tx:
            await tx.notify(RunsChanged(many, many[:400]))
            await tx.notify(RunsChanged([]))

        def changed() -> set[RunId]:
            return {
                run
                for notification in received
                if isinstance(notification, RunsChanged)
                for run in notification.run_ids
            }

        await eventually(lambda: changed() == set(many))
        ended = {
            run
            for notification in received
            if isinstance(notification, RunsChanged)
            for run in notification.ended
        }
        assert ended == set(many[:400])
        before = len(received)
        async with one.transaction() as tx:
            await tx.notify(InputsQueued(7))
            await tx.notify(InputsQueued(2**32 - 1))
            await tx.notify(PollsDue())
        announced = {InputsQueued(7), InputsQueued(2**32 - 1), PollsDue()}
        await eventually(lambda: all(each in received[before:] for each in announced))


async def test_with_many_batches_at_once_all_executors_look(one: Store, two: Store) -> None:
    received: list[Notification] = []
    async with two.listen(received.append):
        await eventually(lambda: received == [InputsQueued()])
        async with one.transaction() as tx:
            for number in range(100):
                await tx.notify(InputsQueued(number))
        await eventually(lambda: received[1:] == [InputsQueued()])


async def test_a_listener_that_lost_its_connection_listens_again(
    one: Store, two: Store, postgres: PostgresServer, database: str
) -> None:
    received: list[Notification] = []
    async with two.listen(received.append):
        await eventually(lambda: received == [InputsQueued()])
        disconnect_all(postgres, database)
        # It rings when it is back: something may have been missed.
        await eventually(lambda: len(received) > 1)
        while RunsChanged([run_id(1)], frozenset()) not in received:
            await _try_to_notify(one)
            await asyncio.sleep(0.05)


async def _try_to_notify(store: Store) -> None:
    try:
        async with store.transaction() as tx:
            await tx.notify(RunsChanged([run_id(1)]))
    except Unavailable:
        # Its connections were cut too.
        return
