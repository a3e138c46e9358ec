"""
One transaction of the SQLite store: each method is in the module that has its SQL.

Much of what a turn makes is also taken in the same turn; that is held back and written once (`Inbox`, `FreshTasks`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import apsw

from trunkline.agents import Agent
from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.machine.state import FINAL_RUN_STATUSES, StepState
from trunkline.messages import OutgoingMessage
from trunkline.stores.agent_limits import earlier
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
from trunkline.stores.sqlite.cache import NOT_KNOWN, Changes
from trunkline.stores.sqlite.database.statements import execute
from trunkline.stores.sqlite.tables import (
    activity,
    agents,
    dead_letters,
    history,
    keys,
    runs,
    tasks,
    transfer,
    workflows,
)
from trunkline.stores.sqlite.tables import agent_events as agent_records
from trunkline.stores.sqlite.tables import agent_limits as agent_states
from trunkline.stores.sqlite.tables import credentials as secrets
from trunkline.stores.sqlite.tables import input_queue as inbox
from trunkline.stores.sqlite.tables import messaging as travelling
from trunkline.stores.sqlite.tables import operations as oversight
from trunkline.stores.sqlite.tables.agent_limits import Restraint
from trunkline.stores.sqlite.tables.held_tasks import FreshTasks
from trunkline.stores.sqlite.tables.input_queue import Inbox


class SqliteTransaction:
    def __init__(self, db: apsw.Connection, now: Instant, changes: Changes) -> None:
        self._db = db
        self.now = now
        self.changes = changes
        # Those of this transaction that have not moved yet: what they are is known without reading.
        self._new_runs: dict[RunId, NewRun] = {}
        self._inbox = Inbox(db)
        self._fresh_tasks = FreshTasks(db)
        # When a task may go that its agent's limits have held back.
        self._next_begin: Instant | None = None

    def settle(self) -> None:
        """Writes what was held back; called before the commit."""
        self._inbox.write()
        self._fresh_tasks.write()

    @asynccontextmanager
    async def savepoint(self) -> AsyncGenerator[None]:
        # With nothing held back, the database alone knows what is to be undone.
        self.settle()
        changes, new_runs = self.changes.copy(), self._new_runs.copy()
        execute(self._db, "SAVEPOINT block")
        try:
            yield
            self.settle()
        except BaseException:
            # After some errors (a full disk) SQLite has rolled back all of it by itself.
            if self._db.in_transaction:
                execute(self._db, "ROLLBACK TO block")
                execute(self._db, "RELEASE block")
            self.changes, self._new_runs = changes, new_runs
            self._inbox, self._fresh_tasks = Inbox(self._db), FreshTasks(self._db)
            raise
        execute(self._db, "RELEASE block")

    async def announce(self, notice: Notice) -> None:
        """Nobody else can be there to hear it."""

    async def insert_agent(self, agent: Agent) -> None:
        # What waits for a secret may be due from now on.
        self.changes.no_poll_before = NOT_KNOWN
        agents.insert_agent(self._db, agent)

    async def update_agent(self, agent: Agent, expected_version: int) -> bool:
        self.changes.no_poll_before = NOT_KNOWN
        return agents.update_agent(self._db, agent, expected_version)

    async def delete_agent(self, agent_id: str) -> bool:
        self.changes.no_poll_before = NOT_KNOWN
        agent_records.forget_agent(self._db, agent_id)
        return agents.delete_agent(self._db, agent_id)

    async def reset_agent(self, name: str) -> None:
        agent_states.reset_agent(self._db, name)

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

    async def unknown_runs(self, run_ids: Collection[RunId]) -> set[RunId]:
        return set(run_ids) - runs.known_runs(self._db, run_ids)

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

    async def put_tasks(self, queued: Sequence[QueuedTask]) -> list[bytes]:
        # The tasks of a run that has moved in this transaction are its own and new: nothing to look up.
        moved = self.changes.statuses
        fresh = [item for item in queued if item.task.run_id in moved]
        if len(fresh) < len(queued):
            others = [item for item in queued if item.task.run_id not in moved]
            going_on = runs.unfinished_runs(self._db, {RunId(item.task.run_id) for item in others})
            others = [item for item in others if item.task.run_id in going_on]
            self._fresh_tasks.write()
            known = tasks.stored_results(
                self._db, [TaskKey(item.task.task_id, item.task.attempt) for item in others]
            )
            self._fresh_tasks.put(others)
        else:
            known = {}
        self._fresh_tasks.put(
            [item for item in fresh if moved[RunId(item.task.run_id)][0] not in FINAL_RUN_STATUSES]
        )
        return list(known.values())

    async def claim_tasks(
        self, owner: str, limit: int, pools: Collection[str | None] | None = None
    ) -> list[ClaimedTask]:
        due: list[ClaimedTask] = []
        if (first_poll := self.changes.no_poll_before) is not None and first_poll <= self.now:
            due = tasks.claim_due_tasks(self._db, owner, self.now, limit, pools)
            self.changes.no_poll_before = tasks.next_poll(self._db)
        room = limit - len(due)
        restraint = Restraint(self._db, self.now)
        queued = None if pools is not None else self._fresh_tasks.claim(owner, room, restraint)
        if queued is None:
            self._fresh_tasks.write()
            queued = tasks.claim_queued_tasks(self._db, owner, room, pools, restraint)
        self._next_begin = restraint.write()
        return due + queued

    async def hold_lease(self, owner: str, lasts: timedelta, process: str = "") -> None:
        """Whoever has the file has the lease, until its process ends."""

    async def release_lease(self, owner: str) -> None:
        """The next one takes what `owner` still has: it is another."""

    async def stopping_tasks(self, owner: str) -> list[ClaimedTask]:
        self._fresh_tasks.write()
        return tasks.stopping_tasks(self._db, owner)

    async def held_tasks(self, owner: str) -> list[ClaimedTask]:
        self._fresh_tasks.write()
        return tasks.held_tasks(self._db, owner)

    async def stop_tasks(self, owner: str, keys: Sequence[TaskKey]) -> list[StoppedTask]:
        self._fresh_tasks.write()
        return tasks.stop_tasks(self._db, owner, keys)

    async def write_answers(self, owner: str, answers: Sequence[TaskAnswer]) -> set[TaskKey]:
        self._fresh_tasks.write()
        if any(answer.poll_at is not None for answer in answers):
            # Perhaps at once: an agent may have rung while its task was claimed.
            self.changes.no_poll_before = NOT_KNOWN
        return tasks.write_answers(self._db, owner, answers)

    async def reclaim_tasks(self, owner: str, grace: timedelta = timedelta(0)) -> ReclaimedTasks:
        # The lock on the file says who lives: there is nothing to wait for.
        del grace
        self._fresh_tasks.write()
        self.changes.no_poll_before = NOT_KNOWN
        return tasks.reclaim_tasks(self._db, owner, self.now)

    async def note_activity(self, bridge: str, minutes: Sequence[AgentMinute]) -> None:
        activity.note_activity(self._db, bridge, minutes)

    async def forget_activity(self, before: Instant) -> None:
        activity.forget_activity(self._db, before)

    async def note_calls(self, calls: Sequence[NotedCall]) -> list[BreakerChange]:
        return agent_states.note_calls(self._db, calls, self.now)

    async def next_poll(self) -> Instant | None:
        if self.changes.no_poll_before == NOT_KNOWN:
            self.changes.no_poll_before = tasks.next_poll(self._db)
        return earlier(self.changes.no_poll_before, self._next_begin)

    async def ask_soon(self, key: TaskKey) -> bool:
        self._fresh_tasks.write()
        self.changes.expect_poll(self.now)
        return tasks.ask_soon(self._db, key, self.now)

    async def put_exchanges(self, exchanges: Sequence[ExchangeRecord]) -> None:
        history.put_exchanges(self._db, exchanges)

    async def put_outbox(self, messages: Sequence[OutgoingMessage]) -> None:
        travelling.put_outbox(self._db, messages)

    async def take_outbox(self, limit: int) -> list[OutgoingMessage]:
        return travelling.take_outbox(self._db, limit)

    async def put_dispatches(self, dispatches: Sequence[Dispatch], resend_after: timedelta) -> None:
        travelling.put_dispatches(self._db, dispatches, self.now, resend_after)

    async def take_due_dispatches(self, limit: int, longest: timedelta) -> list[Dispatch]:
        return travelling.take_due_dispatches(self._db, self.now, limit, longest)

    async def settle_dispatches(self, keys: Collection[TaskKey]) -> None:
        self._fresh_tasks.write()
        travelling.settle_dispatches(self._db, keys)

    async def dispatched(self, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
        return travelling.dispatched(self._db, keys)

    async def stored_results(self, keys: Collection[TaskKey]) -> Mapping[TaskKey, bytes]:
        self._fresh_tasks.write()
        return tasks.stored_results(self._db, keys)

    async def keep_results(self, results: Mapping[TaskKey, bytes]) -> None:
        self._fresh_tasks.write()
        tasks.keep_results(self._db, results)

    async def put_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        dead_letters.put_dead_letters(self._db, letters)

    async def take_dead_letter(self, letter_id: str) -> DeadLetter | None:
        return dead_letters.take_dead_letter(self._db, letter_id)

    async def insert_key(self, key: ApiKey) -> None:
        keys.insert_key(self._db, key)

    async def revoke_key(self, name_or_id: str) -> ApiKey | None:
        return keys.revoke_key(self._db, name_or_id, self.now)

    async def set_secret(self, name: str, sealed: bytes) -> Secret:
        return secrets.set_secret(self._db, name, sealed, self.now)

    async def remove_secret(self, name: str) -> bool:
        return secrets.remove_secret(self._db, name)

    async def put_audit(self, entries: Sequence[NewAuditEntry]) -> None:
        oversight.put_audit(self._db, entries, self.now)

    async def delete_audit(self, before: Instant, limit: int) -> int:
        return oversight.delete_audit(self._db, before, limit)

    async def note_process(self, process: Process, lasts: timedelta, keep: timedelta) -> None:
        oversight.note_process(self._db, process, self.now, lasts, keep)

    async def forget_process(self, process_id: str) -> None:
        oversight.forget_process(self._db, process_id)

    async def lock_agent_events(self) -> None:
        """There is no other writer."""

    async def last_agent_event(self) -> int:
        return agent_records.last_agent_event(self._db)

    async def latest_migrations(self, agent_ids: Collection[str]) -> dict[str, AgentEvent]:
        return agent_records.latest_migrations(self._db, agent_ids)

    async def put_agent_events(self, events: Sequence[NewAgentEvent]) -> list[AgentEvent]:
        return agent_records.put_agent_events(self._db, events, self.now)

    async def put_check(self, check: CheckRecord, keep: int) -> CheckRecord | None:
        return agent_records.put_check(self._db, check, keep)

    async def put_comparisons(self, comparisons: Sequence[ComparisonRecord], keep: int) -> None:
        agent_records.put_comparisons(self._db, comparisons, keep)

    async def side_calls(self, agent_ids: Collection[str]) -> dict[tuple[str, Side], bytes]:
        return agent_records.side_calls(self._db, agent_ids)

    async def put_side_calls(self, calls: Mapping[tuple[str, Side], bytes]) -> None:
        agent_records.put_side_calls(self._db, calls)

    async def forget_sides(self, agent_id: str) -> None:
        agent_records.forget_sides(self._db, agent_id)

    async def delete_finished_runs(self, before: Instant, limit: int) -> int:
        self._fresh_tasks.write()
        deleted = runs.delete_finished_runs(self._db, before, limit)
        self.changes.deletions = deleted > 0
        return deleted

    async def mark_moved(self) -> None:
        # The lock on the file keeps everybody else out.
        transfer.mark_moved(self._db, self.now)

    async def dump(self, table: Table) -> AsyncGenerator[list[TableRow]]:
        self.settle()
        for batch in transfer.dump(self._db, table):
            yield batch

    async def load(self, table: Table, rows: Sequence[TableRow]) -> None:
        self.changes.deletions = self.changes.workflows = True
        self.changes.no_poll_before = NOT_KNOWN
        transfer.load(self._db, table, rows)
