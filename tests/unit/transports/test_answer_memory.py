"""The memory that answers in flight share: in order, given back by every end, and never waited for with a share."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.transports.answer_memory import FREE_BYTES, INPUT_COPIES, CallMemory, MemoryBudget

pytestmark = pytest.mark.anyio


async def begun(task: asyncio.Task[None], budget: MemoryBudget) -> None:
    """Until it waits."""
    while budget.has_room and not task.done():
        await asyncio.sleep(0)


async def test_calls_wait_in_order_until_there_is_memory_for_them() -> None:
    budget = MemoryBudget(100)
    first, second, small = (CallMemory(budget) for _ in range(3))
    await first.take(60)
    waiting = asyncio.create_task(second.take(60))
    await begun(waiting, budget)
    behind = asyncio.create_task(small.take(10))
    await asyncio.sleep(0)
    assert [task.done() for task in (waiting, behind)] == [False, False]
    first.release()
    await asyncio.gather(waiting, behind)
    assert budget.taken_bytes == 70
    assert budget.has_room


async def test_an_answer_larger_than_the_budget_gets_all_of_it() -> None:
    budget = MemoryBudget(100)
    call = CallMemory(budget)
    await call.take(1_000)
    assert budget.taken_bytes == 100
    call.release()
    call.release()
    assert budget.taken_bytes == 0


async def test_a_call_that_takes_again_gives_back_first() -> None:
    """Two calls that hold something while they wait for more would wait for each other."""
    budget = MemoryBudget(100)
    call = CallMemory(budget)
    await call.take(80)
    await call.take(90)
    call.shrink(30)
    assert budget.taken_bytes == 30


@pytest.mark.parametrize("is_granted", [False, True])
async def test_a_call_that_is_cancelled_while_it_waits_takes_nothing(is_granted: bool) -> None:
    budget = MemoryBudget(100)
    first, second, third = (CallMemory(budget) for _ in range(3))
    await first.take(100)
    waiting = asyncio.create_task(second.take(100))
    await begun(waiting, budget)
    if is_granted:
        first.release()
    waiting.cancel()
    await asyncio.wait([waiting])
    first.release()
    assert budget.taken_bytes == 0
    await third.take(100)


async def test_inputs_leave_the_rest_to_answers_and_one_answer_always_fits() -> None:
    budget = MemoryBudget(1_000_000)
    first = CallMemory(budget, input_bytes=200_000)
    assert budget.taken_bytes == INPUT_COPIES * 200_000
    assert budget.has_room
    second, third = CallMemory(budget, input_bytes=100_000), CallMemory(budget, input_bytes=FREE_BYTES)
    # Half of it: no call begins before one has ended.
    assert not budget.has_room
    await first.take(900_000)
    waiting = asyncio.create_task(second.take(300_000))
    await begun(waiting, budget)
    assert not waiting.done()
    first.release()
    await waiting
    assert budget.taken_bytes == INPUT_COPIES * 100_000 + 300_000
    await third.take(100_000)
    for call in (second, third):
        call.release()
        call.release()
    assert budget.taken_bytes == 0
    assert budget.has_room
