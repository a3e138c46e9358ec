"""Runs with their steps and events: how a state is written and read back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

import apsw

from trunkline.clock import Clock, Instant
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.machine.events import step_event_prefix
from trunkline.machine.state import RunStatus, StepState, StepStatus
from trunkline.stores.payloads import (
    MAX_IN_ROW_BYTES,
    for_decision,
    has_pieces,
    restored_records,
    restored_run,
    restored_steps,
    split_rows,
)
from trunkline.stores.port.run_filters import ANY_RUN, RunFilter
from trunkline.stores.port.runs import (
    EventRecord,
    ExistingRun,
    NewRun,
    RunRecord,
    Transition,
    WaitingStep,
    WaitKind,
    WaitPosition,
)
from trunkline.stores.rows.published_tasks import TASK_COLUMNS, new_task_values, task_change_values
from trunkline.stores.rows.runs import (
    decode_labels,
    encode_labels,
    label_values,
    new_run_values,
    record_of_new_run,
    run_record,
    step_state,
    step_values,
    transition_values,
)
from trunkline.stores.sqlite.cache import CacheChanges, CommittedCache
from trunkline.stores.sqlite.database.group_base import SqliteReads, SqliteWrites
from trunkline.stores.sqlite.database.payloads import SqlitePayloadReads, SqlitePayloads
from trunkline.stores.sqlite.database.statements import (
    Row,
    Value,
    changes_of_many,
    execute_many,
    first,
    query_many,
    rows,
    run_statements,
)
from trunkline.stores.sqlite.tables.deferred_tasks import DeferredTasks
from trunkline.stores.sqlite.tables.input_queue import SqliteInputQueue
from trunkline.stores.sqlite.tables.run_lists import (
    RUN_COLUMNS,
    UNFINISHED,
    page_of_runs,
    page_of_waiting_steps,
)

_STEP_COLUMNS = (
    "name, status, attempts, answered_failures, replies, protocol, context_id, remote_task_id, reply, input, output,"
    " error, warnings, waiting_for, started_at, finished_at, call_details"
)

# Behind the number of the row.
_STEP_END = 18
# A run and its steps in one statement, so from one snapshot. The run comes first by its number, then the steps in the
# order in which they were begun; not sorted here, since SQLite's sorting costs more than reading the few rows.
_SELECT_RUN_WITH_STEPS = f"""
    SELECT 0, {RUN_COLUMNS} FROM runs WHERE id = ?1
    UNION ALL SELECT
        rowid, {_STEP_COLUMNS}, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM steps
    WHERE run_id = ?1
"""  # noqa: S608 - as above
# An item of a step is a row of its own, under a name with the item's index: `research[17]`.
_SELECT_RUN_WITHOUT_ITEMS = f"{_SELECT_RUN_WITH_STEPS} AND instr(name, '[') = 0"
_SELECT_ITEMS = f"""
    SELECT rowid, {_STEP_COLUMNS}, CAST(substr(name, instr(name, '[') + 1) AS INTEGER) AS place FROM steps
    WHERE run_id = ?1 AND substr(name, 1, instr(name, '[')) = ?2 || '[' AND place > ?3
        AND (json_array_length(?4) = 0 OR status IN (SELECT value FROM json_each(?4)))
    ORDER BY place LIMIT ?5
"""  # noqa: S608 - as above
# Where the written values have payloads that may be split.
_NEW_RUN_PAYLOADS = (4,)
_RUN_PAYLOADS = (5,)
_STEP_PAYLOADS = (10, 11)
_COUNT_ITEMS = """
    SELECT substr(name, 1, instr(name, '[') - 1), status, count(*) FROM steps
    WHERE run_id = ? AND instr(name, '[') > 0 GROUP BY 1, 2
"""
_UPSERT_STEP = f"""
    INSERT INTO steps(run_id, {_STEP_COLUMNS}, waiting_kind, waiting_since, waiting_workflow)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT(run_id, name) DO UPDATE SET
        status = excluded.status, attempts = excluded.attempts, answered_failures = excluded.answered_failures,
        replies = excluded.replies, protocol = excluded.protocol, context_id = excluded.context_id,
        remote_task_id = excluded.remote_task_id, reply = excluded.reply, input = excluded.input,
        output = excluded.output, error = excluded.error, warnings = excluded.warnings,
        waiting_for = excluded.waiting_for, waiting_kind = excluded.waiting_kind,
        waiting_since = excluded.waiting_since, waiting_workflow = excluded.waiting_workflow,
        started_at = excluded.started_at, finished_at = excluded.finished_at, call_details = excluded.call_details
"""  # noqa: S608 - as above
_UPDATE_RUN = """
    UPDATE runs SET status = ?3, version = ?4, seq = ?5, output = ?6, error = ?7, paused = ?8, contexts = ?9,
        cancel_requested_at = ?10, started_at = ?11, finished_at = ?12, compensation = ?13
    WHERE id = ?1 AND version = ?2
"""
_INSERT_EVENT = "INSERT INTO events(run_id, seq, type, at, data) VALUES (?, ?, ?, ?, ?)"
_SET_TIMER = """
    INSERT INTO timers(run_id, key, due, payload) VALUES (?, ?, ?, ?)
    ON CONFLICT(run_id, key) DO UPDATE SET due = excluded.due, payload = excluded.payload
"""
_DROP_TIMER = "DELETE FROM timers WHERE run_id = ? AND key = ?"
_INSERT_RUN = """
    INSERT INTO runs(id, workflow_id, workflow_name, workflow_version, input, correlation_id, idempotency_key,
        request_digest, retry_of, created_at, traceparent, tracestate, parent_id, parent_step, depth, routes,
        started_by, trigger_name, message, contexts, labels, block, status, version, seq, paused, events_seen)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'PENDING', 0, 0, 0,
        (SELECT coalesce(max(number), 0) FROM received_events))
    ON CONFLICT(workflow_id, idempotency_key) DO NOTHING
"""
_INSERT_LABEL = "INSERT INTO run_labels(run_id, key, value) VALUES (?, ?, ?)"
_INSERT_TASK = f"INSERT INTO published_tasks({TASK_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 - as above
_UPDATE_TASK = "UPDATE published_tasks SET state = ?, updated_at = ? WHERE run_id = ?"
_EVENTS = """
    SELECT seq, type, at, data FROM events WHERE run_id = ?1 AND seq > ?2
        AND (?3 IS NULL OR substr(data, 1, length(?3)) = ?3) ORDER BY seq LIMIT ?4
"""
# While the run that has begun it goes on, a run can be looked at from there. A trigger may still have to read its end.
_OLD = """
    SELECT id FROM runs WHERE finished_at < ? AND NOT EXISTS (
        SELECT 1 FROM runs AS parent WHERE parent.id = runs.parent_id AND parent.finished_at IS NULL
    ) AND NOT EXISTS (SELECT 1 FROM trigger_occasions WHERE trigger_occasions.run_id = runs.id)
    ORDER BY finished_at LIMIT ?
"""
_DELETE_RUN = (
    # A task's id begins with its run's id and a slash; '0' is the character after the slash.
    "DELETE FROM tasks WHERE task_id >= ?1 || '/' AND task_id < ?1 || '0'",
    "DELETE FROM dispatches WHERE task_id >= ?1 || '/' AND task_id < ?1 || '0'",
    "DELETE FROM exchanges WHERE run_id = ?",
    "DELETE FROM timers WHERE run_id = ?",
    "DELETE FROM event_waits WHERE run_id = ?",
    "DELETE FROM inbox WHERE run_id = ?",
    "DELETE FROM events WHERE run_id = ?",
    "DELETE FROM steps WHERE run_id = ?",
    "DELETE FROM published_tasks WHERE run_id = ?",
    "DELETE FROM follow_ups WHERE run_id = ?",
    "DELETE FROM push_configs WHERE run_id = ?",
    "DELETE FROM listed_tasks WHERE run_id = ?",
    "DELETE FROM task_comments WHERE run_id = ?",
    "DELETE FROM kept_outputs WHERE run_id = ?",
    "DELETE FROM output_claims WHERE run_id = ?",
    "DELETE FROM run_labels WHERE run_id = ?",
    "DELETE FROM runs WHERE id = ?",
)
_CHILDREN = """
    SELECT runs.id FROM json_each(?1) AS above CROSS JOIN runs INDEXED BY ix_runs_parent ON runs.parent_id = above.value
    LIMIT ?2
"""
_DELETABLE = """
    SELECT runs.id FROM json_each(?1) AS asked CROSS JOIN runs ON runs.id = asked.value
    WHERE runs.finished_at IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM runs AS child WHERE child.parent_id = runs.id)
        AND NOT EXISTS (SELECT 1 FROM trigger_occasions WHERE trigger_occasions.run_id = runs.id)
        AND NOT EXISTS (SELECT 1 FROM tasks WHERE task_id >= runs.id || '/' AND task_id < runs.id || '0'
            AND status IN ('queued', 'claimed', 'remote'))
        AND NOT EXISTS (SELECT 1 FROM dispatches WHERE task_id >= runs.id || '/' AND task_id < runs.id || '0')
    LIMIT ?2
"""
# A run that was retried more often than this counts as a root itself.
_ROOT = """
    WITH RECURSIVE chain (id, above, length) AS (
        SELECT id, COALESCE(parent_id, retry_of), 0 FROM runs WHERE id = ?
        UNION ALL
        SELECT runs.id, COALESCE(runs.parent_id, runs.retry_of), chain.length + 1
        FROM chain JOIN runs ON runs.id = chain.above WHERE chain.length < 1000
    )
    SELECT id FROM chain ORDER BY length DESC LIMIT 1
"""


class SqliteRunReads(SqliteReads):
    __slots__ = ("_cache", "_payloads")

    def __init__(
        self, db: apsw.Connection, clock: Clock, cache: CommittedCache, payloads: SqlitePayloadReads
    ) -> None:
        super().__init__(db, clock)
        self._cache = cache
        self._payloads = payloads

    async def get(self, run_id: RunId) -> tuple[RunRecord, list[StepState]] | None:
        found = _loaded(self._db, _SELECT_RUN_WITHOUT_ITEMS, run_id)
        if found is None or not has_pieces(*found):
            return found
        return await restored_run(*found, self._payloads.read)

    async def page(
        self,
        *,
        limit: int,
        before: RunId | None = None,
        where: RunFilter = ANY_RUN,
        payloads: bool = True,
    ) -> list[RunRecord]:
        found = page_of_runs(self._db, limit=limit, before=before, where=where, payloads=payloads)
        if not any(has_pieces(record, ()) for record in found):
            return found
        return await restored_records(found, self._payloads.read)

    async def status(self, run_id: RunId) -> tuple[RunStatus, int] | None:
        known = self._cache.statuses.get(run_id)
        if known:
            return known
        row = first(self._db, "SELECT status, seq FROM runs WHERE id = ?", (run_id,))
        return None if row is None else (row[0], row[1])

    async def root(self, run_id: RunId) -> RunId | None:
        row = first(self._db, _ROOT, (run_id,))
        return None if row is None else row[0]

    async def items(
        self,
        run_id: RunId,
        step: str,
        *,
        limit: int,
        after: int = -1,
        statuses: Sequence[StepStatus] = (),
    ) -> list[StepState]:
        asked = (run_id, step, after, encode(statuses).decode(), limit)
        found = [step_state(row[1:_STEP_END]) for row in rows(self._db, _SELECT_ITEMS, asked)]
        return await restored_steps(found, self._payloads.read)

    async def item_counts(self, run_id: RunId) -> dict[str, dict[StepStatus, int]]:
        counts: dict[str, dict[StepStatus, int]] = {}
        for step, status, number in rows(self._db, _COUNT_ITEMS, (run_id,)):
            counts.setdefault(step, {})[status] = number
        return counts

    async def events(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None
    ) -> list[EventRecord]:
        asked = (run_id, after, None if step is None else step_event_prefix(step), limit)
        return [EventRecord(*row) for row in rows(self._db, _EVENTS, asked)]

    async def waiting_steps(
        self,
        *,
        limit: int,
        after: WaitPosition | None = None,
        kind: WaitKind | None = None,
        workflow: str | None = None,
    ) -> list[WaitingStep]:
        return page_of_waiting_steps(self._db, limit=limit, after=after, kind=kind, workflow=workflow)

    async def unfinished_before(self, routes: int) -> int:
        sql = f"SELECT count(*) FROM runs WHERE status IN ({UNFINISHED}) AND routes < ?"  # noqa: S608 - as above
        row = first(self._db, sql, (routes,))
        return 0 if row is None else row[0]


class SqliteRunWrites(SqliteWrites):
    __slots__ = ("_changes", "_deferred_tasks", "_input_queue", "_new_runs", "_payloads")

    def __init__(
        self,
        db: apsw.Connection,
        now: Instant,
        changes: CacheChanges,
        input_queue: SqliteInputQueue,
        deferred_tasks: DeferredTasks,
        payloads: SqlitePayloads,
    ) -> None:
        # Not by `super().__init__`: every transaction makes one.
        self._db, self._now = db, now
        self._changes = changes
        self._input_queue = input_queue
        self._deferred_tasks = deferred_tasks
        self._payloads = payloads
        # Those of this transaction that have no transition yet: what they are is known without reading.
        self._new_runs: dict[RunId, NewRun] = {}

    async def insert(self, new_runs: Sequence[NewRun]) -> list[ExistingRun | None]:
        size_bytes = sum(len(run.input) for run in new_runs)
        inserted = await run_statements(lambda: self._insert(new_runs), size_bytes)
        added = {run.id: run for run, new in zip(new_runs, inserted, strict=True) if new}
        self._new_runs.update(added)
        self._input_queue.note_new_runs(added)
        tasks = [values for run in added.values() if (values := new_task_values(run)) is not None]
        if tasks:
            execute_many(self._db, _INSERT_TASK, tasks)
        labels = [row for run in added.values() if run.labels for row in label_values(run.id, run.labels)]
        if labels:
            execute_many(self._db, _INSERT_LABEL, labels)
        return [None if new else self._existing_run(run) for run, new in zip(new_runs, inserted, strict=True)]

    def _insert(self, new_runs: Sequence[NewRun]) -> list[bool]:
        values, pieces = split_rows([new_run_values(run) for run in new_runs], _NEW_RUN_PAYLOADS)
        inserted = changes_of_many(self._db, _INSERT_RUN, values)
        for number in pieces:
            if inserted[number]:
                self._payloads.put(new_runs[number].id, pieces[number])
        return inserted

    def _existing_run(self, run: NewRun) -> ExistingRun:
        ((run_id, digest),) = rows(
            self._db,
            "SELECT id, request_digest FROM runs WHERE workflow_id = ? AND idempotency_key = ?",
            (run.workflow_id, run.idempotency_key),
        )
        return ExistingRun(RunId(run_id), digest)

    async def unknown(self, run_ids: Collection[RunId]) -> set[RunId]:
        found = query_many(self._db, "SELECT id FROM runs WHERE id = ?", [(run_id,) for run_id in run_ids])
        return set(run_ids) - {RunId(row[0]) for row in found}

    async def load(
        self, run_ids: Sequence[RunId], outputs_of: Collection[str] | None = ()
    ) -> list[tuple[RunRecord, list[StepState]]]:
        loaded: list[tuple[RunRecord, list[StepState]]] = [
            (record_of_new_run(self._new_runs[run_id]), []) for run_id in run_ids if run_id in self._new_runs
        ]
        old = [run_id for run_id in run_ids if run_id not in self._new_runs]
        if old:
            for run_id in old:
                found = _loaded(self._db, _SELECT_RUN_WITH_STEPS, run_id)
                if found is not None and has_pieces(*found):
                    found = await restored_run(*found, self._payloads.read, for_decision(outputs_of))
                if found is not None:
                    loaded.append(found)
        return loaded

    async def labels(
        self, run_ids: Collection[RunId], *, skip_locked: bool = False
    ) -> dict[RunId, dict[str, str]]:
        del skip_locked
        asked = [(run_id,) for run_id in run_ids]
        found = query_many(self._db, "SELECT id, labels FROM runs WHERE id = ?", asked)
        return {RunId(run_id): decode_labels(labels) for run_id, labels in found}

    async def set_labels(self, labels: Mapping[RunId, Mapping[str, str]]) -> None:
        texts = [(encode_labels(given), run_id) for run_id, given in labels.items()]
        execute_many(self._db, "UPDATE runs SET labels = ? WHERE id = ?", texts)
        execute_many(self._db, "DELETE FROM run_labels WHERE run_id = ?", [(run_id,) for run_id in labels])
        rows_of = (label_values(run_id, given) for run_id, given in labels.items())
        execute_many(self._db, _INSERT_LABEL, chain.from_iterable(rows_of))

    async def write_transitions(self, transitions: Sequence[Transition]) -> set[RunId]:
        sizes = [each.state.size_bytes for each in transitions]
        size_bytes = sum(sizes)
        written = await run_statements(lambda: self._update(transitions), size_bytes)
        changed_elsewhere: set[RunId] = set()
        steps: list[tuple[Value, ...]] = []
        events: list[tuple[Value, ...]] = []
        tasks: list[tuple[Value, ...]] = []
        for transition, is_written in zip(transitions, written, strict=True):
            state = transition.state
            if not is_written:
                changed_elsewhere.add(state.id)
                continue
            workflow = state.workflow.definition.name
            steps += [step_values(state.id, step, workflow) for step in transition.changed_steps]
            events += [(state.id, event.seq, event.type, event.at, event.data) for event in transition.events]
            if transition.timers or transition.dropped_timers:
                self._write_timers(transition)
            if (task := task_change_values(state, self._now)) is not None:
                tasks.append(task)
        if tasks:
            execute_many(self._db, _UPDATE_TASK, tasks)
        await run_statements(lambda: self._write_steps(steps), size_bytes)
        for each, run_bytes in zip(transitions, sizes, strict=True):
            # A smaller run cannot have stored much.
            if run_bytes > MAX_IN_ROW_BYTES and each.state.id not in changed_elsewhere:
                self._payloads.trim(each.state.id, run_bytes)
        execute_many(self._db, _INSERT_EVENT, events)
        for transition in transitions:
            state = transition.state
            if state.id not in changed_elsewhere:
                self._input_queue.apply(state.id, state.version, transition.applied)
                self._changes.statuses[state.id] = (state.status, state.seq)
                self._changes.versions[state.id] = state.version
                self._new_runs.pop(state.id, None)
        return changed_elsewhere

    def _update(self, transitions: Sequence[Transition]) -> list[bool]:
        values, pieces = split_rows([transition_values(each) for each in transitions], _RUN_PAYLOADS)
        written = changes_of_many(self._db, _UPDATE_RUN, values)
        for number in pieces:
            if written[number]:
                self._payloads.put(transitions[number].state.id, pieces[number])
        return written

    def _write_steps(self, steps: Sequence[tuple[Value, ...]]) -> None:
        values, pieces = split_rows(steps, _STEP_PAYLOADS)
        execute_many(self._db, _UPSERT_STEP, values)
        for number in pieces:
            self._payloads.put(str(values[number][0]), pieces[number])

    def _write_timers(self, transition: Transition) -> None:
        if transition.timers:
            timers = ((timer.run_id, timer.key, timer.due, timer.payload) for timer in transition.timers)
            execute_many(self._db, _SET_TIMER, timers)
        if transition.dropped_timers:
            dropped = ((transition.state.id, key) for key in transition.dropped_timers)
            execute_many(self._db, _DROP_TIMER, dropped)

    async def delete_finished(self, before: Instant, limit: int) -> int:
        self._deferred_tasks.write()
        old = list(rows(self._db, _OLD, (before, limit)))
        self._delete(old)
        return len(old)

    async def delete_lowest(self, run_ids: Collection[RunId], limit: int) -> set[RunId]:
        self._deferred_tasks.write()
        levels = [list(run_ids)]
        while levels[-1]:
            below = rows(self._db, _CHILDREN, (encode(levels[-1]).decode(), limit))
            levels.append([run_id for (run_id,) in below])
        for level in reversed(levels[:-1]):
            old = list(rows(self._db, _DELETABLE, (encode(level).decode(), limit)))
            if old:
                self._delete(old)
                return {RunId(run_id) for (run_id,) in old}
        return set()

    def _delete(self, run_ids: Sequence[Row]) -> None:
        for statement in _DELETE_RUN:
            execute_many(self._db, statement, run_ids)
        self._payloads.delete(run_ids)
        self._changes.deletions = self._changes.deletions or len(run_ids) > 0

    def new_runs(self) -> dict[RunId, NewRun]:
        """For `reset`, at a savepoint."""
        return self._new_runs.copy()

    def reset(self, new_runs: dict[RunId, NewRun]) -> None:
        """The database has gone back to the savepoint at which these were the new runs."""
        self._new_runs = new_runs


def _loaded(db: apsw.Connection, select: str, run_id: RunId) -> tuple[RunRecord, list[StepState]] | None:
    found = sorted(rows(db, select, (run_id,)))
    if not found:
        return None
    return run_record(found[0][1:]), [step_state(step[1:_STEP_END]) for step in found[1:]]
