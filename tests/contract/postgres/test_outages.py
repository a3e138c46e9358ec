"""
A PostgreSQL that is away, refuses or takes too long: the error says so, nothing is half written, and work resumes
later.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from deploy.local.postgres import PostgresServer
from tests.contract.bridges import register
from tests.contract.disconnects import disconnect_all, eventually
from tests.contract.samples import insert, item, new_run, put, run_id, transition, woken

from trunkline.errors import AlreadyExists, Unavailable
from trunkline.stores.base import Store
from trunkline.stores.postgres import open_postgres
from trunkline.stores.postgres.database.connection import connect
from trunkline.stores.postgres.tables.input_queue import PostgresInputQueue

pytestmark = pytest.mark.anyio


async def test_a_lost_connection_is_said_and_the_next_transaction_has_a_new_one(
    one: Store, postgres: PostgresServer, database: str
) -> None:
    await insert(one, new_run(1))

    async def lose() -> None:
        async with one.transaction() as tx:
            await tx.runs.insert([new_run(2)])
            disconnect_all(postgres, database)
            await tx.input_queue.put([item(2, "start")])

    with pytest.raises(Unavailable, match=r"PostgreSQL at 127\.0\.0\.1") as raised:
        await lose()
    assert "tries again" in raised.value.fix
    await insert(one, new_run(3))
    assert [run.id for run in await one.runs.page(limit=10)] == [run_id(3), run_id(1)]


async def test_a_connection_that_is_lost_before_the_commit_leaves_nothing(
    one: Store, postgres: PostgresServer, database: str
) -> None:
    async def lose() -> None:
        async with one.transaction() as tx:
            await tx.runs.insert([new_run(1)])
            disconnect_all(postgres, database)

    with pytest.raises(Unavailable):
        await lose()
    assert await one.runs.page(limit=10) == []


async def test_connections_that_were_cut_while_idle_cost_nothing(
    one: Store, postgres: PostgresServer, database: str
) -> None:
    await insert(one, new_run(1))
    disconnect_all(postgres, database)

    async def is_back() -> bool:
        try:
            return (await one.runs.status(run_id(1))) == ("PENDING", 0)
        except Unavailable:
            return False

    async with asyncio.timeout(30):
        while not await is_back():
            await asyncio.sleep(0.01)


async def test_a_failure_that_the_caller_hides_does_not_pass_for_a_commit(one: Store) -> None:
    agent = await register(one, "A")

    async def hide() -> None:
        async with one.transaction() as tx:
            await tx.runs.insert([new_run(1)])
            with suppress(AlreadyExists):
                await tx.agents.insert(agent)

    with pytest.raises(Unavailable, match="rolled"):
        await hide()
    assert await one.runs.page(limit=10) == []


async def test_readers_that_are_cancelled_leave_working_connections(one: Store) -> None:
    await insert(one, new_run(1))
    for number in range(30):
        reading = asyncio.create_task(one.runs.get(run_id(1)))
        for _ in range(number % 6):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert await one.runs.status(run_id(1)) == ("PENDING", 0)


async def test_a_lock_that_is_not_given_in_time_is_said(one: Store, two: Store) -> None:
    await insert(one, new_run(1))
    async with one.transaction() as holder:
        await holder.runs.write_transitions([transition(1)])
        with pytest.raises(Unavailable, match="timed out waiting for a lock"):
            async with two.transaction() as tx:
                await tx.runs.write_transitions([transition(1)])


async def test_a_database_that_is_for_reading_only_is_said(
    postgres_url: str, postgres: PostgresServer, database: str
) -> None:
    postgres.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    async with open_postgres(postgres_url) as store:
        with pytest.raises(Unavailable, match="is read-only"):
            await insert(store, new_run(1))
        assert await store.runs.page(limit=10) == []


async def test_a_statement_that_takes_too_long_is_said(postgres_url: str) -> None:
    db = await connect(postgres_url, {"statement_timeout": "1ms"})
    with pytest.raises(Unavailable, match="statement timed out"):
        await db.rows("SELECT pg_sleep(60)")
    await db.close()


async def test_a_stop_inside_a_transaction_rolls_it_back_and_frees_its_claims(
    one: Store, postgres_url: str
) -> None:
    await insert(one, new_run(1))
    await put(one, item(1, "start"))
    db = await connect(postgres_url)
    await db.command("BEGIN")
    assert len(await PostgresInputQueue(db).claim_runs(10)) == 1
    await db.command("SET LOCAL idle_in_transaction_session_timeout = '10ms'")
    await eventually(lambda: db.is_closed)
    with pytest.raises(Unavailable):
        await db.command("COMMIT")
    assert [run.run_id for run in await woken(one)] == [run_id(1)]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("53100", "the disk is full"),
        ("53300", "no free connection slots"),
        ("40P01", "a deadlock was detected"),
    ],
)
async def test_what_a_server_may_lack_is_said_with_what_to_do(
    postgres_url: str, state: str, words: str
) -> None:
    db = await connect(postgres_url)
    with pytest.raises(Unavailable, match=words) as raised:
        await db.command(
            f"DO $$ BEGIN RAISE EXCEPTION 'as the server says' USING ERRCODE = '{state}'; END $$"
        )
    assert "as the server says" in raised.value.message
    assert raised.value.fix
    await db.close()
