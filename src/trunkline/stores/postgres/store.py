"""
The PostgreSQL store: one database for every process of the system.

Each transaction has a session of its own. One that is lost, or cancelled in the middle of a statement, is hung up, and
the server rolls back; one that is lost during its COMMIT may have happened, and is tried again by whoever asked for it,
which is safe since everything has a key.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from trunkline.agents import Agent
from trunkline.clock import Clock, Instant
from trunkline.errors import ConfigurationError, Unavailable
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
from trunkline.stores.migrations import REVISIONS
from trunkline.stores.port.activity import AgentMinute, CallPlace, EndedCall, Grade
from trunkline.stores.port.agent_events import AgentEvent, CheckRecord, ComparisonRecord, Side
from trunkline.stores.port.credentials import Secret
from trunkline.stores.port.operations import AuditEntry, AuditKind, Queues, SeenProcess
from trunkline.stores.port.run_filters import ANY_RUN, RunFilter, SavedVersion
from trunkline.stores.postgres.database import migrate
from trunkline.stores.postgres.database.clock import DatabaseClock, GivenClock
from trunkline.stores.postgres.database.connection import Pool
from trunkline.stores.postgres.database.errors import place_of
from trunkline.stores.postgres.database.session import Session
from trunkline.stores.postgres.notifications import Bell, listening
from trunkline.stores.postgres.tables import (
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
from trunkline.stores.postgres.tables import agent_events as agent_records
from trunkline.stores.postgres.tables import agent_limits as agent_states
from trunkline.stores.postgres.tables import credentials as secrets
from trunkline.stores.postgres.tables import operations as oversight
from trunkline.stores.postgres.tables import waiting_steps as waiting
from trunkline.stores.postgres.transaction import PostgresTransaction

# Whoever asks does not wait for as long as a statement may.
_CHECK_SECONDS = 5.0
_BEGIN = "BEGIN"
_BEGIN_UNHURRIED = "BEGIN; SET LOCAL synchronous_commit = off"


class PostgresStore:
    def __init__(self, url: str, pool: Pool, bell: Bell, clock: Clock | None) -> None:
        self._url = url
        self._pool = pool
        self._bell = bell
        self._clock = DatabaseClock() if clock is None else GivenClock(clock)

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncGenerator[PostgresTransaction]:
        async with self._pool.writer() as db:
            await db.command(_BEGIN if durable else _BEGIN_UNHURRIED)
            try:
                tx = PostgresTransaction(db, await self._clock.now(db))
                yield tx
                await tx.settle()
                await _commit(db)
            except BaseException as exc:
                await _roll_back(db, exc)
                raise
        self._bell.ring(tx.notices)

    async def agent(self, name_or_id: str) -> Agent | None:
        async with self._pool.reader() as db:
            return await agents.agent(db, name_or_id)

    async def agents(
        self, *, limit: int, after: str | None = None, protocol: str | None = None
    ) -> list[Agent]:
        async with self._pool.reader() as db:
            return await agents.agents(db, limit=limit, after=after, protocol=protocol)

    async def agent_load(self, name: str) -> AgentLoad:
        async with self._pool.reader() as db:
            return await agent_states.agent_load(db, name, await self._clock.now(db))

    async def workflow(self, name_or_id: str, version: int | None = None) -> WorkflowVersion | None:
        async with self._pool.reader() as db:
            return await workflows.workflow(db, name_or_id, version)

    async def workflows(
        self, *, limit: int, after: str | None = None, search: str | None = None
    ) -> list[WorkflowVersion]:
        async with self._pool.reader() as db:
            return await workflows.workflows(db, limit=limit, after=after, search=search)

    async def last_runs(self, names: Sequence[str], *, each: int) -> dict[str, list[LastRun]]:
        async with self._pool.reader() as db:
            return await workflows.last_runs(db, names, each=each)

    async def workflow_versions(
        self, workflow_id: str, *, limit: int, before: int | None = None
    ) -> list[WorkflowVersion]:
        async with self._pool.reader() as db:
            return await workflows.workflow_versions(db, workflow_id, limit=limit, before=before)

    async def run(self, run_id: RunId) -> tuple[RunRecord, list[StepState]] | None:
        async with self._pool.reader() as db:
            return await runs.load_run(db, run_id)

    async def items(
        self,
        run_id: RunId,
        step: str,
        *,
        limit: int,
        after: int = -1,
        statuses: Sequence[StepStatus] = (),
    ) -> list[StepState]:
        async with self._pool.reader() as db:
            return await runs.items(db, run_id, step, limit=limit, after=after, statuses=statuses)

    async def item_counts(self, run_id: RunId) -> dict[str, dict[StepStatus, int]]:
        async with self._pool.reader() as db:
            return await runs.item_counts(db, run_id)

    async def run_status(self, run_id: RunId) -> tuple[RunStatus, int] | None:
        async with self._pool.reader() as db:
            return await runs.run_status(db, run_id)

    async def runs(
        self,
        *,
        limit: int,
        before: RunId | None = None,
        where: RunFilter = ANY_RUN,
        payloads: bool = True,
    ) -> list[RunRecord]:
        async with self._pool.reader() as db:
            return await run_lists.list_runs(db, limit=limit, before=before, where=where, payloads=payloads)

    async def saved_versions(self) -> list[SavedVersion]:
        async with self._pool.reader() as db:
            return await run_lists.saved_versions(db)

    async def events(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None
    ) -> list[EventRecord]:
        async with self._pool.reader() as db:
            return await history.events(db, run_id, after=after, limit=limit, step=step)

    async def exchanges(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None, attempt: int | None = None
    ) -> list[tuple[int, bytes]]:
        async with self._pool.reader() as db:
            return await history.exchanges(db, run_id, after=after, limit=limit, step=step, attempt=attempt)

    async def waiting_steps(
        self,
        *,
        limit: int,
        after: WaitPlace | None = None,
        kind: WaitKind | None = None,
        workflow: str | None = None,
    ) -> list[WaitingStep]:
        async with self._pool.reader() as db:
            return await waiting.waiting_steps(db, limit=limit, after=after, kind=kind, workflow=workflow)

    async def dead_letters(self, *, limit: int, before: str | None = None) -> list[DeadLetter]:
        async with self._pool.reader() as db:
            return await dead_letters.dead_letters(db, limit=limit, before=before)

    async def dead_letter(self, letter_id: str) -> DeadLetter | None:
        async with self._pool.reader() as db:
            return await dead_letters.dead_letter(db, letter_id)

    async def keys(self, *, limit: int, after: str | None = None) -> list[ApiKey]:
        async with self._pool.reader() as db:
            return await keys.keys(db, limit=limit, after=after)

    async def key(self, digest: bytes) -> ApiKey | None:
        async with self._pool.reader() as db:
            return await keys.key(db, digest)

    async def secrets(self, *, limit: int, after: str | None = None) -> list[Secret]:
        async with self._pool.reader() as db:
            return await secrets.secrets(db, limit=limit, after=after)

    async def secret(self, name: str) -> Secret | None:
        async with self._pool.reader() as db:
            return await secrets.secret(db, name)

    async def last_agent_event(self) -> int:
        async with self._pool.reader() as db:
            return await agent_records.last_agent_event(db)

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        async with self._pool.reader() as db:
            return await agent_records.latest_migrations(db, agent_ids)

    async def migrations_since(self, after: int) -> list[AgentEvent]:
        async with self._pool.reader() as db:
            return await agent_records.migrations_since(db, after)

    async def agent_events(
        self,
        *,
        limit: int,
        before: int | None = None,
        agent_id: str | None = None,
        agent: str | None = None,
    ) -> list[AgentEvent]:
        async with self._pool.reader() as db:
            return await agent_records.agent_events(
                db, limit=limit, before=before, agent_id=agent_id, agent=agent
            )

    async def checks(self, agent_id: str, *, limit: int, before: str | None = None) -> list[CheckRecord]:
        async with self._pool.reader() as db:
            return await agent_records.checks(db, agent_id, limit=limit, before=before)

    async def last_check(self, agent_id: str, url: str, protocol: str) -> CheckRecord | None:
        async with self._pool.reader() as db:
            return await agent_records.last_check(db, agent_id, url, protocol)

    async def comparisons(
        self, agent_id: str, *, limit: int, before: str | None = None, verdict: str | None = None
    ) -> list[ComparisonRecord]:
        async with self._pool.reader() as db:
            return await agent_records.comparisons(db, agent_id, limit=limit, before=before, verdict=verdict)

    async def comparison_counts(self, agent_id: str, since: int) -> dict[str, int]:
        async with self._pool.reader() as db:
            return await agent_records.comparison_counts(db, agent_id, since)

    async def calls_of_sides(self, agent_id: str) -> dict[Side, bytes]:
        async with self._pool.reader() as db:
            return await agent_records.calls_of_sides(db, agent_id)

    async def agent_minutes(self, since: int, agents: Collection[str]) -> list[AgentMinute]:
        async with self._pool.reader() as db:
            return await activity.agent_minutes(db, since, agents)

    async def agent_calls(
        self, agent: str, *, limit: int, before: CallPlace | None = None
    ) -> list[EndedCall]:
        async with self._pool.reader() as db:
            return await activity.agent_calls(db, agent, limit=limit, before=before)

    async def last_calls(self, agents: Collection[str]) -> dict[str, EndedCall]:
        async with self._pool.reader() as db:
            return await activity.last_calls(db, agents)

    async def agent_loads(self, agents: Collection[str]) -> dict[str, AgentLoad]:
        async with self._pool.reader() as db:
            return await activity.agent_loads(db, agents, await self._clock.now(db))

    async def last_grades(self, agent_ids: Collection[str]) -> dict[str, Grade]:
        async with self._pool.reader() as db:
            return await activity.last_grades(db, agent_ids)

    async def unfinished_runs_before(self, routes: int) -> int:
        async with self._pool.reader() as db:
            return await agent_records.unfinished_runs_before(db, routes)

    async def audit(
        self,
        *,
        limit: int,
        before: str | None = None,
        who: str | None = None,
        kind: AuditKind | None = None,
        subject: str | None = None,
    ) -> list[AuditEntry]:
        async with self._pool.reader() as db:
            return await oversight.audit(db, limit=limit, before=before, who=who, kind=kind, subject=subject)

    async def processes(self, *, limit: int) -> list[SeenProcess]:
        async with self._pool.reader() as db:
            return await oversight.processes(db, await self._clock.now(db), limit=limit)

    async def pools(self, *, limit: int) -> list[str]:
        async with self._pool.reader() as db:
            return await oversight.pools(db, limit=limit)

    async def queues(self, most: int) -> Queues:
        async with self._pool.reader() as db:
            return await oversight.count(db, await self._clock.now(db), most)

    async def moved(self) -> Moved | None:
        async with self._pool.reader() as db:
            row = await db.first("SELECT at FROM moves ORDER BY at LIMIT 1")
        return None if row is None else Moved(at=Instant(row[0]))

    async def backlog(self) -> Backlog:
        async with self._pool.reader() as db:
            return await backlog.count(db)

    def listen(self, hear: Callable[[Notice], None]) -> AbstractAsyncContextManager[None]:
        return listening(self._url, hear)

    async def check(self) -> None:
        try:
            async with asyncio.timeout(_CHECK_SECONDS), self._pool.reader() as db:
                state = await migrate.state_of(db)
        except TimeoutError as exc:
            raise Unavailable(f"PostgreSQL at {place_of(self._url)} does not answer.") from exc
        # A newer schema only adds: this process goes on until it is replaced.
        if state.revision is None or state.revision in REVISIONS:
            try:
                state.check()
            except ConfigurationError as exc:
                raise Unavailable(exc.message, fix=exc.fix) from exc


async def _commit(db: Session) -> None:
    # A transaction in which a statement failed is rolled back by COMMIT, without an error.
    if await db.command("COMMIT") != "COMMIT":
        raise Unavailable(
            f"PostgreSQL at {db.place} has rolled a transaction back.",
            fix="Nothing is lost: it is tried again.",
        )


async def _roll_back(db: Session, exc: BaseException) -> None:
    if db.is_closed or not isinstance(exc, Exception):
        db.terminate()
        return
    try:
        await db.command("ROLLBACK")
    except Exception:  # noqa: BLE001 - why the transaction failed is told already; the server rolls back when we hang up
        db.terminate()


@asynccontextmanager
async def opened(url: str, *, clock: Clock | None, upgrade: bool) -> AsyncGenerator[PostgresStore]:
    if upgrade:
        await migrate.upgrade(url)
    else:
        (await migrate.schema_state(url)).check()
    pool, bell = Pool(url), Bell(url)
    ringing = asyncio.create_task(bell.run())
    try:
        yield PostgresStore(url, pool, bell, clock)
    finally:
        ringing.cancel()
        await asyncio.gather(ringing, return_exceptions=True)
        await pool.close()
