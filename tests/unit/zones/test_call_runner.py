"""A zone's work: each call runs once, is answered in time, and is never forgotten."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.zones.work_harness import (
    HELLO,
    NEVER,
    GatedHandler,
    WorkHarness,
    error_of,
    reason_of,
    task_of,
    work_harness,
)

from trunkline.stores.zones import ZoneStore
from trunkline.stores.zones.file import open_zone_file
from trunkline.zones.call_runner import ZoneCallAccepted, ZoneCallErrored, ZoneCallSucceeded
from trunkline.zones.errors import ZoneFault
from trunkline.zones.thread_pool import DaemonThreadPool

pytestmark = pytest.mark.anyio

# A deadline in seconds, on a busy machine too: a handler that never started could not be cancelled.
HANDLER_STARTS_WITHIN = 1.0


@pytest.fixture
def store(tmp_path: Path) -> Generator[ZoneStore]:
    with open_zone_file(tmp_path / "zone.db") as opened:
        yield opened


@pytest.fixture
async def harness_that_waits(store: ZoneStore) -> AsyncGenerator[WorkHarness]:
    """Answers nothing before it is done."""
    async with work_harness(store) as harness:
        yield harness


@pytest.fixture
async def harness_that_accepts(store: ZoneStore) -> AsyncGenerator[WorkHarness]:
    """Answers at once that it is under way."""
    async with work_harness(store, accept_after=0.0) as harness:
        yield harness


async def test_a_quick_call_is_answered_with_its_result(harness_that_waits: WorkHarness) -> None:
    assert await harness_that_waits.answer(
        harness_that_waits.job(GatedHandler(is_open=True))
    ) == ZoneCallSucceeded(HELLO)
    assert harness_that_waits.store.running() == []
    assert not harness_that_waits.work.is_busy


async def test_a_call_is_written_down_before_its_handler_runs(harness_that_waits: WorkHarness) -> None:
    known: list[int] = []

    async def look() -> bytes:
        known.append(len(harness_that_waits.store.running()))
        return HELLO

    await harness_that_waits.answer(harness_that_waits.job(look))
    assert known == [1]


async def test_a_fault_is_answered_as_an_error_with_its_correlation_id(
    harness_that_waits: WorkHarness,
) -> None:
    async def fail() -> bytes:
        raise ZoneFault(-32050, "No such channel", {"channel": "C1"})

    error = error_of(await harness_that_waits.answer(harness_that_waits.job(fail)))
    assert error == {
        "code": -32050,
        "message": "No such channel",
        "data": {"channel": "C1", "correlation_id": "c-1"},
    }


@pytest.mark.parametrize("error", [RuntimeError("xoxb-secret"), asyncio.CancelledError("xoxb-secret")])
async def test_whatever_else_a_handler_raises_is_an_internal_error(
    harness_that_waits: WorkHarness, error: BaseException
) -> None:
    async def break_() -> bytes:
        raise error

    answer = await harness_that_waits.answer(harness_that_waits.job(break_))
    assert error_of(answer) == {
        "code": -32603,
        "message": "Internal error",
        "data": {"correlation_id": "c-1"},
    }


async def test_the_same_call_again_gets_the_same_answer_and_runs_nothing(
    harness_that_waits: WorkHarness,
) -> None:
    handler = GatedHandler(is_open=True)
    first = await harness_that_waits.answer(harness_that_waits.job(handler))
    assert await harness_that_waits.answer(harness_that_waits.job(handler)) == first
    assert handler.runs == 1


async def test_the_same_call_twice_at_once_runs_once_and_both_get_its_answer(
    harness_that_waits: WorkHarness,
) -> None:
    handler = GatedHandler()
    async with asyncio.TaskGroup() as group:
        calls = [
            group.create_task(harness_that_waits.answer(harness_that_waits.job(handler))) for _ in range(5)
        ]
        await handler.began.wait()
        handler.gate.set()
    assert [call.result() for call in calls] == [ZoneCallSucceeded(HELLO)] * 5
    assert handler.runs == 1


async def test_an_id_is_refused_for_other_params_while_it_runs(harness_that_accepts: WorkHarness) -> None:
    handler = GatedHandler()
    task_id = task_of(await harness_that_accepts.answer(harness_that_accepts.job(handler)))
    refused = await harness_that_accepts.answer(harness_that_accepts.job(handler, digest=b"other"))
    assert refused != ZoneCallAccepted(task_id)
    assert reason_of(refused) == (-32000, "id_reused")
    assert handler.runs == 1


async def test_an_id_is_refused_for_other_params_after_it_has_ended(harness_that_waits: WorkHarness) -> None:
    handler = GatedHandler(is_open=True)
    first = await harness_that_waits.answer(harness_that_waits.job(handler))
    refused = await harness_that_waits.answer(harness_that_waits.job(handler, digest=b"other"))
    assert refused != first
    assert reason_of(refused) == (-32000, "id_reused")
    assert handler.runs == 1


async def test_slow_work_is_accepted_and_its_result_is_there_later(harness_that_accepts: WorkHarness) -> None:
    handler = GatedHandler()
    task_id = task_of(await harness_that_accepts.answer(harness_that_accepts.job(handler)))
    assert harness_that_accepts.work.is_busy
    assert harness_that_accepts.work.result_of("partner", task_id) == ZoneCallAccepted(task_id)
    assert await harness_that_accepts.answer(harness_that_accepts.job(handler)) == ZoneCallAccepted(task_id)
    handler.gate.set()
    assert await harness_that_accepts.end_of(task_id) == ZoneCallSucceeded(HELLO)
    assert await harness_that_accepts.answer(harness_that_accepts.job(handler)) == ZoneCallSucceeded(HELLO)
    assert handler.runs == 1
    assert not harness_that_accepts.work.is_busy


async def test_a_task_belongs_to_its_bridge_alone(harness_that_accepts: WorkHarness) -> None:
    task_id = task_of(await harness_that_accepts.answer(harness_that_accepts.job(GatedHandler())))
    assert harness_that_accepts.work.result_of("another partner", task_id) is None
    assert harness_that_accepts.work.result_of("partner", "another task") is None


async def test_accepted_work_that_fails_is_an_error_when_it_is_asked_for(
    harness_that_accepts: WorkHarness,
) -> None:
    gate = asyncio.Event()

    async def fail() -> bytes:
        await gate.wait()
        raise ZoneFault(-32050, "No such channel")

    task_id = task_of(await harness_that_accepts.answer(harness_that_accepts.job(fail)))
    gate.set()
    assert error_of(await harness_that_accepts.end_of(task_id))["code"] == -32050


async def test_work_is_cancelled_at_its_deadline_and_answered_with_a_timeout(
    harness_that_waits: WorkHarness,
) -> None:
    handler = GatedHandler()
    error = error_of(
        await harness_that_waits.answer(harness_that_waits.job(handler, deadline=HANDLER_STARTS_WITHIN))
    )
    assert error == {
        "code": -32001,
        "message": "Timeout",
        "data": {"deadline_seconds": HANDLER_STARTS_WITHIN, "correlation_id": "c-1"},
    }
    while not handler.cancelled:
        await asyncio.sleep(0)


async def test_accepted_work_has_a_deadline_too(harness_that_accepts: WorkHarness) -> None:
    task_id = task_of(
        await harness_that_accepts.answer(
            harness_that_accepts.job(GatedHandler(), deadline=HANDLER_STARTS_WITHIN)
        )
    )
    assert error_of(await harness_that_accepts.end_of(task_id))["code"] == -32001


async def test_what_a_handler_returns_after_its_deadline_does_not_count(
    harness_that_waits: WorkHarness,
) -> None:
    ended = asyncio.Event()

    async def stubborn() -> bytes:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.set()
        return HELLO

    job = harness_that_waits.job(stubborn, deadline=HANDLER_STARTS_WITHIN)
    assert error_of(await harness_that_waits.answer(job))["code"] == -32001
    await ended.wait()
    await asyncio.sleep(0)
    assert error_of(await harness_that_waits.answer(job))["code"] == -32001


async def test_a_handler_in_a_thread_is_answered_for_at_its_deadline_and_what_it_returns_is_dropped(
    harness_that_waits: WorkHarness,
) -> None:
    threads, gate, left = DaemonThreadPool(), threading.Event(), threading.Event()

    def block() -> bytes:
        gate.wait()
        left.set()
        return HELLO

    async def perform() -> bytes:
        return await asyncio.get_running_loop().run_in_executor(threads, block)

    job = harness_that_waits.job(perform, deadline=HANDLER_STARTS_WITHIN)
    assert error_of(await harness_that_waits.answer(job))["code"] == -32001
    gate.set()
    assert left.wait(20)
    assert error_of(await harness_that_waits.answer(job))["code"] == -32001
    threads.shutdown()


async def test_a_caller_that_goes_away_does_not_end_the_work(harness_that_waits: WorkHarness) -> None:
    handler = GatedHandler()
    caller = asyncio.create_task(harness_that_waits.work.run(harness_that_waits.job(handler)))
    await handler.began.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    again = asyncio.create_task(harness_that_waits.answer(harness_that_waits.job(handler)))
    await asyncio.sleep(0)
    handler.gate.set()
    assert await again == ZoneCallSucceeded(HELLO)
    assert (handler.runs, handler.cancelled) == (1, 0)


async def test_answers_are_forgotten_after_their_time_and_running_work_never(
    harness_that_accepts: WorkHarness,
) -> None:
    handler, endless = GatedHandler(is_open=True), GatedHandler()
    await harness_that_accepts.answer(harness_that_accepts.job(handler))
    task_id = task_of(await harness_that_accepts.answer(harness_that_accepts.job(endless, "2")))
    harness_that_accepts.clock.advance(timedelta(hours=23))
    await harness_that_accepts.work.remove_expired()
    await harness_that_accepts.answer(harness_that_accepts.job(handler))
    assert handler.runs == 1
    harness_that_accepts.clock.advance(timedelta(hours=2))
    await harness_that_accepts.work.remove_expired()
    await harness_that_accepts.answer(harness_that_accepts.job(handler))
    assert handler.runs == 2
    assert harness_that_accepts.work.result_of("partner", task_id) == ZoneCallAccepted(task_id)


async def test_params_are_at_rest_only_where_they_may_be_needed_and_never_in_clear(
    harness_that_accepts: WorkHarness,
) -> None:
    await harness_that_accepts.answer(harness_that_accepts.job(GatedHandler(), "1"))
    await harness_that_accepts.answer(harness_that_accepts.job(GatedHandler(), "2", restartable=True))
    plain, sealed = (call.params for call in harness_that_accepts.store.running())
    assert plain is None
    assert sealed is not None
    assert b"xoxb" not in sealed


@pytest.mark.parametrize("deadline", [NEVER, 0.0])
async def test_an_answer_is_one_even_when_everything_happens_at_once(
    harness_that_accepts: WorkHarness, deadline: float
) -> None:
    answers = [
        await harness_that_accepts.answer(
            harness_that_accepts.job(GatedHandler(is_open=True), str(number), deadline=deadline)
        )
        for number in range(50)
    ]
    for number, answer in enumerate(answers):
        end = (
            await harness_that_accepts.end_of(answer.task_id)
            if isinstance(answer, ZoneCallAccepted)
            else answer
        )
        assert isinstance(end, ZoneCallSucceeded | ZoneCallErrored)
        assert await harness_that_accepts.answer(harness_that_accepts.job(GatedHandler(), str(number))) == end
