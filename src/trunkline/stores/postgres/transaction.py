"""One transaction of the PostgreSQL store: each method is in the module that has its SQL."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta

from trunkline.agents import Agent
from trunkline.clock import Instant, after
from trunkline.ids import RunId
from trunkline.machine.state import StepState
from trunkline.messages import OutgoingMessage
from trunkline.stores.base import (
    ApiKey,
    BreakerChange,
    ClaimedTask,
    DeadLetter,
    Dispatch,
    ExchangeRecord,
    ExistingRun,
    InboxItem,
    NewRun,
    NotedCall,
    Notice,
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
from trunkline.stores.port.activity import AgentMinute
from trunkline.stores.port.agent_events import AgentEvent, CheckRecord, ComparisonRecord, NewAgentEvent, Side
from trunkline.stores.port.credentials import Secret
from trunkline.stores.port.operations import NewAuditEntry, Process
from trunkline.stores.port.transfer import Table, TableRow
from trunkline.stores.postgres.database.session import Session
from trunkline.stores.postgres.tables import (
    activity,
    agents,
    dead_letters,
    keys,
    runs,
    tasks,
    transfer,
    workflows,
)
from trunkline.stores.postgres.tables import agent_events as agent_records
from trunkline.stores.postgres.tables import agent_limits as agent_states
from trunkline.stores.postgres.tables import credentials as secrets
from trunkline.stores.postgres.tables import input_queue as inbox
from trunkline.stores.postgres.tables import messaging as travelling
from trunkline.stores.postgres.tables import operations as oversight
from trunkline.stores.postgres.tables import task_claims as claims
from trunkline.stores.postgres.tables.deferred_writes import Pending
from trunkline.stores.postgres.tables.input_queue import Inbox
from trunkline.stores.postgres.tables.transitions import write_transitions


class PostgresTransaction:
    def __init__(self, db: Session, now: Instant) -> None:
        self._db = db
        self.now = now
        self._claims = claims.Claims(db, now)
        self._inbox = Inbox(db)
        self._pending = Pending(db)
        # Rung when it has committed.
        self.notices: list[Notice] = []

    async def settle(self) -> None:
        """Writes what was held back; called before the commit."""
        await self._inbox.write()
        await self._pending.write()

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        # With nothing held back, the database alone knows what is to be undone.
        await self.settle()
        notices = self.notices.copy()
        await self._db.command("SAVEPOINT block")
        try:
            yield
            await self.settle()
        except Exception:
            # A session that was lost has nothing to go back to: the next statement says so.
            if not self._db.is_closed:
                await self._db.command("ROLLBACK TO block; RELEASE block")
            self.notices = notices
            self._inbox, self._pending = Inbox(self._db), Pending(self._db)
            raise
        await self._db.command("RELEASE block")

    async def announce(self, notice: Notice) -> None:
        self.notices.append(notice)

    async def insert_agent(self, agent: Agent) -> None:
        await agents.insert_agent(self._db, agent)

    async def update_agent(self, agent: Agent, expected_version: int) -> bool:
        return await agents.update_agent(self._db, agent, expected_version)

    async def delete_agent(self, agent_id: str) -> bool:
        await agent_records.forget_agent(self._db, agent_id)
        return await agents.delete_agent(self._db, agent_id)

    async def reset_agent(self, name: str) -> None:
        await agent_states.reset_agent(self._db, name)

    async def insert_workflow_version(self, version: WorkflowVersion) -> None:
        await workflows.insert_workflow_version(self._db, version)

    async def latest_workflow_version(self, name: str) -> WorkflowVersion | None:
        return await workflows.latest_workflow_version(self._db, name)

    async def insert_runs(self, new_runs: Sequence[NewRun]) -> list[ExistingRun | None]:
        return await runs.insert_runs(self._db, new_runs)

    async def put_inbox(self, items: Sequence[InboxItem]) -> None:
        self._inbox.put(items)

    async def claim_woken_runs(self, limit: int) -> list[WokenRun]:
        return await self._inbox.claim(limit)

    async def unknown_runs(self, run_ids: Collection[RunId]) -> set[RunId]:
        return await runs.unknown_runs(self._db, run_ids)

    async def load_runs(self, run_ids: Sequence[RunId]) -> list[tuple[RunRecord, list[StepState]]]:
        return await runs.load_runs(self._db, run_ids)

    async def write_transitions(self, transitions: Sequence[Transition]) -> set[RunId]:
        applied = self._inbox.not_held(row for each in transitions for row in each.applied)
        moved = await write_transitions(self._db, transitions, applied)
        for each in transitions:
            if each.state.id not in moved:
                self._inbox.apply(each.state.id, each.state.version, each.applied)
        return moved

    async def take_due_timers(self, limit: int) -> int:
        due = await inbox.take_due_timers(self._db, self.now, limit)
        self._inbox.put(due)
        return len(due)

    async def next_timer(self) -> Instant | None:
        return await inbox.next_timer(self._db)

    async def put_tasks(self, queued: Sequence[QueuedTask]) -> list[bytes]:
        await self._pending.write()
        return await tasks.put_tasks(self._db, queued)

    async def claim_tasks(
        self, owner: str, limit: int, pools: Collection[str | None] | None = None
    ) -> list[ClaimedTask]:
        return await self._claims.claim_tasks(owner, limit, pools)

    async def hold_lease(self, owner: str, lasts: timedelta, process: str = "") -> None:
        await claims.hold_lease(self._db, owner, after(self.now, lasts), process)

    async def release_lease(self, owner: str) -> None:
        await claims.release_lease(self._db, owner)

    async def stopping_tasks(self, owner: str) -> list[ClaimedTask]:
        return await claims.stopping_tasks(self._db, owner)

    async def held_tasks(self, owner: str) -> list[ClaimedTask]:
        return await claims.held_tasks(self._db, owner)

    async def stop_tasks(self, owner: str, keys: Sequence[TaskKey]) -> list[StoppedTask]:
        self._claims.forget_polls()
        return await tasks.stop_tasks(self._db, owner, keys)

    async def write_answers(self, owner: str, answers: Sequence[TaskAnswer]) -> set[TaskKey]:
        self._claims.forget_polls()
        return await tasks.write_answers(self._db, owner, answers)

    async def reclaim_tasks(self, owner: str, grace: timedelta = timedelta(0)) -> ReclaimedTasks:
        self._claims.forget_polls()
        return await claims.reclaim_tasks(self._db, owner, self.now, grace)

    async def note_activity(self, bridge: str, minutes: Sequence[AgentMinute]) -> None:
        self._pending.note_activity(bridge, minutes)

    async def forget_activity(self, before: Instant) -> None:
        await activity.forget_activity(self._db, before)

    async def note_calls(self, calls: Sequence[NotedCall]) -> list[BreakerChange]:
        return await agent_states.note_calls(self._db, calls, self.now)

    async def next_poll(self) -> Instant | None:
        return await self._claims.next_poll()

    async def ask_soon(self, key: TaskKey) -> bool:
        self._claims.forget_polls()
        return await tasks.ask_soon(self._db, key, self.now)

    async def put_exchanges(self, exchanges: Sequence[ExchangeRecord]) -> None:
        self._pending.put_exchanges(exchanges)

    async def put_outbox(self, messages: Sequence[OutgoingMessage]) -> None:
        self._pending.put_outbox(messages)

    async def take_outbox(self, limit: int) -> list[OutgoingMessage]:
        await self._pending.write()
        return await travelling.take_outbox(self._db, limit)

    async def put_dispatches(self, dispatches: Sequence[Dispatch], resend_after: timedelta) -> None:
        await self._pending.put_dispatches(dispatches, self.now, resend_after)

    async def take_due_dispatches(self, limit: int, longest: timedelta) -> list[Dispatch]:
        await self._pending.write()
        return await travelling.take_due_dispatches(self._db, self.now, limit, longest)

    async def settle_dispatches(self, keys: Collection[TaskKey]) -> None:
        await self._pending.settle_dispatches(keys)

    async def dispatched(self, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
        await self._pending.write()
        return await travelling.dispatched(self._db, keys)

    async def stored_results(self, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
        await self._pending.write()
        return await tasks.stored_results(self._db, keys)

    async def keep_results(self, results: Mapping[TaskKey, bytes]) -> None:
        await self._pending.write()
        await tasks.keep_results(self._db, results)

    async def put_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        await dead_letters.put_dead_letters(self._db, letters)

    async def take_dead_letter(self, letter_id: str) -> DeadLetter | None:
        return await dead_letters.take_dead_letter(self._db, letter_id)

    async def insert_key(self, key: ApiKey) -> None:
        await keys.insert_key(self._db, key)

    async def revoke_key(self, name_or_id: str) -> ApiKey | None:
        return await keys.revoke_key(self._db, name_or_id, self.now)

    async def set_secret(self, name: str, sealed: bytes) -> Secret:
        return await secrets.set_secret(self._db, name, sealed, self.now)

    async def remove_secret(self, name: str) -> bool:
        return await secrets.remove_secret(self._db, name)

    async def put_audit(self, entries: Sequence[NewAuditEntry]) -> None:
        await oversight.put_audit(self._db, entries, self.now)

    async def delete_audit(self, before: Instant, limit: int) -> int:
        return await oversight.delete_audit(self._db, before, limit)

    async def note_process(self, process: Process, lasts: timedelta, keep: timedelta) -> None:
        await oversight.note_process(self._db, process, self.now, lasts, keep)

    async def forget_process(self, process_id: str) -> None:
        await oversight.forget_process(self._db, process_id)

    async def lock_agent_events(self) -> None:
        await agent_records.lock_agent_events(self._db)

    async def last_agent_event(self) -> int:
        return await agent_records.last_agent_event(self._db)

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        return await agent_records.latest_migrations(self._db, agent_ids)

    async def put_agent_events(self, events: Sequence[NewAgentEvent]) -> list[AgentEvent]:
        return await agent_records.put_agent_events(self._db, events, self.now)

    async def put_check(self, check: CheckRecord, keep: int) -> CheckRecord | None:
        return await agent_records.put_check(self._db, check, keep)

    async def put_comparisons(self, comparisons: Sequence[ComparisonRecord], keep: int) -> None:
        await agent_records.put_comparisons(self._db, comparisons, keep)

    async def side_calls(self, agent_ids: Collection[str]) -> dict[tuple[str, Side], bytes]:
        return await agent_records.side_calls(self._db, agent_ids)

    async def put_side_calls(self, calls: Mapping[tuple[str, Side], bytes]) -> None:
        await agent_records.put_side_calls(self._db, calls)

    async def forget_sides(self, agent_id: str) -> None:
        await agent_records.forget_sides(self._db, agent_id)

    async def delete_finished_runs(self, before: Instant, limit: int) -> int:
        await self.settle()
        return await runs.delete_finished_runs(self._db, before, limit)

    async def mark_moved(self) -> None:
        await transfer.mark_moved(self._db, self.now)

    async def dump(self, table: Table) -> AsyncGenerator[list[TableRow]]:
        await self.settle()
        async with aclosing(transfer.dump(self._db, table)) as batches:
            async for batch in batches:
                yield batch

    async def load(self, table: Table, rows: Sequence[TableRow]) -> None:
        await transfer.load(self._db, table, rows)
