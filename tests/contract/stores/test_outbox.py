"""What every store promises about what travels: the outbox, tasks that are sent again, and results that are kept."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import msgspec
import pytest
from tests.contract.backends import OpenStore
from tests.contract.bridges import answer, claim, done, stop, taken
from tests.contract.samples import (
    NOW,
    insert,
    item,
    key_of,
    new_run,
    put,
    queue,
    queued,
    run_id,
    task,
    transition,
    write,
)

from trunkline.clock import after
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.messages import AgentTask, OutgoingMessage
from trunkline.stores.base import Dispatch, Store, TaskKey
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(minutes=5)


def message(number: int) -> OutgoingMessage:
    return OutgoingMessage(
        "tasks", f"key-{number}", b"\x00\xff" + bytes(number), (("kind", b"task"), ("kind", b""))
    )


def dispatch(made: AgentTask) -> Dispatch:
    return Dispatch(key_of(made), RunId(made.run_id), encode(made))


async def send(store: Store, *messages: OutgoingMessage) -> None:
    async with store.transaction() as tx:
        await tx.outbox.put(messages)


async def take(store: Store, limit: int = 100) -> list[OutgoingMessage]:
    async with store.transaction() as tx:
        return await tx.outbox.take(limit)


async def dispatch_all(store: Store, *tasks: AgentTask) -> None:
    async with store.transaction() as tx:
        await tx.dispatches.put([dispatch(each) for each in tasks], FIRST_PAUSE)


async def due(store: Store, limit: int = 100) -> list[TaskKey]:
    async with store.transaction() as tx:
        return [each.key for each in await tx.dispatches.take_due(limit, LONGEST_PAUSE)]


async def resent(store: Store, made: AgentTask) -> list[bytes]:
    """What a bridge hears of a task that is sent to it again."""
    async with store.transaction() as tx:
        return await tx.tasks.put([queued(made)])


async def settle(store: Store, *keys: TaskKey) -> None:
    async with store.transaction() as tx:
        await tx.dispatches.settle(keys)


# --- the outbox


async def test_messages_leave_the_outbox_once_as_they_came_in_and_in_that_order(store: Store) -> None:
    await send(store, message(1), message(2))
    await send(store, message(3))
    assert (await store.backlog.count()).outbox > 0
    assert await take(store) == [message(1), message(2), message(3)]
    assert await take(store) == []
    assert (await store.backlog.count()).outbox == 0


async def test_what_is_taken_in_a_transaction_that_fails_is_still_there(store: Store) -> None:
    await send(store, message(1))

    async def fail() -> None:
        async with store.transaction() as tx:
            assert await tx.outbox.take(10) == [message(1)]
            await tx.outbox.put([message(2)])
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await fail()
    assert await take(store) == [message(1)]


async def test_a_long_outbox_is_taken_a_part_at_a_time(store: Store) -> None:
    for number in range(6):
        await send(store, message(2 * number), message(2 * number + 1))
    parts: list[list[OutgoingMessage]] = []
    while part := await take(store, 3):
        parts.append(part)
    assert len(parts) > 1
    assert [each for part in parts for each in part] == [message(number) for number in range(12)]


async def test_what_could_not_be_sent_is_put_back(store: Store) -> None:
    await send(store, message(1), message(2))
    async with store.transaction() as tx:
        _, unsent = await tx.outbox.take(10)
        await tx.outbox.put([unsent])
    assert await take(store) == [message(2)]


async def test_nothing_to_send_leaves_nothing_to_take(store: Store) -> None:
    await send(store)
    assert (await store.backlog.count()).outbox == 0
    assert await take(store) == []


async def test_the_outbox_is_there_after_a_restart(open_store: OpenStore) -> None:
    async with open_store() as store:
        await send(store, message(1))
    async with open_store() as store:
        assert await take(store) == [message(1)]


async def test_what_its_transaction_reserves_is_taken_by_no_other_for_a_while(
    store: Store, clock: FakeClock
) -> None:
    await send(store, message(1))
    async with store.transaction() as tx:
        await tx.outbox.put([message(2)])
        await tx.outbox.put([message(3)])
        batch = await tx.outbox.reserve(timedelta(seconds=2))
        # What comes later is for everyone.
        await tx.outbox.put([message(4)])
    assert batch.messages == [message(2), message(3)]
    assert await take(store) == [message(1), message(4)]
    clock.advance(timedelta(seconds=2))
    assert await take(store) == [message(2), message(3)]


async def test_what_has_arrived_is_deleted_whether_it_is_still_there_or_not(
    store: Store, clock: FakeClock
) -> None:
    async with store.transaction() as tx:
        await tx.outbox.put([message(1)])
        batch = await tx.outbox.reserve(timedelta(seconds=2))
    await send(store, message(2))
    for _ in range(2):
        async with store.transaction() as tx:
            await tx.outbox.delete(batch.rows)
    clock.advance(timedelta(seconds=2))
    assert await take(store) == [message(2)]


async def test_a_transaction_that_puts_nothing_reserves_nothing(store: Store) -> None:
    await send(store, message(1))
    async with store.transaction() as tx:
        batch = await tx.outbox.reserve(timedelta(seconds=2))
    assert (list(batch.rows), list(batch.messages)) == ([], [])
    assert await take(store) == [message(1)]


async def test_what_a_savepoint_undid_is_not_reserved(store: Store) -> None:
    async with store.transaction() as tx:
        await tx.outbox.put([message(1)])
        with suppress(ZeroDivisionError):
            async with tx.savepoint():
                await tx.outbox.put([message(2)])
                # It is written before the savepoint is undone.
                await tx.dispatches.payloads([])
                raise ZeroDivisionError
        batch = await tx.outbox.reserve(timedelta(seconds=2))
    assert batch.messages == [message(1)]
    assert len(batch.rows) == 1


# --- dispatches


async def test_a_task_is_sent_again_after_ever_longer_pauses(store: Store, clock: FakeClock) -> None:
    await insert(store, new_run(1))
    await dispatch_all(store, task(1))
    begun = clock.now()
    sent_after: list[float] = []
    for _ in range(100):
        clock.advance(timedelta(seconds=10))
        if await due(store):
            sent_after.append((clock.now() - begun) / 1_000_000)
    assert sent_after == [30, 90, 210, 450, 750]


async def test_a_dispatch_comes_back_as_it_was_put(store: Store, clock: FakeClock) -> None:
    await insert(store, new_run(1))
    await dispatch_all(store, task(1))
    clock.advance(FIRST_PAUSE)
    async with store.transaction() as tx:
        assert await tx.dispatches.take_due(10, LONGEST_PAUSE) == [dispatch(task(1))]


async def test_what_is_due_longest_is_sent_first(store: Store, clock: FakeClock) -> None:
    await insert(store, *(new_run(number) for number in (1, 2, 3)))
    for number in (3, 1, 2):
        await dispatch_all(store, task(number))
        clock.advance(timedelta(seconds=1))
    clock.advance(FIRST_PAUSE)
    assert await due(store, limit=2) == [key_of(task(3)), key_of(task(1))]
    assert await due(store) == [key_of(task(2))]


async def test_a_task_whose_result_has_come_is_not_sent_again(store: Store, clock: FakeClock) -> None:
    await insert(store, new_run(1))
    await dispatch_all(store, task(1), task(1, attempt=2), task(1, step="b"))
    await settle(store, key_of(task(1)), TaskKey("nobody/knows/0", 1))
    clock.advance(FIRST_PAUSE)
    assert set(await due(store)) == {key_of(task(1, attempt=2)), key_of(task(1, step="b"))}


async def test_a_task_that_was_dispatched_before_keeps_its_pause(store: Store, clock: FakeClock) -> None:
    await insert(store, new_run(1))
    await dispatch_all(store, task(1))
    clock.advance(FIRST_PAUSE)
    assert len(await due(store)) == 1
    await dispatch_all(store, task(1))
    clock.advance(FIRST_PAUSE)
    assert await due(store) == []


async def test_what_is_due_of_a_run_that_has_ended_or_is_gone_is_forgotten(
    store: Store, clock: FakeClock
) -> None:
    await insert(store, new_run(1), new_run(2))
    await dispatch_all(store, task(1), task(2), task(3))
    await write(store, transition(1, status="CANCELLED", finished_at=NOW))
    clock.advance(FIRST_PAUSE)
    assert await due(store) == [key_of(task(2))]
    async with store.transaction() as tx:
        known = await tx.dispatches.payloads([key_of(task(number)) for number in (1, 2, 3)])
    assert known == {key_of(task(2)): encode(task(2))}


async def test_the_task_that_a_message_refers_to_is_found_until_it_is_settled(store: Store) -> None:
    await insert(store, new_run(1))
    await dispatch_all(store, task(1), task(1, attempt=2))
    keys = [key_of(task(1)), key_of(task(1, attempt=2)), TaskKey("nobody/knows/0", 1)]
    async with store.transaction() as tx:
        assert await tx.dispatches.payloads(keys) == {
            keys[0]: encode(task(1)),
            keys[1]: encode(task(1, attempt=2)),
        }
        await tx.dispatches.settle(keys[:1])
        assert await tx.dispatches.payloads(keys) == {keys[1]: encode(task(1, attempt=2))}
        assert await tx.dispatches.payloads([]) == {}


async def test_a_run_whose_task_will_be_sent_again_has_a_reason_to_wake(store: Store) -> None:
    await insert(store, new_run(1))
    assert (await store.backlog.count()).without_wake_reason == 1
    await dispatch_all(store, task(1))
    assert (await store.backlog.count()).without_wake_reason == 0
    await settle(store, key_of(task(1)))
    await put(store, item(1, "k"))
    assert (await store.backlog.count()).without_wake_reason == 0


async def test_the_dispatches_of_a_run_are_deleted_with_it(store: Store) -> None:
    await insert(store, new_run(1), new_run(2))
    await dispatch_all(store, task(1), task(2))
    await write(store, transition(1, status="COMPLETED", finished_at=NOW))
    async with store.transaction() as tx:
        assert await tx.runs.delete_finished(after(NOW, timedelta(seconds=1)), 10) == 1
        assert set(await tx.dispatches.payloads([key_of(task(1)), key_of(task(2))])) == {key_of(task(2))}


# --- results that are kept


async def test_a_repeated_task_gets_the_stored_result(store: Store) -> None:
    await queue(store, task(1), task(2))
    claimed = {each.task.run_id: each for each in await claim(store)}
    assert await resent(store, task(1)) == []
    await answer(store, msgspec.structs.replace(done(claimed[run_id(1)]), result=b"answer"))
    assert await resent(store, task(1)) == [b"answer"]
    assert await resent(store, task(2)) == []
    assert await claim(store) == []


async def test_a_result_is_dropped_when_it_has_arrived(store: Store) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await answer(store, msgspec.structs.replace(done(claimed), result=b"answer"))
    async with store.transaction() as tx:
        assert await tx.tasks.results([claimed.key]) == {claimed.key: b"answer"}
    await settle(store, claimed.key)
    async with store.transaction() as tx:
        assert await tx.tasks.results([claimed.key]) == {}
    assert await resent(store, task(1)) == []
    assert await claim(store) == []


async def test_the_result_of_a_task_that_ended_without_an_answer_is_kept_too(store: Store) -> None:
    await queue(store, task(1))
    await stop(store, key_of(task(1)))
    async with store.transaction() as tx:
        await tx.tasks.keep_results({key_of(task(1)): b"cancelled", TaskKey("nobody/knows/0", 1): b"x"})
        assert await tx.tasks.results([key_of(task(1)), TaskKey("nobody/knows/0", 1)]) == {
            key_of(task(1)): b"cancelled"
        }
    assert await resent(store, task(1)) == [b"cancelled"]


async def test_a_task_that_goes_on_at_the_agent_is_known_when_it_is_sent_again(
    store: Store, clock: FakeClock
) -> None:
    await queue(store, task(1))
    (claimed,) = await claim(store)
    await answer(store, taken(claimed))
    assert await resent(store, task(1)) == []
    clock.advance(timedelta(seconds=30))
    assert [each.remote_task_id for each in await claim(store)] == ["remote-1"]


async def test_a_task_of_a_run_that_has_ended_or_is_gone_is_dropped(store: Store) -> None:
    await insert(store, new_run(1))
    await write(store, transition(1, status="CANCELLED", finished_at=NOW))
    assert await resent(store, task(1)) == []
    assert await resent(store, task(2)) == []
    assert await claim(store) == []


async def test_a_task_of_a_run_that_ends_in_the_same_transaction_is_dropped(store: Store) -> None:
    await insert(store, new_run(1), new_run(2))
    async with store.transaction() as tx:
        await tx.runs.insert([new_run(3)])
        await tx.runs.write_transitions([transition(1, status="FAILED", finished_at=NOW), transition(2)])
        made = [task(number) for number in (1, 2, 3)]
        assert await tx.tasks.put([queued(each) for each in made]) == []
    assert {each.task.run_id for each in await claim(store)} == {run_id(2), run_id(3)}
