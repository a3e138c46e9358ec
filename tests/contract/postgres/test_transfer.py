"""What the PostgreSQL store promises about moving, on top of what every store does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.contract.samples import insert, new_run, run_id

from trunkline.errors import DataInUse
from trunkline.services.operations.store_transfer import export_store
from trunkline.stores.postgres import open_postgres

pytestmark = pytest.mark.anyio

# A process that works with the store and has claimed nothing, as an API does.
READER = """
import asyncio, sys
from trunkline.stores.postgres import open_postgres

async def read():
    async with open_postgres(sys.argv[1]) as store:
        await store.runs.page(limit=1)
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(read())
"""


def no_progress(table: str, rows: int) -> None:
    del table, rows


async def test_a_store_that_another_process_has_open_is_not_exported_until_that_is_gone(
    postgres_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    async with open_postgres(postgres_url) as store:
        await insert(store, new_run(1))
        command = [sys.executable, "-c", READER, postgres_url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "open\n"
            with pytest.raises(DataInUse, match="Other Trunkline processes are using PostgreSQL at"):
                await export_store(store, file, no_progress)
            assert await store.transfer.export_record() is None
            reader.kill()
        exported = await export_store(store, file, no_progress)
        assert exported.counts["runs"] == 1
        assert await store.runs.get(run_id(1)) is not None
