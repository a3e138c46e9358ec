"""What every store promises about runs that wait for flow control."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import apsw
import pytest
from deploy.local.postgres import PostgresServer
from tests.contract.samples import NOW, insert, new_run, run_id

from trunkline.agents.call_limits.token_bucket import TokenBucket
from trunkline.clock import Instant, after
from trunkline.stores.base import Store
from trunkline.stores.port.automation.triggers import QueuedStart, StartWait
from trunkline.stores.port.transfer import TABLES
from trunkline.stores.postgres import open_postgres
from trunkline.stores.sqlite import open_sqlite
from trunkline.testing import FakeClock
from trunkline.triggers.flow_control import Gate, GateDecision, GatePolicy, WaitingStart, WaitReason

pytestmark = pytest.mark.anyio

POLICY = GatePolicy(limit=2)
LATER = after(NOW, timedelta(minutes=1))


def start(
    gate: str = "t/k\x00", policy: GatePolicy = POLICY, priority: int = 0, not_before: Instant = NOW
) -> QueuedStart:
    return QueuedStart(gate=gate, policy=policy, priority=priority, not_before=not_before)


async def queue(store: Store, *starts: tuple[int, QueuedStart]) -> None:
    await insert(store, *(new_run(number) for number, _ in starts))
    async with store.transaction() as tx:
        await tx.start_queue.put([(run_id(number), each) for number, each in starts])


async def claim(store: Store, limit: int = 10) -> dict[str, Gate]:
    async with store.transaction() as tx:
        return await tx.start_queue.claim(limit)


async def settle(store: Store, decision: GateDecision, policy: GatePolicy = POLICY) -> None:
    async with store.transaction() as tx:
        await tx.start_queue.settle("t/k\x00", policy, decision)


async def test_a_gate_has_its_runs_in_their_order_and_the_newest_policy(store: Store) -> None:
    newest = GatePolicy(limit=1, on_limit="drop", debounce=timedelta(seconds=5))
    await queue(
        store, (2, start()), (1, start(priority=3, not_before=LATER, policy=newest)), (3, start("u/"))
    )
    gates = await claim(store)
    assert list(gates) == ["t/k\x00", "u/"]
    assert gates["t/k\x00"] == Gate(
        policy=newest,
        running=[],
        waiting=[
            WaitingStart(run_id=run_id(2), priority=0, not_before=NOW),
            WaitingStart(run_id=run_id(1), priority=3, not_before=LATER),
        ],
    )
    assert list(await claim(store, limit=1)) == ["t/k\x00"]


async def test_what_was_decided_about_a_gate_is_found_again(store: Store) -> None:
    await queue(store, *((number, start()) for number in range(1, 6)))
    bucket = TokenBucket(1.5, NOW)
    decision = GateDecision(
        start=[run_id(1), run_id(2)],
        drop={run_id(3): "why"},
        wait=[run_id(5), run_id(4)],
        reason="throttle",
        look_at=LATER,
        bucket=bucket,
    )
    await settle(store, decision)
    assert await store.start_queue.get(run_id(4)) == StartWait(reason="throttle", not_before=NOW)
    assert await store.start_queue.get(run_id(1)) is None
    assert await store.start_queue.get(run_id(3)) is None
    assert await claim(store) == {}
    async with store.transaction() as tx:
        assert await tx.start_queue.next_due() == LATER
        assert await tx.start_queue.runs_ended([run_id(1)])
        assert not await tx.start_queue.runs_ended([run_id(3), run_id(9)])
    gate = (await claim(store))["t/k\x00"]
    assert (gate.running, [each.run_id for each in gate.waiting]) == ([run_id(2)], [run_id(4), run_id(5)])
    assert gate.bucket == bucket
    await settle(store, GateDecision(bucket=TokenBucket(0.5, LATER)))
    async with store.transaction() as tx:
        await tx.start_queue.forget_rates(LATER)
        await tx.start_queue.runs_ended([run_id(2)])
    assert (await claim(store))["t/k\x00"].bucket == TokenBucket(0.5, LATER)
    async with store.transaction() as tx:
        await tx.start_queue.forget_rates(after(LATER, timedelta(seconds=1)))
        await tx.start_queue.runs_ended([run_id(4)])
    assert (await claim(store))["t/k\x00"].bucket is None


async def test_without_a_limit_those_that_start_are_forgotten(store: Store) -> None:
    await queue(store, (1, start()))
    await settle(store, GateDecision(start=[run_id(1)]), GatePolicy())
    async with store.transaction() as tx:
        assert not await tx.start_queue.runs_ended([run_id(1)])
        assert await tx.start_queue.next_due() is None


async def test_a_gate_is_decided_about_by_one_process_while_runs_come_and_end(one: Store, two: Store) -> None:
    await queue(one, (1, start()), (2, start("u/")))
    async with one.transaction() as tx:
        assert len(await tx.start_queue.claim(1)) == 1
        assert list(await claim(two)) == ["u/"]
        await queue(two, (3, start()))
        async with two.transaction() as other:
            assert await other.start_queue.runs_ended([run_id(1)])
        await tx.start_queue.settle("t/k\x00", POLICY, GateDecision(start=[run_id(1)]))
    # It has ended before it could start, and does not count.
    gate = (await claim(two))["t/k\x00"]
    assert (gate.running, [each.run_id for each in gate.waiting]) == ([], [run_id(3)])


def test_what_waits_moves_with_everything_else() -> None:
    assert {"queued_starts", "start_rates"} <= {table.name for table in TABLES}


async def test_a_row_that_stays_as_it_is_is_not_written_to_sqlite(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "trunkline.db"
    async with open_sqlite(path, clock=clock) as store:
        await queue(store, (1, start()), (2, start()))
        await settle(store, waits("throttle", 1, 2))
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(
                "CREATE TRIGGER refuses AFTER UPDATE ON queued_starts BEGIN SELECT RAISE(ABORT, 'written'); END"
            )
        await settle(store, waits("throttle", 1, 2))
        with pytest.raises(apsw.ConstraintError, match="written"):
            await settle(store, waits("concurrency", 1, 2))


async def test_a_row_that_stays_as_it_is_is_not_written_to_postgres(
    postgres: PostgresServer, postgres_url: str, database: str, clock: FakeClock
) -> None:
    def versions() -> list[str]:
        return postgres.execute("SELECT xmin FROM queued_starts ORDER BY number", database).split()

    async with open_postgres(postgres_url, clock=clock) as store:
        await queue(store, *((number, start()) for number in (1, 2, 3)))
        await settle(store, waits("throttle", 1, 2, 3))
        before = versions()
        await settle(store, waits("throttle", 1, 2, 3))
        assert versions() == before
        # The second run is the first in the queue now.
        await settle(store, waits("throttle", 2, 1, 3))
        after_change = versions()
    assert [new != old for new, old in zip(after_change, before, strict=True)] == [True, True, False]


def waits(reason: WaitReason, *numbers: int) -> GateDecision:
    return GateDecision(wait=[run_id(number) for number in numbers], reason=reason, look_at=LATER)
