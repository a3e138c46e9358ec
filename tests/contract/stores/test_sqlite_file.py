"""What the SQLite store promises about its file, on top of what every store does."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import msgspec
import pytest
from tests.contract.samples import insert, new_run, run_id

from trunkline.errors import ConfigurationError, DataInUse, Unavailable
from trunkline.stores.migrations import HEAD
from trunkline.stores.sqlite import open_sqlite
from trunkline.stores.sqlite.database.connection import connect
from trunkline.stores.sqlite.database.statements import execute, first

pytestmark = pytest.mark.anyio

HOLDER = """
import asyncio, sys
from pathlib import Path
from trunkline.stores.sqlite import open_sqlite

async def hold():
    async with open_sqlite(Path(sys.argv[1])):
        print("open", flush=True)
        sys.stdin.read()

asyncio.run(hold())
"""


async def test_a_file_that_another_process_uses_is_refused_until_that_process_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.db"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(DataInUse, match=f"in use by another Trunkline process \\({holder.pid}\\)"):
            async with open_sqlite(path):
                pass
        os.kill(holder.pid, signal.SIGKILL)
    async with open_sqlite(path) as store:
        await store.check()


async def test_a_file_that_this_process_has_open_is_refused_too(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "trunkline.db") as store:
        with pytest.raises(DataInUse):
            async with open_sqlite(tmp_path / "trunkline.db"):
                pass
        await store.check()


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.db"
    path.write_bytes(b"These are my notes. " * 100)
    with pytest.raises(ConfigurationError, match="is not a SQLite database"):
        async with open_sqlite(path):
            pass
    assert path.read_bytes() == b"These are my notes. " * 100


async def test_a_database_of_a_newer_program_is_refused_and_can_be_opened_by_it_again(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.db"
    async with open_sqlite(path) as store:
        await insert(store, new_run(1))
    _set_revision(path, "9999")
    with pytest.raises(ConfigurationError, match="revision 9999"):
        async with open_sqlite(path):
            pass
    _set_revision(path, HEAD)
    async with open_sqlite(path) as store:
        assert await store.runs.get(run_id(1)) is not None


def _set_revision(path: Path, revision: str) -> None:
    db = apsw.Connection(str(path))
    execute(db, "UPDATE alembic_version SET version_num = ?", (revision,))
    db.close()


async def test_the_folder_of_a_new_database_is_made(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "a" / "b" / "trunkline.db") as store:
        await store.check()


async def test_only_its_owner_can_read_a_new_database(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "data" / "trunkline.db"):
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "data").iterdir()}
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert set(modes.values()) == {0o600}


async def test_every_commit_waits_for_the_disk(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "trunkline.db")) as db:
        assert first(db, "PRAGMA synchronous") == (2,)
        assert first(db, "PRAGMA journal_mode") == ("wal",)


@contextmanager
def files_limited_to(size: int) -> Generator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_disk_that_takes_no_more_is_said_and_costs_nothing_that_was_committed(tmp_path: Path) -> None:
    big = msgspec.structs.replace(new_run(2), input=b"x" * 4_000_000)
    async with open_sqlite(tmp_path / "trunkline.db") as store:
        await insert(store, new_run(1))
        with files_limited_to(2_000_000), pytest.raises(Unavailable):
            await insert(store, big)
        assert [run.id for run in await store.runs.page(limit=10)] == [run_id(1)]
        await insert(store, big)
    async with open_sqlite(tmp_path / "trunkline.db") as store:
        assert [run.id for run in await store.runs.page(limit=10)] == [run_id(2), run_id(1)]
