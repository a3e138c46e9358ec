"""
What PostgreSQL has acknowledged is on disk, and a process that stops in a transaction does not block the others for
long.
"""

from __future__ import annotations

import pytest
from tests.contract.samples import insert, new_run
from tests.services import private_postgres

from trunkline.stores.postgres import open_postgres
from trunkline.stores.postgres.database.connection import connect

pytestmark = pytest.mark.anyio

RUNS = 40


async def test_what_was_committed_is_there_after_the_server_has_crashed() -> None:
    # A commit that does not wait for the disk would be written by the server's own writer, some time later.
    with private_postgres(settings={"wal_writer_delay": "10s"}) as cluster:
        url = cluster.url("migrated")
        async with open_postgres(url) as store:
            for number in range(RUNS):
                await insert(store, new_run(number))
            cluster.crash()
        cluster.start()
        async with open_postgres(url) as store:
            assert len(await store.runs.page(limit=2 * RUNS)) == RUNS


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("synchronous_commit", "on"),
        ("idle_in_transaction_session_timeout", "10s"),
        ("default_transaction_isolation", "read committed"),
    ],
)
async def test_every_session_has_what_the_promise_rests_on(
    postgres_url: str, setting: str, value: str
) -> None:
    db = await connect(postgres_url)
    row = await db.first(f"SHOW {setting}")
    await db.close()
    assert row is not None
    assert row[0] == value
