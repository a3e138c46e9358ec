"""What a zone's file promises: what was begun, ended, used and refused is known after whatever happens."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import apsw
import msgspec
import pytest

from trunkline.clock import Instant, after
from trunkline.errors import ConfigurationError, DataInUse, Unavailable
from trunkline.stores.sqlite.database.statements import execute
from trunkline.stores.zones import CallKey, RefusedCall, ZoneCall
from trunkline.stores.zones.file import ZoneFile, open_zone_file, zone_in_memory
from trunkline.stores.zones.refusals import MOST_REFUSALS, read_refusals, refusals_file

pytestmark = pytest.mark.anyio

NOW = Instant(1_767_225_600_000_000)
LATER = after(NOW, timedelta(hours=1))
MUCH_LATER = after(NOW, timedelta(hours=2))

HOLDER = """
import sys
from pathlib import Path
from trunkline.clock import Instant
from trunkline.stores.zones import CallKey, ZoneCall
from trunkline.stores.zones.file import open_zone_file

with open_zone_file(Path(sys.argv[1])) as store:
    for number in (b"1", b"2"):
        key = CallKey("partner", number)
        store.begin(ZoneCall(key=key, task_id=f"t{number}", method="m", digest=b"d", began_at=Instant(1)))
    store.finish(CallKey("partner", b"1"), Instant(2), result=b"{}")
    print("open", flush=True)
    sys.stdin.read()
"""


def call(number: int, *, caller: str = "partner", params: bytes | None = b"sealed") -> ZoneCall:
    return ZoneCall(
        key=CallKey(caller, f'"{number}"'.encode()),
        task_id=f"task-{caller}-{number}",
        method="execute_task",
        digest=b"digest",
        began_at=NOW,
        params=params,
        correlation_id="c-1",
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "zone.db"


@pytest.fixture
def store(path: Path) -> Generator[ZoneFile]:
    with open_zone_file(path) as opened:
        yield opened


async def test_a_call_begins_once_and_the_second_learns_of_the_first(store: ZoneFile) -> None:
    assert store.begin(call(1)) is None
    second = msgspec.structs.replace(call(1), task_id="another", digest=b"other")
    assert store.begin(second) == call(1)
    assert store.begin(call(1, caller="another partner")) is None


async def test_ids_that_are_written_differently_are_different(store: ZoneFile) -> None:
    for written in (b"1", b'"1"', b"1.0"):
        assert store.begin(msgspec.structs.replace(call(1), key=CallKey("partner", written))) is None
    assert len(store.running()) == 3


async def test_a_call_that_ended_has_its_answer_and_no_params_after_a_restart(path: Path) -> None:
    with open_zone_file(path) as store:
        store.begin(call(1))
        store.begin(call(2))
        store.finish(call(1).key, LATER, result=b'{"status":"success"}')
        store.finish(call(2).key, LATER, error=b'{"code":-32000}')
    with open_zone_file(path) as store:
        ended = msgspec.structs.replace(call(1), params=None, status="finished", finished_at=LATER)
        assert store.begin(call(1)) == msgspec.structs.replace(ended, result=b'{"status":"success"}')
        failed = store.begin(call(2))
        assert failed is not None
        assert failed.error == b'{"code":-32000}'
        assert store.running() == []


async def test_the_first_end_of_a_call_counts(store: ZoneFile) -> None:
    store.begin(call(1))
    store.finish(call(1).key, NOW, result=b"1")
    store.finish(call(1).key, LATER, error=b"2")
    ended = store.begin(call(1))
    assert ended is not None
    assert (ended.result, ended.error, ended.finished_at) == (b"1", None, NOW)


async def test_what_had_not_ended_is_found_after_a_restart_in_its_order(path: Path) -> None:
    with open_zone_file(path) as store:
        for number in (3, 1, 2):
            store.begin(call(number))
        store.finish(call(1).key, NOW, result=b"{}")
        store.begin_again(call(2).key)
    with open_zone_file(path) as store:
        assert [(each.key, each.runs) for each in store.running()] == [(call(3).key, 1), (call(2).key, 2)]
        store.finish(call(3).key, NOW, result=b"{}")
        assert [each.key for each in store.running()] == [call(2).key]


async def test_what_was_written_survives_the_death_of_the_process(path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with (
            pytest.raises(DataInUse, match=f"in use by another Trunkline process \\({holder.pid}\\)"),
            open_zone_file(path),
        ):
            pass
        os.kill(holder.pid, signal.SIGKILL)
    with open_zone_file(path) as store:
        assert [each.key.id for each in store.running()] == [b"2"]


async def test_only_accepted_calls_can_be_asked_for_and_only_by_their_caller(path: Path) -> None:
    with open_zone_file(path) as store:
        store.begin(call(1))
        assert store.call("partner", call(1).task_id) is None
        await store.accept(call(1).key)
        await store.accept(call(1).key)
        assert store.call("another partner", call(1).task_id) is None
    with open_zone_file(path) as store:
        assert store.call("partner", call(1).task_id) == msgspec.structs.replace(call(1), accepted=True)


class Disk:
    """Notes what is synced; waits, and fails, as a test wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.fails = False
        self._sync = os.fsync
        monkeypatch.setattr(os, "fsync", self.sync)

    def sync(self, descriptor: int) -> None:
        self.synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        assert self.gate.wait(20)
        if self.fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._sync(descriptor)


async def test_what_is_accepted_is_in_a_log_that_was_synced(
    store: ZoneFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.begin(call(1))
    disk = Disk(monkeypatch)
    await store.accept(call(1).key)
    assert disk.synced == ["zone.db-wal"]


async def test_what_is_accepted_at_once_waits_for_the_disk_once(
    store: ZoneFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        store.begin(call(number))
    disk = Disk(monkeypatch)
    disk.gate.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(store.accept(call(0).key))
        while not disk.synced:
            await asyncio.sleep(0)
        # It has begun without those that come now.
        late = [group.create_task(store.accept(call(number).key)) for number in range(1, 20)]
        await asyncio.sleep(0)
        assert not any(each.done() for each in late)
        disk.gate.set()
    assert disk.synced == ["zone.db-wal"] * 2


async def test_a_disk_that_has_failed_once_is_not_believed_again(
    store: ZoneFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.begin(call(1))
    disk = Disk(monkeypatch)
    disk.fails = True
    with pytest.raises(Unavailable, match="to disk: Input/output error"):
        await store.accept(call(1).key)
    disk.fails = False
    with pytest.raises(Unavailable, match="Cannot flush ") as refused:
        await store.accept(call(1).key)
    assert "start the zone again" in refused.value.fix


async def test_old_calls_are_forgotten_and_running_ones_never(store: ZoneFile) -> None:
    for number in range(1_200):
        store.begin(call(number))
    for number in range(1, 1_100):
        store.finish(call(number).key, NOW if number < 1_000 else LATER, result=b"{}")
    while store.forget(LATER, LATER):
        pass
    left = [number for number in range(1_200) if store.begin(call(number)) is not None]
    assert left == [0, *range(1_000, 1_200)]


async def test_calls_after_everything_was_forgotten_are_found_after_a_restart(path: Path) -> None:
    with open_zone_file(path) as store:
        for number in range(10):
            store.begin(call(number))
            store.finish(call(number).key, NOW, result=b"{}")
        assert store.forget(LATER, LATER) == 10
        store.begin(call(11))
    with open_zone_file(path) as store:
        assert [each.key for each in store.running()] == [call(11).key]


async def test_a_restart_finds_what_runs_between_what_has_ended(path: Path) -> None:
    with open_zone_file(path) as store:
        for number in range(6):
            store.begin(call(number))
        for number in (0, 1, 3, 4):
            store.finish(call(number).key, MUCH_LATER, result=b"{}")
        store.forget(LATER, LATER)
        store.begin(call(6))
    with open_zone_file(path) as store:
        assert [each.key for each in store.running()] == [call(2).key, call(5).key, call(6).key]


async def test_a_token_is_used_once_and_remembered_over_a_restart_until_it_runs_out(path: Path) -> None:
    with open_zone_file(path) as store:
        assert store.use_token("partner", "jti", LATER, NOW)
        assert not store.use_token("partner", "jti", LATER, NOW)
        assert store.use_token("another partner", "jti", LATER, NOW)
    with open_zone_file(path) as store:
        assert store.forget(NOW, LATER) == 0
        assert not store.use_token("partner", "jti", LATER, NOW)
        assert store.forget(NOW, MUCH_LATER) == 2
        assert store.use_token("partner", "jti", LATER, NOW)


def refusal(number: int) -> RefusedCall:
    return RefusedCall(at=Instant(NOW + number), caller="stranger", reason="unknown_caller", method="m")


async def test_refusals_are_read_newest_first_also_while_the_zone_runs(store: ZoneFile, path: Path) -> None:
    for number in range(3):
        store.note_refusal(refusal(number))
    assert store.refusals(2) == [refusal(2), refusal(1)]
    assert read_refusals(path, 10) == [refusal(2), refusal(1), refusal(0)]
    store.note_refusal(refusal(3))
    assert store.refusals(1) == [refusal(3)]


async def test_refusals_can_be_read_when_the_zone_is_gone(path: Path) -> None:
    with open_zone_file(path) as store:
        store.note_refusal(refusal(1))
    assert read_refusals(path, 10) == [refusal(1)]
    with open_zone_file(path):
        pass


async def test_refusals_of_a_zone_that_is_not_there_are_said_to_be_missing(path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"zone-audit\.db does not exist"):
        read_refusals(path, 10)
    assert not path.exists()


async def test_a_flood_of_refusals_does_not_grow_for_ever() -> None:
    with zone_in_memory() as store:
        for number in range(MOST_REFUSALS + 250):
            store.note_refusal(refusal(number))
        kept = store.refusals(1_000_000)
    assert len(kept) == MOST_REFUSALS
    assert kept[0] == refusal(MOST_REFUSALS + 249)


async def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"These are my notes. " * 100)
    with pytest.raises(ConfigurationError, match="is not a SQLite database"), open_zone_file(path):
        pass
    assert path.read_bytes() == b"These are my notes. " * 100


async def test_a_database_of_another_program_is_refused(path: Path) -> None:
    path.parent.mkdir()
    with closing(apsw.Connection(str(path))) as db:
        execute(db, "CREATE TABLE calls (mine TEXT)")
    with pytest.raises(ConfigurationError, match="contains another program's tables"), open_zone_file(path):
        pass


async def test_a_file_of_a_newer_program_is_refused_and_can_be_opened_by_it_again(path: Path) -> None:
    with open_zone_file(path) as store:
        store.begin(call(1))
    for newer in (path, refusals_file(path)):
        _set_version(newer, 2)
        with (
            pytest.raises(
                ConfigurationError, match=f"{newer} has version 2, but this program supports versions up to 1"
            ),
            open_zone_file(path),
        ):
            pass
        _set_version(newer, 1)
    with open_zone_file(path) as store:
        assert len(store.running()) == 1


async def test_refusals_of_a_newer_program_are_not_read(path: Path) -> None:
    with open_zone_file(path):
        pass
    _set_version(refusals_file(path), 2)
    with pytest.raises(ConfigurationError, match="has version 2, but this program supports versions up to 1"):
        read_refusals(path, 1)


def _set_version(path: Path, version: int) -> None:
    with closing(apsw.Connection(str(path))) as db:
        execute(db, f"PRAGMA user_version = {version}")


async def test_a_file_whose_pages_are_broken_is_said_to_be_so(path: Path) -> None:
    with open_zone_file(path) as store:
        for number in range(200):
            store.begin(call(number))
    broken = bytearray(path.read_bytes())
    broken[4096:] = os.urandom(len(broken) - 4096)
    path.write_bytes(broken)
    with pytest.raises(Unavailable, match="Cannot use the database"), open_zone_file(path):
        pass


async def test_only_its_owner_can_read_it(store: ZoneFile, path: Path) -> None:
    store.begin(call(1))
    modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert set(modes.values()) == {0o600}, modes


@contextmanager
def files_limited_to(size: int) -> Generator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_disk_that_takes_no_more_is_said_and_nothing_is_half_written(store: ZoneFile) -> None:
    store.begin(call(1))
    with files_limited_to(200_000):
        with pytest.raises(Unavailable):
            store.begin(call(2, params=b"x" * 1_000_000))
        with pytest.raises(Unavailable):
            store.finish(call(1).key, NOW, result=b"x" * 1_000_000)
    assert [each.key for each in store.running()] == [call(1).key]
    store.finish(call(1).key, NOW, result=b"{}")
    assert store.begin(call(2)) is None
