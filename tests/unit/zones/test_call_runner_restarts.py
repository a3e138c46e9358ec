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
    async with work_harness(store) as stage:
        answer = stage.work.result_of("partner", task_id)
        assert answer != ZoneCallAccepted(task_id)
        assert reason_of(answer) == (-32000, "interrupted")
        assert "interrupted by a restart" in str(error_of(answer)["message"])
        handler = GatedHandler(is_open=True)
        assert await stage.answer(stage.job(handler)) == answer
        assert handler.runs == 0
        assert stage.revived.runs == 0


async def test_a_call_that_died_before_its_first_answer_is_known_by_its_id(store: ZoneFile) -> None:
    await left_behind(store, accepted=False)
    async with work_harness(store) as stage:
        handler = GatedHandler(is_open=True)
        answer = await stage.answer(stage.job(handler))
        assert reason_of(answer) == (-32000, "interrupted")
        refused = await stage.answer(stage.job(handler, digest=b"other"))
        assert refused != answer
        assert reason_of(refused) == (-32000, "id_reused")
        assert handler.runs == 0


@pytest.mark.parametrize("accepted", [True, False])
async def test_restartable_work_is_run_again_with_its_params_and_finishes(
    store: ZoneFile, accepted: bool
) -> None:
    task_id = await left_behind(store, accepted=accepted, restartable=True)
    async with work_harness(store) as stage:
        assert stage.work.is_busy
        await stage.revived.began.wait()
        assert stage.revived_params == [{"text": "hi", "bot_token": "xoxb-secret"}]
        assert await stage.answer(stage.job(GatedHandler())) == ZoneCallAccepted(task_id)
        stage.revived.gate.set()
        assert await stage.end_of(task_id) == ZoneCallSucceeded(HELLO)
        assert stage.revived.runs == 1
        assert store.running() == []


async def test_work_that_is_under_way_at_every_death_is_given_up_in_the_end(store: ZoneFile) -> None:
    task_id = await left_behind(store, restartable=True)
    for _ in range(MAX_RUNS - 1):
        # It dies as the first one did: without a stop.
        dead = WorkHarness(store)
        await dead.work.resume_calls(dead.revive)
        await dead.revived.began.wait()
    async with work_harness(store) as stage:
        assert not stage.work.is_busy
        answer = stage.work.result_of("partner", task_id)
        assert reason_of(answer) == (-32000, "interrupted")
        assert f"begun {MAX_RUNS} times" in str(error_of(answer)["message"])


async def test_work_whose_method_may_not_run_again_any_more_is_reported_as_failed(store: ZoneFile) -> None:
    gone = await left_behind(store, "1", restartable=True)
    changed = await left_behind(store, "2", restartable=True)

    def revive(call: object, params: object) -> ZoneCallJob | None:
        if len(store.running()) > 1:
            return None
        raise ZoneFault(-32602)

    stage = WorkHarness(store)
    await stage.work.resume_calls(revive)
    for task_id in (gone, changed):
        assert reason_of(stage.work.result_of("partner", task_id)) == (-32000, "interrupted")
    await stage.work.stop(0)


async def test_work_whose_params_were_sealed_with_another_key_is_reported_as_failed(store: ZoneFile) -> None:
    task_id = await left_behind(store, restartable=True)
    stage = WorkHarness(store)
    stage.work = ZoneCallRunner(
        store, Vault(b"x" * KEY_BYTES), accept_after=1, keep=stage.keep, clock=stage.clock
    )
    await stage.work.resume_calls(stage.revive)
    assert reason_of(stage.work.result_of("partner", task_id)) == (-32000, "interrupted")
    await stage.work.stop(0)


async def test_a_stop_lets_work_end(store: ZoneFile) -> None:
    async with work_harness(store) as stage:
        handler = GatedHandler()
        call = asyncio.create_task(stage.answer(stage.job(handler)))
        await handler.began.wait()
        stopping = asyncio.create_task(stage.work.stop(20))
        await asyncio.sleep(0)
        handler.gate.set()
        await stopping
        assert await call == ZoneCallSucceeded(HELLO)
        assert handler.cancelled == 0


async def test_a_stop_waits_for_accepted_work_too(store: ZoneFile) -> None:
    async with work_harness(store, accept_after=0.0) as stage:
        handler = GatedHandler()
        task_id = task_of(await stage.answer(stage.job(handler)))
        stopping = asyncio.create_task(stage.work.stop(20))
        await asyncio.sleep(0)
        handler.gate.set()
        await stopping
        assert stage.work.result_of("partner", task_id) == ZoneCallSucceeded(HELLO)


async def test_a_call_that_comes_during_a_stop_runs_nothing_and_is_told_so(store: ZoneFile) -> None:
    async with work_harness(store) as stage:
        await stage.work.stop(0)
        handler = GatedHandler(is_open=True)
        assert reason_of(await stage.answer(stage.job(handler))) == (-32000, "stopping")
        assert handler.runs == 0
    async with work_harness(store) as stage:
        assert await stage.answer(stage.job(handler)) == ZoneCallSucceeded(HELLO)


async def test_what_outlasts_a_stop_is_cancelled_and_answered_as_it_will_be_later(store: ZoneFile) -> None:
    async with work_harness(store) as stage:
        handler = GatedHandler()
        call = asyncio.create_task(stage.answer(stage.job(handler)))
        await handler.began.wait()
        await stage.work.stop(0)
        answer = await call
        assert reason_of(answer) == (-32000, "interrupted")
        assert handler.cancelled == 1
    async with work_harness(store) as stage:
        assert await stage.answer(stage.job(GatedHandler())) == answer


async def test_restartable_work_that_outlasts_a_stop_is_accepted_and_finished_after_the_next_start(
    store: ZoneFile,
) -> None:
    async with work_harness(store) as stage:
        handler = GatedHandler()
        call = asyncio.create_task(stage.answer(stage.job(handler, restartable=True)))
        await handler.began.wait()
        await stage.work.stop(0)
        task_id = task_of(await call)
        assert handler.cancelled == 1
    async with work_harness(store) as stage:
        stage.revived.gate.set()
        assert await stage.end_of(task_id) == ZoneCallSucceeded(HELLO)


async def test_what_a_handler_returns_to_a_stop_is_not_the_end_of_restartable_work(store: ZoneFile) -> None:
    async def stubborn() -> bytes:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return b'{"half": "done"}'

    async with work_harness(store, accept_after=0.0) as stage:
        task_id = task_of(await stage.answer(stage.job(stubborn, restartable=True)))
        await stage.work.stop(0)
    async with work_harness(store) as stage:
        stage.revived.gate.set()
        assert await stage.end_of(task_id) == ZoneCallSucceeded(HELLO)


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
    async with work_harness(store) as stage:
        handler = GatedHandler(is_open=True)
        with full_disk():
            answer = await stage.answer(stage.job(handler))
        assert reason_of(answer) == (-32000, "store_unavailable")
        assert "was not run" in str(error_of(answer)["message"])
        assert handler.runs == 0
        assert await stage.answer(stage.job(handler)) == ZoneCallSucceeded(HELLO)


async def test_an_end_that_cannot_be_written_is_answered_and_written_when_it_can_be(store: ZoneFile) -> None:
    async with work_harness(store) as stage:
        handler = GatedHandler()
        call = asyncio.create_task(stage.answer(stage.job(handler)))
        await handler.began.wait()
        with full_disk():
            handler.gate.set()
            assert await call == ZoneCallSucceeded(HELLO)
            assert await stage.answer(stage.job(handler)) == ZoneCallSucceeded(HELLO)
        assert len(store.running()) == 1
        await stage.work.remove_expired()
        assert store.running() == []
        assert await stage.answer(stage.job(handler)) == ZoneCallSucceeded(HELLO)
        assert handler.runs == 1


@pytest.fixture
def undecided(store: ZoneFile, monkeypatch: pytest.MonkeyPatch) -> ZoneFile:
    """On a disk that takes writes, and never says that it has them."""

    async def accept(key: CallKey) -> None:
        raise Unavailable(f"The disk does not answer for {key}.")

    monkeypatch.setattr(store, "accept", accept)
    return store


async def test_nothing_is_accepted_that_is_not_on_the_disk(undecided: ZoneFile) -> None:
    async with work_harness(undecided, accept_after=0.0) as stage:
        handler = GatedHandler()
        call = asyncio.create_task(stage.answer(stage.job(handler)))
        await handler.began.wait()
        again = asyncio.create_task(stage.answer(stage.job(handler)))
        # It would have been answered by now.
        for _ in range(100):
            await asyncio.sleep(0)
        assert not call.done()
        handler.gate.set()
        assert await call == await again == ZoneCallSucceeded(HELLO)


async def test_a_stop_that_cannot_write_promises_nothing(undecided: ZoneFile) -> None:
    async with work_harness(undecided, accept_after=0.0) as stage:
        handler = GatedHandler()
        call = asyncio.create_task(stage.answer(stage.job(handler, restartable=True)))
        await handler.began.wait()
        await stage.work.stop(0)
        assert reason_of(await call) == (-32000, "stopping")
    assert len(undecided.running()) == 1


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


async def test_who_comes_while_it_is_being_accepted_is_told_so_too(
    store: ZoneFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(store)
    monkeypatch.setattr(store, "accept", disk.accept)
    async with work_harness(store, accept_after=0.0) as stage:
        handler = GatedHandler()
        first = asyncio.create_task(stage.answer(stage.job(handler)))
        await disk.asked.wait()
        second = asyncio.create_task(stage.answer(stage.job(handler)))
        await asyncio.sleep(0)
        disk.gate.set()
        assert await second == await first == ZoneCallAccepted(store.running()[0].task_id)


async def test_work_that_ends_while_it_is_being_accepted_is_answered_with_its_end(
    store: ZoneFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(store, fails=True)
    monkeypatch.setattr(store, "accept", disk.accept)
    async with work_harness(store, accept_after=0.0) as stage:
        handler = GatedHandler()
        call = asyncio.create_task(stage.answer(stage.job(handler)))
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
    async with work_harness(store) as stage:
        slow, quick = GatedHandler(), GatedHandler()
        first = asyncio.create_task(stage.answer(stage.job(slow, "1", restartable=True)))
        second = asyncio.create_task(stage.answer(stage.job(quick, "2", restartable=True)))
        await quick.began.wait()
        stopping = asyncio.create_task(stage.work.stop(0))
        await disk.asked.wait()
        quick.gate.set()
        assert await second == ZoneCallSucceeded(HELLO)
        disk.gate.set()
        await stopping
        assert isinstance(await first, ZoneCallAccepted)
