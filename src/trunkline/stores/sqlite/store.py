"""
The SQLite store: one writer, one reader, one process.

Statements run on the event loop's own thread, where each costs a few microseconds; only the commit, which waits
for the disk, runs in a thread. So whoever needs many rows written asks for them in one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import apsw

from trunkline.agents import Agent
from trunkline.clock import Clock, Instant, SystemClock
from trunkline.ids import RunId
from trunkline.machine.state import RunStatus, StepState
from trunkline.stores.base import (
    Backlog,
    ClaimedTask,
    EventRecord,
    ExchangeRecord,
    ExistingRun,
    InboxItem,
    NewRun,
    QueuedTask,
    ReclaimedTasks,
    RunRecord,
    StoppedTask,
    TaskAnswer,
    TaskKey,
    Transition,
    WokenRun,
    WorkflowVersion,
)
from trunkline.stores.sqlite import agents, backlog, history, inbox, runs, tasks, workflows
from trunkline.stores.sqlite.committer import Committer
from trunkline.stores.sqlite.connection import (
    check_library,
    connect,
    make_file,
    make_folder,
    owned,
    translated_errors,
)
from trunkline.stores.sqlite.driver import execute, first
from trunkline.stores.sqlite.fresh_tasks import FreshTasks
from trunkline.stores.sqlite.inbox import Inbox
from trunkline.stores.sqlite.migrate import is_up_to_date, upgrade
from trunkline.stores.sqlite.recent import NOT_KNOWN, Changes, Recent


class SqliteTransaction:
    """Delegates each method to the module that has its SQL."""

    def __init__(self, db: apsw.Connection, now: Instant, changes: Changes) -> None:
        self._db = db
        self.now = now
        self.changes = changes
        # Those of this transaction that have not moved yet: what they are is known without reading.
        self._new_runs: dict[RunId, NewRun] = {}
        self._inbox = Inbox(db)
        self._fresh_tasks = FreshTasks(db)

    def settle(self) -> None:
        """Writes what was held back; called before the commit."""
        self._inbox.write()
        self._fresh_tasks.write()

    async def insert_agent(self, agent: Agent) -> None:
        agents.insert_agent(self._db, agent)

    async def update_agent(self, agent: Agent, expected_version: int) -> bool:
        return agents.update_agent(self._db, agent, expected_version)

    async def delete_agent(self, agent_id: str) -> bool:
        return agents.delete_agent(self._db, agent_id)

    async def insert_workflow_version(self, version: WorkflowVersion) -> None:
        self.changes.workflows = True
        workflows.insert_workflow_version(self._db, version)

    async def latest_workflow_version(self, name: str) -> WorkflowVersion | None:
        return workflows.latest_workflow_version(self._db, name)

    async def insert_runs(self, new_runs: Sequence[NewRun]) -> list[ExistingRun | None]:
        found = runs.insert_runs(self._db, new_runs)
        for run, existing in zip(new_runs, found, strict=True):
            if existing is None:
                self._new_runs[run.id] = run
        return found

    async def put_inbox(self, items: Sequence[InboxItem]) -> None:
        self._inbox.put(items)

    async def claim_woken_runs(self, limit: int) -> list[WokenRun]:
        return self._inbox.claim(limit)

    async def load_runs(self, run_ids: Sequence[RunId]) -> list[tuple[RunRecord, list[StepState]]]:
        new = [runs.record_of(self._new_runs[run_id]) for run_id in run_ids if run_id in self._new_runs]
        old = [run_id for run_id in run_ids if run_id not in self._new_runs]
        return [*((record, []) for record in new), *runs.load_runs(self._db, old)]

    async def write_transitions(self, transitions: Sequence[Transition]) -> set[RunId]:
        moved = runs.write_transitions(self._db, transitions)
        for transition in transitions:
            state = transition.state
            if state.id not in moved:
                self._inbox.apply(state.id, state.version, transition.applied)
                self.changes.statuses[state.id] = (state.status, state.seq)
                self._new_runs.pop(state.id, None)
        return moved

    async def take_due_timers(self, limit: int) -> int:
        due = inbox.take_due_timers(self._db, self.now, limit)
        self._inbox.put(due)
        return len(due)

    async def next_timer(self) -> Instant | None:
        return inbox.next_timer(self._db)

    async def put_tasks(self, queued: Sequence[QueuedTask]) -> None:
        self._fresh_tasks.put(queued)

    async def claim_tasks(self, owner: str, limit: int) -> list[ClaimedTask]:
        due: list[ClaimedTask] = []
        if (first_poll := self.changes.no_poll_before) is not None and first_poll <= self.now:
            due = tasks.claim_due_tasks(self._db, owner, self.now, limit)
            self.changes.no_poll_before = tasks.next_poll(self._db)
        room = limit - len(due)
        fresh = self._fresh_tasks.claim(owner, room)
        return due + (tasks.claim_queued_tasks(self._db, owner, room) if fresh is None else fresh)

    async def stop_tasks(self, owner: str, keys: Sequence[TaskKey]) -> list[StoppedTask]:
        self._fresh_tasks.write()
        return tasks.stop_tasks(self._db, owner, keys)

    async def write_answers(self, owner: str, answers: Sequence[TaskAnswer]) -> set[TaskKey]:
        self._fresh_tasks.write()
        for answer in answers:
            if answer.poll_at is not None:
                self.changes.expect_poll(answer.poll_at)
        return tasks.write_answers(self._db, owner, answers)

    async def reclaim_tasks(self, owner: str) -> ReclaimedTasks:
        self._fresh_tasks.write()
        self.changes.no_poll_before = NOT_KNOWN
        return tasks.reclaim_tasks(self._db, owner, self.now)

    async def next_poll(self) -> Instant | None:
        if self.changes.no_poll_before == NOT_KNOWN:
            self.changes.no_poll_before = tasks.next_poll(self._db)
        return self.changes.no_poll_before

    async def put_exchanges(self, exchanges: Sequence[ExchangeRecord]) -> None:
        history.put_exchanges(self._db, exchanges)

    async def delete_finished_runs(self, before: Instant, limit: int) -> int:
        self._fresh_tasks.write()
        deleted = runs.delete_finished_runs(self._db, before, limit)
        self.changes.deletions = deleted > 0
        return deleted


class SqliteStore:
    def __init__(self, writer: apsw.Connection, reader: apsw.Connection, path: Path, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._path = path
        self._clock = clock
        self._turn = asyncio.Lock()
        self._committer = Committer(partial(execute, writer, "COMMIT"))
        self._counting = asyncio.Lock()
        self._recent = Recent()

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[SqliteTransaction]:
        async with self._turn:
            with translated_errors():
                execute(self._writer, "BEGIN IMMEDIATE")
                tx = SqliteTransaction(self._writer, self._clock.now(), self._recent.begin())
                try:
                    yield tx
                    tx.settle()
                except BaseException:
                    self._roll_back()
                    raise
                await self._commit(tx.changes)

    async def _commit(self, changes: Changes) -> None:
        # Whatever happens to the caller, the writer is not given to the next one before the disk has answered.
        try:
            cancelled = await self._committer.commit()
        except BaseException:
            self._roll_back()
            raise
        self._recent.take(changes)
        if cancelled is not None:
            raise cancelled

    def _roll_back(self) -> None:
        # SQLite has rolled back by itself after some errors (a full disk): then there is no transaction to end.
        if self._writer.in_transaction:
            execute(self._writer, "ROLLBACK")

    async def agent(self, name_or_id: str) -> Agent | None:
        return agents.agent(self._reader, name_or_id)

    async def agents(
        self, *, limit: int, after: str | None = None, protocol: str | None = None
    ) -> list[Agent]:
        return agents.agents(self._reader, limit=limit, after=after, protocol=protocol)

    async def workflow(self, name_or_id: str, version: int | None = None) -> WorkflowVersion | None:
        known = self._recent.workflows.get((name_or_id, version))
        if known is not None:
            return known
        found = workflows.workflow(self._reader, name_or_id, version)
        if found is not None:
            self._recent.workflows.put((name_or_id, version), found)
        return found

    async def workflows(self, *, limit: int, after: str | None = None) -> list[WorkflowVersion]:
        return workflows.workflows(self._reader, limit=limit, after=after)

    async def workflow_versions(
        self, workflow_id: str, *, limit: int, before: int | None = None
    ) -> list[WorkflowVersion]:
        return workflows.workflow_versions(self._reader, workflow_id, limit=limit, before=before)

    async def run(self, run_id: RunId) -> tuple[RunRecord, list[StepState]] | None:
        # One statement after the other on one thread, but a commit may fall between: one snapshot for both.
        execute(self._reader, "BEGIN")
        try:
            found = runs.load_runs(self._reader, [run_id])
        finally:
            execute(self._reader, "COMMIT")
        return found[0] if found else None

    async def run_status(self, run_id: RunId) -> tuple[RunStatus, int] | None:
        return self._recent.statuses.get(run_id) or runs.run_status(self._reader, run_id)

    async def runs(
        self,
        *,
        limit: int,
        before: RunId | None = None,
        status: RunStatus | None = None,
        workflow: str | None = None,
    ) -> list[RunRecord]:
        return runs.list_runs(self._reader, limit=limit, before=before, status=status, workflow=workflow)

    async def events(self, run_id: RunId, *, after: int, limit: int) -> list[EventRecord]:
        return history.events(self._reader, run_id, after=after, limit=limit)

    async def exchanges(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None
    ) -> list[tuple[int, bytes]]:
        return history.exchanges(self._reader, run_id, after=after, limit=limit, step=step)

    async def backlog(self) -> Backlog:
        # Counting can take long where there are many runs: a thread and a connection of its own.
        async with self._counting:
            return await asyncio.to_thread(backlog.count, self._path)

    async def check(self) -> None:
        with translated_errors():
            first(self._reader, "SELECT version_num FROM alembic_version")

    def close(self) -> None:
        self._committer.close()
        self._reader.close()
        self._writer.close()


@asynccontextmanager
async def open_sqlite(
    path: Path, *, clock: Clock | None = None, beside: bool = False
) -> AsyncGenerator[SqliteStore]:
    """
    Takes the file for this process alone, brings its schema up to date, and gives it back at the end.

    `beside`: a file that is up to date is left to whoever owns it. For a few small writes that an owner takes into
    no account, like keys.
    """
    check_library()
    with ExitStack() as stack:
        make_folder(path.parent)
        if not (beside and is_up_to_date(path)):
            stack.enter_context(owned(path))
        make_file(path)
        writer = connect(path)
        upgrade(writer)
        store = SqliteStore(writer, connect(path), path, clock or SystemClock())
        stack.callback(store.close)
        yield store
