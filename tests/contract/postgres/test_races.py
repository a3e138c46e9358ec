"""Rare races, which a lock in the database makes happen every time."""

from __future__ import annotations

import asyncio

import pytest
from tests.contract.samples import insert, item, new_run, put, run_id, transition

from trunkline.stores.base import Store, WokenRun
from trunkline.stores.postgres import open_postgres
from trunkline.stores.postgres.database.connection import connect

pytestmark = pytest.mark.anyio

# Whoever reads runs has its snapshot by then, and waits here while the gate is shut.
GATED_RUNS = """
    ALTER TABLE runs RENAME TO all_runs;
    CREATE FUNCTION gate() RETURNS boolean LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_lock_shared(7); PERFORM pg_advisory_unlock_shared(7); RETURN true; END';
    CREATE VIEW runs AS SELECT * FROM all_runs WHERE gate();
"""
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


async def claim(store: Store) -> list[WokenRun]:
    async with store.transaction() as tx:
        return await tx.input_queue.claim_runs(10)


async def test_what_is_applied_while_a_run_is_being_locked_is_not_applied_again(postgres_url: str) -> None:
    async with open_postgres(postgres_url) as store:
        await insert(store, new_run(1))
        await put(store, item(1, "a"))
    lock_holder = await connect(postgres_url)
    await lock_holder.command(GATED_RUNS)
    async with open_postgres(postgres_url) as one, open_postgres(postgres_url) as two:
        async with one.transaction() as tx:
            (woken,) = await tx.input_queue.claim_runs(10)
            applied = [row for row, _ in woken.items]
            assert await tx.runs.write_transitions([transition(1, applied=applied)]) == set()
            await lock_holder.command("SELECT pg_advisory_lock(7)")
            late = asyncio.create_task(claim(two))
            while await lock_holder.first(WAITING) != (1,):
                await asyncio.sleep(0.01)
        # The second has found the run woken, and locks it only now.
        await lock_holder.command("SELECT pg_advisory_unlock(7)")
        assert await late == []
        assert await one.runs.status(run_id(1)) == ("RUNNING", 0)
    await lock_holder.close()
