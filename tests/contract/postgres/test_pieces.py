"""Pieces of large payloads while other processes use the same database."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Protocol, cast

import asyncpg
import pytest
from tests.contract.samples import NOW, insert, new_run, run_id, transition, write
from tests.contract.stores.test_payloads import pieces, step, users

from trunkline.stores.port.operations import Process
from trunkline.stores.postgres import open_postgres

pytestmark = pytest.mark.anyio


class _Connection(Protocol):
    async def execute(self, query: str) -> str: ...
    async def close(self) -> None: ...


async def test_a_deletion_waits_for_another_one_that_uses_the_same_piece(postgres_url: str) -> None:
    async with open_postgres(postgres_url) as store:
        for number in (1, 2):
            await insert(store, new_run(number))
            ended = transition(number, status="COMPLETED", steps=[step("a", "COMPLETED")], finished_at=NOW)
            await write(store, ended)

        async def delete_second() -> None:
            async with store.transaction() as tx:
                assert await tx.runs.delete_lowest([run_id(2)], 10) == {run_id(2)}

        async with store.transaction() as tx:
            assert await tx.runs.delete_lowest([run_id(1)], 10) == {run_id(1)}
            second = asyncio.create_task(delete_second())
            # It would have ended by then if it did not wait.
            await asyncio.wait([second], timeout=1)
        await second
        assert (await pieces(store), await users(store)) == ([], 0)


async def test_nothing_is_split_while_an_old_process_is_alive(postgres_url: str) -> None:
    process = Process(
        id="018f0000-0000-7000-8000-000000000001", name="old", roles=("bridge",), version="0", started_at=NOW
    )
    async with open_postgres(postgres_url) as store:
        async with store.transaction() as tx:
            await tx.processes.heartbeat(process, timedelta(hours=1), timedelta(days=1))
        connection = cast("_Connection", await asyncpg.connect(postgres_url))  # pyright: ignore[reportUnknownMemberType] - untyped
        # As the program of the revision before writes it.
        await connection.execute("UPDATE processes SET reads_pieces = NULL")
        await insert(store, new_run(1))
        await write(store, transition(1, steps=[step("a", "RUNNING")]))
        assert await pieces(store) == []
        await connection.execute("DELETE FROM processes")
        await connection.close()
    # A process that starts later looks again.
    async with open_postgres(postgres_url) as store:
        await write(store, transition(1, expected=1, steps=[step("b", "RUNNING")]))
        assert len(await pieces(store)) == 1
        found = await store.runs.get(run_id(1))
        assert found is not None
        assert [each.input for each in found[1]] == [step("a", "RUNNING").input] * 2
