"""
What a system does by the second and by the turn costs what it is about, however much history there is.

TRUNKLINE_AUDIT_RUNS says how many finished runs there are, for example 1000000; a tenth as many wait.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from deploy.local.postgres import PostgresServer
from tests.contract.bridges import DEAD, LEASE, ME, claim, done, register, taken
from tests.contract.postgres.executed_plans import executed_statements, record_plans
from tests.contract.postgres.filled_database import LARGE_TABLES, fill
from tests.contract.samples import (
    NOW,
    event,
    item,
    key_of,
    new_run,
    queue,
    queued,
    run_id,
    task,
    timer,
    transition,
)
from tests.services import fresh_database, shared

from trunkline.agents import AgentOptions, BreakerPolicy
from trunkline.agents.call_limits.breaker import CallEnd
from trunkline.clock import after
from trunkline.id_generation import new_id
from trunkline.jsontypes import encode
from trunkline.machine.state import StepState
from trunkline.messages import Dispatch, OutgoingMessage
from trunkline.stores.base import ExchangeRecord, RecordedCallEnd, Store, Transaction
from trunkline.stores.port.agents.activity import ActivityWrites, AgentMinute, minute_of
from trunkline.stores.port.automation.jobs import JobPage, NewJob
from trunkline.stores.port.automation.triggers import RunEnd
from trunkline.stores.port.input_queue import InputQueueWrites, TimerWrites
from trunkline.stores.port.messaging import DispatchWrites, ExchangeWrites, OutboxWrites
from trunkline.stores.port.operations import Process
from trunkline.stores.port.runs import RunWrites
from trunkline.stores.port.tasks import LeaseWrites, TaskWrites
from trunkline.stores.postgres import open_postgres
from trunkline.testing import FakeClock

pytestmark = pytest.mark.anyio

RUNS = int(os.environ.get("TRUNKLINE_AUDIT_RUNS", "6000"))
WAITING = RUNS // 5
# Runs, tasks, or whatever else one operation is about.
FEW = range(1, 9)
LIMIT = len(FEW)
# Of rows of tables and indexes, and of pages, that one statement about so few reads. What does not fit in here: an
# agent's busy tasks are counted up to its limit.
MOST_ROWS = 20 * LIMIT
MOST_PAGES = 50 * LIMIT
BREAKER = BreakerPolicy()
EVERY_TURN = {
    "activity": ActivityWrites,
    "dispatches": DispatchWrites,
    "exchanges": ExchangeWrites,
    "input_queue": InputQueueWrites,
    "leases": LeaseWrites,
    "outbox": OutboxWrites,
    "runs": RunWrites,
    "tasks": TaskWrites,
    "timers": TimerWrites,
}


class CountedGroup:
    """A group of a transaction that notes which of its methods are called."""

    def __init__(self, name: str, group: object, called: set[str]) -> None:
        self._name, self._group, self._called = name, group, called

    def __getattr__(self, method: str) -> Any:
        self._called.add(f"{self._name}.{method}")
        return getattr(self._group, method)


class CountedTransaction:
    def __init__(self, tx: Transaction, called: set[str]) -> None:
        self._tx, self._called = tx, called

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tx, name)
        return CountedGroup(name, found, self._called) if name in EVERY_TURN else found


class WorkingSystem:
    """Does once what every process of a system does again and again."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self._store, self._clock = store, clock
        self.called: set[str] = set()

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[Transaction]:
        async with self._store.transaction() as tx:
            yield cast("Transaction", CountedTransaction(tx, self.called))

    async def work(self) -> None:
        await self._drive_runs()
        await self._relay()
        await self._call_agents()
        await self._take_over()
        await self._take_results()
        await self._show()
        await self._forget()

    async def prepare(self) -> None:
        for agent in ("A", "asked", "busy"):
            await register(self._store, agent, 1_000_000 if agent != "busy" else 1)
        await register(self._store, "guarded", 1_000_000, options=AgentOptions(breaker=BREAKER))
        await queue(self._store, *(task(n, agent="busy", step="q") for n in range(1, 200)))

    async def _drive_runs(self) -> None:
        async with self.turn() as tx:
            await tx.runs.insert([new_run(n) for n in range(1_000, 1_000 + LIMIT)])
            await tx.input_queue.put([item(n, "start") for n in FEW])
        async with self.turn() as tx:
            await tx.dispatches.take_due(LIMIT, timedelta(minutes=15))
            await tx.timers.fire_due(LIMIT)
            await tx.timers.next_due()
            await tx.runs.unknown([run_id(n) for n in FEW])
            labels = await tx.runs.labels([run_id(1)])
            await tx.runs.set_labels({run_id(1): labels[run_id(1)] or {"a": "b"}})
            woken = await tx.input_queue.claim_runs(LIMIT)
            await tx.runs.load([run.run_id for run in woken])
            rows = {run.run_id: [row for row, _ in run.items] for run in woken}
            step = StepState(name="a", status="RUNNING", started_at=NOW)
            await tx.runs.write_transitions(
                [
                    transition(
                        n,
                        steps=[step],
                        events=[event(1), event(2)],
                        applied=rows[run_id(n)],
                        timers=[timer(n, "soon", 1), timer(n, "late", 1_000)],
                    )
                    for n in FEW
                ]
            )
            tasks = [task(n, agent="guarded") for n in FEW]
            await tx.dispatches.put(
                [Dispatch(key_of(each), run_id(n), encode(each)) for n, each in zip(FEW, tasks, strict=True)],
                timedelta(seconds=30),
            )
            await tx.outbox.put([OutgoingMessage("tasks", each.run_id, b"{}") for each in tasks])
            assert not await tx.triggers.note_run_ends([RunEnd(run_id(n), "run/FAILED/w") for n in FEW])
            assert await tx.triggers.take_pending(LIMIT) == []
            assert await tx.start_queue.next_due() is None
            assert await tx.start_queue.claim(LIMIT) == {}
        self._clock.advance(timedelta(seconds=2))
        async with self.turn() as tx:
            await tx.timers.fire_due(LIMIT)
            await tx.runs.write_transitions([transition(n, expected=1, dropped=["late"]) for n in FEW])

    async def _relay(self) -> None:
        async with self.turn() as tx:
            assert len(await tx.outbox.take(500)) == LIMIT
            await tx.outbox.put([OutgoingMessage("tasks", "key", b"{}")])
            batch = await tx.outbox.reserve(timedelta(seconds=2))
        async with self.turn() as tx:
            await tx.outbox.delete(batch.rows)

    async def _call_agents(self) -> None:
        async with self.turn() as tx:
            await tx.leases.hold(ME, LEASE)
            await tx.dispatches.payloads([key_of(task(n)) for n in FEW])
            await tx.tasks.put([queued(task(n, agent="guarded")) for n in FEW])
            await tx.tasks.put([queued(task(n, agent="asked", step="b")) for n in FEW])
            claimed = await tx.tasks.claim(ME, 2 * LIMIT, [None])
            assert len(claimed) == 2 * LIMIT
            await tx.tasks.next_poll()
        async with self.turn() as tx:
            assert await tx.tasks.stopping(ME) == []
            assert len(await tx.tasks.held(ME)) == 2 * LIMIT
            await tx.tasks.claim(ME, LIMIT, [None])
        async with self.turn() as tx:
            await tx.tasks.write_answers(
                ME, [(taken if each.task.agent == "asked" else done)(each) for each in claimed]
            )
            keys = [each.key for each in claimed if each.task.agent != "asked"]
            await tx.tasks.keep_results(dict.fromkeys(keys, b"{}"))
            await tx.exchanges.put([ExchangeRecord(run_id(n), "a", 1, b"{}") for n in FEW])
            await tx.agents.record_calls(
                [RecordedCallEnd("guarded", BREAKER, CallEnd(failed=False)) for _ in FEW]
            )
            minute = AgentMinute(
                agent="A", minute=minute_of(tx.now), calls=1, failures=0, total_ms=1, longest_ms=1
            )
            await tx.activity.record(ME, [minute])
            await tx.outbox.put([OutgoingMessage("results", run_id(n), b"{}") for n in FEW])
            await tx.tasks.next_poll()
        self._clock.advance(timedelta(seconds=28))
        async with self.turn() as tx:
            await tx.leases.hold(ME, LEASE)
            assert len(await tx.tasks.claim(ME, LIMIT, [None])) == LIMIT
            assert len(await tx.dispatches.take_due(LIMIT, timedelta(minutes=15))) == LIMIT
            await tx.tasks.poll_soon(key_of(task(1, step="b")))
            await tx.tasks.stop(ME, [key_of(task(n, step="b")) for n in FEW])
            assert len(await tx.tasks.stopping(ME)) == LIMIT

    async def _take_over(self) -> None:
        await queue(self._store, *(task(n, agent="A", step="c") for n in FEW))
        assert len(await claim(self._store, DEAD, LIMIT)) == LIMIT
        async with self.turn() as tx:
            await tx.leases.hold(ME, LEASE)
            await tx.leases.hold("late", timedelta(0))
        async with self.turn() as tx:
            await tx.tasks.reclaim(ME)
            assert len(await tx.tasks.claim(ME, LIMIT)) == LIMIT
            await tx.leases.release("nobody")

    async def _take_results(self) -> None:
        async with self.turn() as tx:
            keys = [key_of(task(n)) for n in FEW]
            assert len(await tx.tasks.results(keys)) == LIMIT
            await tx.input_queue.put([item(n, "result") for n in FEW])
            await tx.dispatches.settle(keys)
            await tx.input_queue.claim_runs(LIMIT)

    async def _show(self) -> None:
        reads = self._store.runs
        await reads.get(run_id(1))
        await reads.status(run_id(1))
        await reads.events(run_id(1), after=0, limit=LIMIT)
        await reads.page(limit=LIMIT)
        await reads.waiting_steps(limit=LIMIT)
        await self._store.exchanges.page(run_id(1), after=0, limit=LIMIT)
        await self._store.agent_events.last_id()
        await self._store.agents.loads(["A", "guarded"])
        await self._store.activity.last_calls(["A", "guarded"])
        await self._store.backlog.queues(LIMIT)
        await self._store.processes.page(limit=LIMIT)

    async def _forget(self) -> None:
        process = Process(id=new_id(), name="p", roles=("api",), version="1", started_at=NOW)
        async with self.turn() as tx:
            await tx.activity.forget(NOW)
            # The oldest of those that have finished; each has finished a microsecond before the next.
            oldest = after(NOW, -timedelta(microseconds=RUNS - LIMIT))
            assert await tx.runs.delete_finished(oldest, LIMIT) == LIMIT
            await tx.audit.delete(NOW, LIMIT)
            assert len(await tx.runs.delete_lowest([run_id(n) for n in FEW], LIMIT)) == 0
            job = NewJob(id=new_id(), request=b"{}", progress=b"{}")
            assert await tx.jobs.put(job, most_unfinished=LIMIT)
        assert await self._store.jobs.are_due()
        async with self.turn() as tx:
            claimed = await tx.jobs.claim(LEASE)
            assert claimed is not None
            page = JobPage(id=claimed.id, epoch=claimed.epoch, status="COMPLETED", progress=b"{}")
            assert await tx.jobs.write(page)
            await tx.jobs.delete(NOW, LIMIT)
            await tx.processes.heartbeat(process, LEASE, timedelta(days=1))


@pytest.fixture
def postgres_log(postgres: PostgresServer, request: pytest.FixtureRequest) -> Path:
    del postgres
    return Path(str(shared("postgres", request.config)["log"]))


async def test_what_is_done_all_the_time_reads_few_rows_of_a_long_history(
    postgres: PostgresServer, postgres_log: Path, clock: FakeClock
) -> None:
    with fresh_database(postgres) as url:
        await fill(url, runs=RUNS, waiting_runs=WAITING)
        async with open_postgres(url, clock=clock) as store:
            await WorkingSystem(store, clock).prepare()
        record_plans(postgres, url.rpartition("/")[2])
        start = postgres_log.stat().st_size
        async with open_postgres(url, clock=clock) as store:
            system = WorkingSystem(store, clock)
            await system.work()
        statements = executed_statements(postgres_log, start)
    assert len(statements) > 50
    whole = {(each.text, table) for each in statements for table in each.scanned_whole() & LARGE_TABLES}
    assert whole == set()
    costs = [(each.rows_read(), each.pages_read(), each.text) for each in statements]
    assert [cost for cost in costs if cost[0] > MOST_ROWS] == []
    assert [cost for cost in costs if cost[1] > MOST_PAGES] == []
    known = {
        f"{name}.{method}" for name, group in EVERY_TURN.items() for method in vars(group) if method[0] != "_"
    }
    assert known - system.called == set()
