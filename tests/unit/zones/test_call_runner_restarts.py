"""What becomes of a zone's work when the zone stops, dies, or cannot write."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.unit.zones.work_harness import (
    HELLO,
    GatedHandler,
    WorkHarness,
    error_of,
    reason_of,
    task_of,
    work_harness,
)

from trunkline.errors import Unavailable
from trunkline.services.security.vault import KEY_BYTES, Vault
from trunkline.stores.zones import CallKey, ZoneStore
from trunkline.stores.zones.file import ZoneFile, open_zone_file
from trunkline.zones.call_runner import (
    MAX_RUNS,
    ZoneCallAccepted,
    ZoneCallJob,
    ZoneCallRunner,
    ZoneCallSucceeded,
)
from trunkline.zones.errors import ZoneFault

pytestmark = pytest.mark.anyio


@pytest.fixture
def store(tmp_path: Path) -> Generator[ZoneFile]:
    with open_zone_file(tmp_path / "zone.db") as opened:
        yield opened


async def left_behind(
    store: ZoneStore, id_: str = "1", *, accepted: bool = True, restartable: bool = False
) -> str:
    """A call that has begun in a process that then died; its task."""
    dead = WorkHarness(store, accept_after=0.0 if accepted else 3_600.0)
    handler = GatedHandler()
    call = asyncio.create_task(dead.answer(dead.job(handler, id_, restartable=restartable)))
    await handler.began.wait()
    if accepted:
        await call
    task_id = store.running()[-1].task_id
    # Nobody hears of it any more.
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    return task_id


async def test_work_that_died_with_the_zone_is_reported_as_failed_and_not_run_again(store: ZoneFile) -> None:
    task_id = await left_behind(store)
    async with work_harness(store) as harness:
        answer = harness.work.result_of("partner", task_id)
        assert answer != ZoneCallAccepted(task_id)
        assert reason_of(answer) == (-32000, "interrupted")
        assert "interrupted by a restart" in str(error_of(answer)["message"])
        handler = GatedHandler(is_open=True)
        assert await harness.answer(harness.job(handler)) == answer
        assert handler.runs == 0
        assert harness.revived.runs == 0


async def test_a_call_that_died_before_its_first_answer_is_known_by_its_id(store: ZoneFile) -> None:
    await left_behind(store, accepted=False)
    async with work_harness(store) as harness:
        handler = GatedHandler(is_open=True)
        answer = await harness.answer(harness.job(handler))
        assert reason_of(answer) == (-32000, "interrupted")
        refused = await harness.answer(harness.job(handler, digest=b"other"))
        assert refused != answer
        assert reason_of(refused) == (-32000, "id_reused")
        assert handler.runs == 0


@pytest.mark.parametrize("accepted", [True, False])
async def test_restartable_work_is_run_again_with_its_params_and_finishes(
    store: ZoneFile, accepted: bool
) -> None:
    task_id = await left_behind(store, accepted=accepted, restartable=True)
    async with work_harness(store) as harness:
        assert harness.work.is_busy
        await harness.revived.began.wait()
        assert harness.revived_params == [{"text": "hi", "bot_token": "xoxb-secret"}]
        assert await harness.answer(harness.job(GatedHandler())) == ZoneCallAccepted(task_id)
        harness.revived.gate.set()
        assert await harness.end_of(task_id) == ZoneCallSucceeded(HELLO)
        assert harness.revived.runs == 1
        assert store.running() == []


async def test_work_that_is_under_way_at_every_death_is_given_up_in_the_end(store: ZoneFile) -> None:
    task_id = await left_behind(store, restartable=True)
    for _ in range(MAX_RUNS - 1):
        # It dies as the first one did: without a stop.
        dead = WorkHarness(store)
        await dead.work.resume_calls(dead.revive)
        await dead.revived.began.wait()
    async with work_harness(store) as harness:
        assert not harness.work.is_busy
        answer = harness.work.result_of("partner", task_id)
        assert reason_of(answer) == (-32000, "interrupted")
        assert f"started {MAX_RUNS} times" in str(error_of(answer)["message"])


async def test_work_whose_method_may_not_run_again_any_more_is_reported_as_failed(store: ZoneFile) -> None:
    gone = await left_behind(store, "1", restartable=True)
    changed = await left_behind(store, "2", restartable=True)

    def revive(call: object, params: object) -> ZoneCallJob | None:
        if len(store.running()) > 1:
            return None
        raise ZoneFault(-32602)

    harness = WorkHarness(store)
    await harness.work.resume_calls(revive)
    for task_id in (gone, changed):
        assert reason_of(harness.work.result_of("partner", task_id)) == (-32000, "interrupted")
    await harness.work.stop(0)


async def test_work_whose_params_were_sealed_with_another_key_is_reported_as_failed(store: ZoneFile) -> None:
    task_id = await left_behind(store, restartable=True)
    harness = WorkHarness(store)
    harness.work = ZoneCallRunner(
        store, Vault(b"x" * KEY_BYTES), accept_after=1, keep=harness.keep, clock=harness.clock
    )
    await harness.work.resume_calls(harness.revive)
    assert reason_of(harness.work.result_of("partner", task_id)) == (-32000, "interrupted")
    await harness.work.stop(0)


async def test_a_stop_lets_work_end(store: ZoneFile) -> None:
    async with work_harness(store) as harness:
        handler = GatedHandler()
        call = asyncio.create_task(harness.answer(harness.job(handler)))
        await handler.began.wait()
        stopping = asyncio.create_task(harness.work.stop(20))
        await asyncio.sleep(0)
        handler.gate.set()
        await stopping
        assert await call == ZoneCallSucceeded(HELLO)
        assert handler.cancelled == 0


async def test_a_stop_waits_for_accepted_work_too(store: ZoneFile) -> None:
    async with work_harness(store, accept_after=0.0) as harness:
        handler = GatedHandler()
        task_id = task_of(await harness.answer(harness.job(handler)))
        stopping = asyncio.create_task(harness.work.stop(20))
        await asyncio.sleep(0)
        handler.gate.set()
        await stopping
        assert harness.work.result_of("partner", task_id) == ZoneCallSucceeded(HELLO)


async def test_a_call_during_shutdown_is_rejected_and_runs_nothing(store: ZoneFile) -> None:
    async with work_harness(store) as harness:
        await harness.work.stop(0)
        handler = GatedHandler(is_open=True)
        assert reason_of(await harness.answer(harness.job(handler))) == (-32000, "stopping")
        assert handler.runs == 0
    async with work_harness(store) as harness:
        assert await harness.answer(harness.job(handler)) == ZoneCallSucceeded(HELLO)


async def test_what_outlasts_a_stop_is_cancelled_and_answered_as_it_will_be_later(store: ZoneFile) -> None:
    async with work_harness(store) as harness:
        handler = GatedHandler()
        call = asyncio.create_task(harness.answer(harness.job(handler)))
        await handler.began.wait()
        await harness.work.stop(0)
        answer = await call
        assert reason_of(answer) == (-32000, "interrupted")
        assert handler.cancelled == 1
    async with work_harness(store) as harness:
        assert await harness.answer(harness.job(GatedHandler())) == answer


async def test_restartable_work_that_outlasts_a_stop_is_accepted_and_finished_after_the_next_start(
    store: ZoneFile,
) -> None:
    async with work_harness(store) as harness:
        handler = GatedHandler()
        call = asyncio.create_task(harness.answer(harness.job(handler, restartable=True)))
        await handler.began.wait()
        await harness.work.stop(0)
        task_id = task_of(await call)
        assert handler.cancelled == 1
    async with work_harness(store) as harness:
        harness.revived.gate.set()
        assert await harness.end_of(task_id) == ZoneCallSucceeded(HELLO)


async def test_what_a_handler_returns_to_a_stop_is_not_the_end_of_restartable_work(store: ZoneFile) -> None:
    async def stubborn() -> bytes:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return b'{"half": "done"}'

    async with work_harness(store, accept_after=0.0) as harness:
        task_id = task_of(await harness.answer(harness.job(stubborn, restartable=True)))
        await harness.work.stop(0)
    async with work_harness(store) as harness:
        harness.revived.gate.set()
        assert await harness.end_of(task_id) == ZoneCallSucceeded(HELLO)


@contextmanager
def full_disk() -> Generator[None]:
    """Less than the store's log has already, and enough for what a test prints."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_nothing_is_run_when_it_cannot_be_written_down(store: ZoneFile) -> None:
    async with work_harness(store) as harness:
        handler = GatedHandler(is_open=True)
        with full_disk():
            answer = await harness.answer(harness.job(handler))
        assert reason_of(answer) == (-32000, "store_unavailable")
        assert "was not run" in str(error_of(answer)["message"])
        assert handler.runs == 0
        assert await harness.answer(harness.job(handler)) == ZoneCallSucceeded(HELLO)


async def test_an_end_that_cannot_be_written_is_answered_and_written_when_it_can_be(store: ZoneFile) -> None:
    async with work_harness(store) as harness:
        handler = GatedHandler()
        call = asyncio.create_task(harness.answer(harness.job(handler)))
        await handler.began.wait()
        with full_disk():
            handler.gate.set()
            assert await call == ZoneCallSucceeded(HELLO)
            assert await harness.answer(harness.job(handler)) == ZoneCallSucceeded(HELLO)
        assert len(store.running()) == 1
        await harness.work.remove_expired()
        assert store.running() == []
        assert await harness.answer(harness.job(handler)) == ZoneCallSucceeded(HELLO)
        assert handler.runs == 1


@pytest.fixture
def unconfirmed_store(store: ZoneFile, monkeypatch: pytest.MonkeyPatch) -> ZoneFile:
    """On a disk that takes writes, and never says that it has them."""

    async def accept(key: CallKey) -> None:
        raise Unavailable(f"The disk does not answer for {key}.")

    monkeypatch.setattr(store, "accept", accept)
    return store


async def test_nothing_is_accepted_that_is_not_on_the_disk(unconfirmed_store: ZoneFile) -> None:
    async with work_harness(unconfirmed_store, accept_after=0.0) as harness:
        handler = GatedHandler()
        call = asyncio.create_task(harness.answer(harness.job(handler)))
        await handler.began.wait()
        again = asyncio.create_task(harness.answer(harness.job(handler)))
        # It would have been answered by now.
        for _ in range(100):
            await asyncio.sleep(0)
        assert not call.done()
        handler.gate.set()
        assert await call == await again == ZoneCallSucceeded(HELLO)


async def test_a_stop_that_cannot_write_promises_nothing(unconfirmed_store: ZoneFile) -> None:
    async with work_harness(unconfirmed_store, accept_after=0.0) as harness:
        handler = GatedHandler()
        call = asyncio.create_task(harness.answer(harness.job(handler, restartable=True)))
        await handler.began.wait()
        await harness.work.stop(0)
        assert reason_of(await call) == (-32000, "stopping")
    assert len(unconfirmed_store.running()) == 1


class SlowDisk:
    """Says that it has what was accepted, or that it failed, when a test wants it to."""

    def __init__(self, store: ZoneFile, *, fails: bool = False) -> None:
        self._accept = store.accept
        self._fails = fails
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()

    async def accept(self, key: CallKey) -> None:
        self.asked.set()
        await self.gate.wait()
        if self._fails:
            raise Unavailable("The disk has failed.")
        await self._accept(key)


async def test_a_repeated_call_during_acceptance_is_answered_accepted_too(
    store: ZoneFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(store)
    monkeypatch.setattr(store, "accept", disk.accept)
    async with work_harness(store, accept_after=0.0) as harness:
        handler = GatedHandler()
        first = asyncio.create_task(harness.answer(harness.job(handler)))
        await disk.asked.wait()
        second = asyncio.create_task(harness.answer(harness.job(handler)))
        await asyncio.sleep(0)
        disk.gate.set()
        assert await second == await first == ZoneCallAccepted(store.running()[0].task_id)


async def test_work_that_ends_while_it_is_being_accepted_is_answered_with_its_end(
    store: ZoneFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(store, fails=True)
    monkeypatch.setattr(store, "accept", disk.accept)
    async with work_harness(store, accept_after=0.0) as harness:
        handler = GatedHandler()
        call = asyncio.create_task(harness.answer(harness.job(handler)))
        await disk.asked.wait()
        handler.gate.set()
        while store.running():
            await asyncio.sleep(0)
        disk.gate.set()
        assert await call == ZoneCallSucceeded(HELLO)


async def test_work_that_ends_while_a_stop_sees_to_another_is_done(
    store: ZoneFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(store)
    monkeypatch.setattr(store, "accept", disk.accept)
    async with work_harness(store) as harness:
        slow, quick = GatedHandler(), GatedHandler()
        first = asyncio.create_task(harness.answer(harness.job(slow, "1", restartable=True)))
        second = asyncio.create_task(harness.answer(harness.job(quick, "2", restartable=True)))
        await quick.began.wait()
        stopping = asyncio.create_task(harness.work.stop(0))
        await disk.asked.wait()
        quick.gate.set()
        assert await second == ZoneCallSucceeded(HELLO)
        disk.gate.set()
        await stopping
        assert isinstance(await first, ZoneCallAccepted)
