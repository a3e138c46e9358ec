"""Exporting and following the audit log: every entry comes once, also one that appears late."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import pytest

from trunkline.clock import Instant, after
from trunkline.services.operations.audit_log import LATE, AuditFollower, AuditLog, audit_entry
from trunkline.stores.base import Store
from trunkline.stores.port.operations import ANY_ENTRY, AuditFilter
from trunkline.stores.sqlite import open_sqlite
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

BEGINNING = Instant(0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncGenerator[Store]:
    async with open_sqlite(tmp_path / "trunkline.db", clock=clock) as store:
        yield store


async def put(store: Store, *subjects: str) -> None:
    async with store.transaction() as tx:
        await tx.audit.put([audit_entry("run", "cancel", subject) for subject in subjects])


async def read(follower: AuditFollower) -> list[str]:
    return [entry.subject async for batch in follower.read() for entry in batch]


class Seconds:
    """Monotonic time that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_an_export_has_every_entry_however_many_there_are(store: Store, clock: FakeClock) -> None:
    subjects = [f"{number:04}" for number in range(1_201)]
    await put(store, *subjects[:700])
    clock.advance(timedelta(seconds=1))
    await put(store, *subjects[700:])
    log = AuditLog(store)
    found = [entry.subject async for batch in log.export() for entry in batch]
    assert found == subjects
    later = [entry.subject async for batch in log.export(clock.now()) for entry in batch]
    assert later == subjects[700:]


async def test_a_follower_gets_each_entry_once(store: Store, clock: FakeClock) -> None:
    await put(store, "a", "b")
    follower = AuditLog(store).follow()
    assert await read(follower) == ["a", "b"]
    assert await read(follower) == []
    await put(store, "c")
    clock.advance(timedelta(minutes=5))
    await put(store, "d")
    assert await read(follower) == ["c", "d"]
    assert await read(follower) == []


async def test_an_entry_that_appears_behind_a_later_one_is_not_lost(store: Store, clock: FakeClock) -> None:
    """As when another process has begun its transaction earlier and commits it later."""
    clock.advance(LATE)
    await put(store, "later")
    follower = AuditLog(store).follow()
    assert await read(follower) == ["later"]
    clock.advance(-timedelta(seconds=30))
    await put(store, "earlier")
    assert await read(follower) == ["earlier"]
    assert await read(follower) == []


async def test_what_was_quiet_for_a_minute_is_not_read_again(store: Store, clock: FakeClock) -> None:
    seconds = Seconds()
    await put(store, "a")
    follower = AuditFollower(AuditLog(store), BEGINNING, ANY_ENTRY, seconds)
    assert await read(follower) == ["a"]
    seconds.now += LATE.total_seconds() + 1
    clock.advance(-timedelta(seconds=30))
    await put(store, "too late")
    assert await read(follower) == []
    clock.advance(timedelta(hours=1))
    await put(store, "b")
    assert await read(follower) == ["b"]


async def test_only_what_was_asked_for_is_followed(store: Store, clock: FakeClock) -> None:
    await put(store, "a", "b")
    follower = AuditLog(store).follow(after(clock.now(), timedelta(seconds=1)), AuditFilter(subject="b"))
    clock.advance(timedelta(seconds=1))
    await put(store, "a", "b")
    assert await read(follower) == ["b"]
