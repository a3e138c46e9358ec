"""Work of requests that takes long has a queue of a limited length, and one caller a part of it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from trunkline.errors import Overloaded, TooManyRequests
from trunkline.services.heavy_work import HeavyWork
from trunkline.services.operations.audit_log import acting

pytestmark = pytest.mark.anyio


async def test_a_full_queue_refuses_more_and_takes_work_again_later() -> None:
    work, go_on = HeavyWork(max_queued=3), threading.Event()
    queued = [asyncio.create_task(work.run(go_on.wait)) for _ in range(3)]
    await asyncio.sleep(0)
    refused = asyncio.create_task(work.run(int))
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(Overloaded, match="3 requests that take long are in progress"):
        await refused
    assert await asyncio.gather(*queued) == [True] * 3
    assert await work.run(int, "17") == 17


async def test_one_caller_does_not_fill_the_queue() -> None:
    work, go_on = HeavyWork(max_queued=10, max_queued_per_caller=2), threading.Event()
    with acting("alice"):
        queued = [asyncio.create_task(work.run(go_on.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        refused = asyncio.create_task(work.run(int))
    with acting("bob"):
        other = asyncio.create_task(work.run(int, "1"))
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(TooManyRequests, match="of the API key alice"):
        await refused
    assert await other == 1
    await asyncio.gather(*queued)


async def test_a_request_that_is_given_up_keeps_its_place_while_its_thread_works() -> None:
    work, go_on, started = HeavyWork(max_queued=1), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait() -> None:
        loop.call_soon_threadsafe(started.set)
        go_on.wait()

    left = asyncio.create_task(work.run(wait))
    await started.wait()
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    refused = asyncio.create_task(work.run(int))
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(Overloaded):
        await refused
