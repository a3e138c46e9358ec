"""How long a task is listened to: not at all longer than it must be, once the agent has it."""

from __future__ import annotations

import asyncio

import pytest

from trunkline.bridge.calls.streams import StreamTimeout

pytestmark = pytest.mark.anyio

AMPLE = 60.0


async def listen(timeout: StreamTimeout) -> None:
    async with timeout:
        await asyncio.Event().wait()


async def has_ended(listening: asyncio.Task[None], within: float = 5.0) -> bool:
    ended, _ = await asyncio.wait([listening], timeout=within)
    listening.cancel()
    return bool(ended)


async def test_an_agent_that_has_the_task_is_let_go_when_the_time_is_up() -> None:
    timeout = StreamTimeout(0.01)
    listening = asyncio.create_task(listen(timeout))
    await asyncio.sleep(0)
    timeout.agent_has_task()
    assert await has_ended(listening)
    with pytest.raises(TimeoutError):
        await listening
    assert timeout.has_expired


async def test_the_next_stream_of_the_task_has_what_is_left() -> None:
    timeout = StreamTimeout(0.0)
    timeout.agent_has_task()
    assert await has_ended(asyncio.create_task(listen(timeout)))


async def test_who_leaves_waits_for_no_agent_that_can_be_asked_later() -> None:
    timeout = StreamTimeout(AMPLE)
    timeout.agent_has_task()
    listening = asyncio.create_task(listen(timeout))
    await asyncio.sleep(0)
    timeout.expire()
    assert await has_ended(listening)


async def test_an_answer_of_an_agent_that_has_not_accepted_the_task_is_read_whole() -> None:
    timeout = StreamTimeout(0.0)
    listening = asyncio.create_task(listen(timeout))
    await asyncio.sleep(0)
    timeout.expire()
    assert not await has_ended(listening, within=0.1)
    assert not timeout.has_expired


async def test_a_client_that_leaves_between_two_streams_disturbs_no_other() -> None:
    timeout = StreamTimeout(AMPLE)
    timeout.agent_has_task()
    async with timeout:
        pass
    timeout.expire()
    assert timeout.has_expired
    assert await has_ended(asyncio.create_task(listen(timeout)))
