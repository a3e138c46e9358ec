"""
The SQLite store: one writer, one reader, one process.

Statements run on the event loop's own thread, where each costs a few microseconds; only the commit, which waits
for the disk, runs in a thread. So whoever needs many rows written asks for them in one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import apsw

from trunkline.agents import Agent
from trunkline.clock import Clock, Instant
from trunkline.ids import RunId
from trunkline.machine.state import RunStatus, StepState, StepStatus
from trunkline.stores.base import (
    AgentLoad,
    ApiKey,
    Backlog,
    DeadLetter,
    EventRecord,
    LastRun,
    Moved,
    Notice,
    RunRecord,
    WaitingStep,
    WaitKind,
    WaitPlace,
    WorkflowVersion,
)
from trunkline.stores.port.activity import AgentMinute, CallPlace, EndedCall, Grade
from trunkline.stores.port.agent_events import AgentEvent, CheckRecord, ComparisonRecord, Side
from trunkline.stores.port.credentials import Secret
from trunkline.stores.port.operations import AuditEntry, AuditKind, Queues, SeenProcess
from trunkline.stores.port.run_filters import ANY_RUN, RunFilter, SavedVersion
from trunkline.stores.sqlite.cache import Changes, Recent
from trunkline.stores.sqlite.database.committer import Committer
from trunkline.stores.sqlite.database.connection import (
    check_library,
    connect,
    make_file,
    make_folder,
    owned,
    translated_errors,
)
from trunkline.stores.sqlite.database.migrate import is_up_to_date, upgrade
from trunkline.stores.sqlite.database.statements import execute, first
from trunkline.stores.sqlite.tables import (
    activity,
    agents,
    backlog,
    dead_letters,
    history,
    keys,
    run_lists,
    runs,
    workflows,
)
from trunkline.stores.sqlite.tables import agent_events as agent_records
from trunkline.stores.sqlite.tables import agent_limits as agent_states
from trunkline.stores.sqlite.tables import credentials as secrets
from trunkline.stores.sqlite.tables import operations as oversight
from trunkline.stores.sqlite.tables import waiting_steps as waiting
from trunkline.stores.sqlite.transaction import SqliteTransaction
from trunkline.system_clock import SystemClock


class SqliteStore:
    def __init__(self, writer: apsw.Connection, reader: apsw.Connection, path: Path, clock: Clock) -> None:
        self._writer = writer
        self._reader = reader
        self._path = path
        self._clock = clock
        self._turn = asyncio.Lock()
        self._committer = Committer(partial(execute, writer, "COMMIT"))
        self._counting = asyncio.Lock()
        self._looking = asyncio.Lock()
        self._recent = Recent()

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncGenerator[SqliteTransaction]:
        """Every commit waits for the disk."""
        del durable
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

    async def agent_load(self, name: str) -> AgentLoad:
        return agent_states.agent_load(self._reader, name, self._clock.now())

    async def workflow(self, name_or_id: str, version: int | None = None) -> WorkflowVersion | None:
        known = self._recent.workflows.get((name_or_id, version))
        if known is not None:
            return known
        found = workflows.workflow(self._reader, name_or_id, version)
        if found is not None:
            self._recent.workflows.put((name_or_id, version), found)
        return found

    async def workflows(
        self, *, limit: int, after: str | None = None, search: str | None = None
    ) -> list[WorkflowVersion]:
        return workflows.workflows(self._reader, limit=limit, after=after, search=search)

    async def last_runs(self, names: Sequence[str], *, each: int) -> dict[str, list[LastRun]]:
        return workflows.last_runs(self._reader, names, each=each)

    async def workflow_versions(
        self, workflow_id: str, *, limit: int, before: int | None = None
    ) -> list[WorkflowVersion]:
        return workflows.workflow_versions(self._reader, workflow_id, limit=limit, before=before)

    async def run(self, run_id: RunId) -> tuple[RunRecord, list[StepState]] | None:
        return runs.load_run(self._reader, run_id)

    async def items(
        self,
        run_id: RunId,
        step: str,
        *,
        limit: int,
        after: int = -1,
        statuses: Sequence[StepStatus] = (),
    ) -> list[StepState]:
        return runs.items(self._reader, run_id, step, limit=limit, after=after, statuses=statuses)

    async def item_counts(self, run_id: RunId) -> dict[str, dict[StepStatus, int]]:
        return runs.item_counts(self._reader, run_id)

    async def run_status(self, run_id: RunId) -> tuple[RunStatus, int] | None:
        return self._recent.statuses.get(run_id) or runs.run_status(self._reader, run_id)

    async def runs(
        self,
        *,
        limit: int,
        before: RunId | None = None,
        where: RunFilter = ANY_RUN,
        payloads: bool = True,
    ) -> list[RunRecord]:
        return run_lists.list_runs(self._reader, limit=limit, before=before, where=where, payloads=payloads)

    async def saved_versions(self) -> list[SavedVersion]:
        return run_lists.saved_versions(self._reader)

    async def events(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None
    ) -> list[EventRecord]:
        return history.events(self._reader, run_id, after=after, limit=limit, step=step)

    async def exchanges(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None, attempt: int | None = None
    ) -> list[tuple[int, bytes]]:
        return history.exchanges(self._reader, run_id, after=after, limit=limit, step=step, attempt=attempt)

    async def waiting_steps(
        self,
        *,
        limit: int,
        after: WaitPlace | None = None,
        kind: WaitKind | None = None,
        workflow: str | None = None,
    ) -> list[WaitingStep]:
        return waiting.waiting_steps(self._reader, limit=limit, after=after, kind=kind, workflow=workflow)

    async def dead_letters(self, *, limit: int, before: str | None = None) -> list[DeadLetter]:
        return dead_letters.dead_letters(self._reader, limit=limit, before=before)

    async def dead_letter(self, letter_id: str) -> DeadLetter | None:
        return dead_letters.dead_letter(self._reader, letter_id)

    async def keys(self, *, limit: int, after: str | None = None) -> list[ApiKey]:
        return keys.keys(self._reader, limit=limit, after=after)

    async def key(self, digest: bytes) -> ApiKey | None:
        return keys.key(self._reader, digest)

    async def secrets(self, *, limit: int, after: str | None = None) -> list[Secret]:
        return secrets.secrets(self._reader, limit=limit, after=after)

    async def secret(self, name: str) -> Secret | None:
        return secrets.secret(self._reader, name)

    async def last_agent_event(self) -> int:
        return agent_records.last_agent_event(self._reader)

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        return agent_records.latest_migrations(self._reader, agent_ids)

    async def migrations_since(self, after: int) -> list[AgentEvent]:
        return agent_records.migrations_since(self._reader, after)

    async def agent_events(
        self,
        *,
        limit: int,
        before: int | None = None,
        agent_id: str | None = None,
        agent: str | None = None,
    ) -> list[AgentEvent]:
        return agent_records.agent_events(
            self._reader, limit=limit, before=before, agent_id=agent_id, agent=agent
        )

    async def checks(self, agent_id: str, *, limit: int, before: str | None = None) -> list[CheckRecord]:
        return agent_records.checks(self._reader, agent_id, limit=limit, before=before)

    async def last_check(self, agent_id: str, url: str, protocol: str) -> CheckRecord | None:
        return agent_records.last_check(self._reader, agent_id, url, protocol)

    async def comparisons(
        self, agent_id: str, *, limit: int, before: str | None = None, verdict: str | None = None
    ) -> list[ComparisonRecord]:
        return agent_records.comparisons(self._reader, agent_id, limit=limit, before=before, verdict=verdict)

    async def comparison_counts(self, agent_id: str, since: int) -> dict[str, int]:
        return agent_records.comparison_counts(self._reader, agent_id, since)

    async def calls_of_sides(self, agent_id: str) -> dict[Side, bytes]:
        found = agent_records.side_calls(self._reader, [agent_id])
        return {side: calls for (_, side), calls in found.items()}

    async def agent_minutes(self, since: int, agents: Collection[str]) -> list[AgentMinute]:
        return activity.agent_minutes(self._reader, since, agents)

    async def agent_calls(
        self, agent: str, *, limit: int, before: CallPlace | None = None
    ) -> list[EndedCall]:
        return activity.agent_calls(self._reader, agent, limit=limit, before=before)

    async def last_calls(self, agents: Collection[str]) -> dict[str, EndedCall]:
        return activity.last_calls(self._reader, agents)

    async def agent_loads(self, agents: Collection[str]) -> dict[str, AgentLoad]:
        return {agent: await self.agent_load(agent) for agent in agents}

    async def last_grades(self, agent_ids: Collection[str]) -> dict[str, Grade]:
        return activity.last_grades(self._reader, agent_ids)

    async def unfinished_runs_before(self, routes: int) -> int:
        return agent_records.unfinished_runs_before(self._reader, routes)

    async def audit(
        self,
        *,
        limit: int,
        before: str | None = None,
        who: str | None = None,
        kind: AuditKind | None = None,
        subject: str | None = None,
    ) -> list[AuditEntry]:
        return oversight.audit(self._reader, limit=limit, before=before, who=who, kind=kind, subject=subject)

    async def processes(self, *, limit: int) -> list[SeenProcess]:
        return oversight.processes(self._reader, self._clock.now(), limit=limit)

    async def pools(self, *, limit: int) -> list[str]:
        return oversight.pools(self._reader, limit=limit)

    async def queues(self, most: int) -> Queues:
        # Cheap, but not for the thread that everything else runs on; and not behind `backlog`, which is not.
        async with self._looking:
            return await asyncio.to_thread(oversight.count, self._path, self._clock.now(), most)

    async def moved(self) -> Moved | None:
        row = first(self._reader, "SELECT at FROM moves ORDER BY at LIMIT 1")
        return None if row is None else Moved(at=Instant(row[0]))

    @asynccontextmanager
    async def listen(self, hear: Callable[[Notice], None]) -> AsyncGenerator[None]:
        """Nobody else can be there to ring."""
        del hear
        yield

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
