"""What every store promises about large payloads: equal ones are stored once, and deleted with the last run."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import msgspec
import pytest
from tests.contract.bridges import ME, claim, register
from tests.contract.samples import NOW, insert, key_of, new_run, queue, run_id, task, transition, write

from trunkline.clock import after
from trunkline.jsontypes import encode
from trunkline.machine.state import StepState, StepStatus
from trunkline.messages import Dispatch
from trunkline.stores.base import Store
from trunkline.stores.payloads import MAX_UNUSED_BYTES
from trunkline.stores.port.transfer import PAYLOAD_USES, PAYLOADS

pytestmark = pytest.mark.anyio

LONG = "long ü " * 30_000
PIECE = encode(LONG)
MINUTE = timedelta(minutes=1)


def given(item: int, text: str = LONG) -> bytes:
    return encode({"text": text, "item": item})


def step(name: str, status: StepStatus, item: int = 0, output: bytes | None = None) -> StepState:
    return StepState(name=name, status=status, attempts=1, input=given(item), output=output)


async def pieces(store: Store) -> list[bytes]:
    """All that are stored."""
    async with store.transaction() as tx:
        rows = [row async for batch in tx.transfer.dump(PAYLOADS) for row in batch]
    return [row[1] for row in rows if isinstance(row[1], bytes)]


async def users(store: Store) -> int:
    async with store.transaction() as tx:
        return sum([len(rows) async for rows in tx.transfer.dump(PAYLOAD_USES)])


async def test_a_text_that_many_items_get_is_stored_once(store: Store) -> None:
    answer = encode({"text": LONG})
    await insert(store, msgspec.structs.replace(new_run(1), input=answer))
    steps = [step(f"each[{number}]", "RUNNING", number) for number in range(20)]
    steps.append(step("read", "COMPLETED", output=answer))
    await write(store, transition(1, steps=steps))
    assert await pieces(store) == [PIECE]
    # All of it is read as it was written.
    found = await store.runs.get(run_id(1))
    assert found is not None
    record, (read,) = found
    assert (record.input, read.output) == (answer, answer)
    items = await store.runs.items(run_id(1), "each", limit=50)
    assert [each.input for each in items] == [given(number) for number in range(20)]
    (listed,) = await store.runs.page(limit=5)
    assert listed.input == answer


async def test_a_decision_does_not_read_what_steps_that_are_over_were_given(store: Store) -> None:
    await insert(store, new_run(1))
    answer = encode({"text": LONG})
    over = step("a", "COMPLETED", output=answer)
    await write(store, transition(1, steps=[over, step("b", "RUNNING", 1)]))
    async with store.transaction() as tx:
        ((_, (first, second)),) = await tx.runs.load([run_id(1)])
        assert first.unread_input_bytes == len(given(0))
        assert first.unread_output_bytes == len(answer)
        assert first.size_bytes == over.size_bytes
        assert second.input == given(1)
        ((_, (asked, _)),) = await tx.runs.load([run_id(1)], ["a"])
        assert (asked.output, asked.unread_output_bytes) == (answer, 0)
        ((_, (every, _)),) = await tx.runs.load([run_id(1)], None)
        assert every.output == answer
    # What was not read is written back as it was.
    first.warnings = ("looked at again",)
    await write(store, transition(1, expected=1, steps=[first]))
    found = await store.runs.get(run_id(1))
    assert found is not None
    assert (found[1][0].input, found[1][0].output) == (given(0), answer)
    assert found[1][0].warnings == ("looked at again",)


@pytest.mark.parametrize("by_retention", [True, False])
async def test_the_last_run_that_uses_a_piece_takes_it_along(store: Store, by_retention: bool) -> None:
    for number in (1, 2):
        await insert(store, new_run(number))
        ended = transition(
            number,
            status="COMPLETED",
            steps=[step("a", "COMPLETED")],
            finished_at=after(NOW, number * MINUTE),
        )
        await write(store, ended)
    for number, left in ((1, [PIECE]), (2, [])):
        async with store.transaction() as tx:
            if by_retention:
                assert await tx.runs.delete_finished(after(NOW, number * MINUTE + MINUTE / 2), 10) == 1
            else:
                assert await tx.runs.delete_lowest([run_id(number)], 10) == {run_id(number)}
        assert await pieces(store) == left
        assert await users(store) == len(left)


async def test_what_is_rolled_back_stores_nothing(store: Store) -> None:
    await insert(store, new_run(1))
    with suppress(ZeroDivisionError):
        async with store.transaction() as tx:
            await tx.runs.write_transitions([transition(1, steps=[step("a", "RUNNING")])])
            raise ZeroDivisionError
    assert await pieces(store) == []
    # Of a transition that came too late, nothing is stored either.
    await write(store, transition(1, expected=7, steps=[step("a", "RUNNING")]))
    assert (await pieces(store), await users(store)) == ([], 0)


async def test_a_piece_that_is_deleted_while_another_run_begins_to_use_it_is_there(store: Store) -> None:
    for number in range(1, 9):
        await insert(store, new_run(number))
    await write(store, transition(1, status="COMPLETED", steps=[step("a", "COMPLETED")], finished_at=NOW))

    async def delete(number: int) -> None:
        async with store.transaction() as tx:
            assert await tx.runs.delete_lowest([run_id(number)], 10) == {run_id(number)}
            await asyncio.sleep(0)

    async def use(number: int) -> None:
        done = transition(
            number, status="COMPLETED", steps=[step("a", "COMPLETED")], finished_at=after(NOW, MINUTE)
        )
        assert await write(store, done) == set()

    for number in range(2, 9):
        await asyncio.gather(delete(number - 1), use(number))
        found = await store.runs.get(run_id(number))
        assert found is not None
        assert found[1][0].input == given(0)
        assert await users(store) == 1
    await delete(8)
    assert await pieces(store) == []


async def test_two_runs_that_are_deleted_at_the_same_time_leave_no_piece(store: Store) -> None:
    for number in range(1, 7):
        await insert(store, new_run(number))
        await write(
            store, transition(number, status="COMPLETED", steps=[step("a", "COMPLETED")], finished_at=NOW)
        )

    async def delete(number: int) -> None:
        async with store.transaction() as tx:
            assert await tx.runs.delete_lowest([run_id(number)], 10) == {run_id(number)}

    await asyncio.gather(*(delete(number) for number in range(1, 7)))
    assert (await pieces(store), await users(store)) == ([], 0)


async def test_outputs_that_are_written_over_do_not_pile_up(store: Store) -> None:
    await insert(store, new_run(1))
    size = MAX_UNUSED_BYTES // 4
    outputs = [encode({"text": str(number % 10) * size, "round": number}) for number in range(20)]
    done = step("a", "RUNNING", output=outputs[-1])
    for number, output in enumerate(outputs):
        done = step("a", "RUNNING", output=output)
        change = transition(1, expected=number, steps=[done])
        change.state.step_bytes = done.size_bytes
        await write(store, change)
    stored = sum(map(len, await pieces(store)))
    assert stored <= 2 * done.size_bytes + MAX_UNUSED_BYTES + size
    found = await store.runs.get(run_id(1))
    assert found is not None
    assert found[1][0].output == outputs[-1]


async def test_tasks_have_their_inputs_whole_and_store_them_once(store: Store) -> None:
    await register(store, "A")
    tasks = [
        msgspec.structs.replace(task(number), input_data={"text": LONG, "item": number})
        for number in (1, 2, 3)
    ]
    await queue(store, *tasks)
    assert await pieces(store) == [PIECE]
    claimed = await claim(store)
    assert [each.task for each in claimed] == tasks
    assert [each.payload_bytes for each in claimed] == [len(encode(each)) for each in tasks]
    async with store.transaction() as tx:
        assert [each.task for each in await tx.tasks.held(ME)] == tasks
        (stopped,) = await tx.tasks.stop(ME, [key_of(tasks[0])])
        assert stopped.claim.task == tasks[0]


async def test_sent_tasks_have_their_inputs_whole_and_store_them_once(store: Store) -> None:
    sent = [
        msgspec.structs.replace(task(number), input_data={"text": LONG, "item": number})
        for number in (1, 2, 3)
    ]
    await insert(store, *(new_run(number) for number in (1, 2, 3)))
    async with store.transaction() as tx:
        dispatches = [Dispatch(key_of(each), run_id(at + 1), encode(each)) for at, each in enumerate(sent)]
        await tx.dispatches.put(dispatches, timedelta(0))
    assert await pieces(store) == [PIECE]
    async with store.transaction() as tx:
        wanted = {key_of(each): encode(each) for each in sent}
        assert dict(await tx.dispatches.payloads(list(wanted))) == wanted
        due = await tx.dispatches.take_due(10, MINUTE)
    assert sorted(due, key=lambda each: each.run_id) == dispatches
