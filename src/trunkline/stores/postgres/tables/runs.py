"""Runs with their steps and events: how they are inserted, read back and deleted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.ids import RunId
from trunkline.machine.events import step_event_prefix
from trunkline.machine.state import RunStatus, StepState, StepStatus
from trunkline.stores.payloads import for_decision, has_pieces, restored_records, restored_run, restored_steps
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
from trunkline.stores.postgres.database.clock import TransactionClock
from trunkline.stores.postgres.database.connection import ConnectionPool
from trunkline.stores.postgres.database.group_base import PostgresReads, PostgresWrites
from trunkline.stores.postgres.database.payloads import (
    PostgresPayloadReads,
    PostgresPayloads,
)
from trunkline.stores.postgres.database.session import Session, columns
from trunkline.stores.postgres.database.text_encoding import as_uuid, restored, restored_row
from trunkline.stores.postgres.tables.deferred_writes import DeferredWrites
from trunkline.stores.postgres.tables.input_queue import PostgresInputQueue
from trunkline.stores.postgres.tables.run_lists import RUN_COLUMNS, page_of_runs, page_of_waiting_steps
from trunkline.stores.postgres.tables.transitions import write_transitions
from trunkline.stores.rows.published_tasks import TASK_COLUMNS, new_task_values
from trunkline.stores.rows.runs import (
    decode_labels,
    encode_labels,
    label_values,
    new_run_values,
    run_record,
    step_state,
)

_RUN_WIDTH = 30
_STEP_COLUMNS = """
    steps.name, steps.status, steps.attempts, steps.answered_failures, steps.replies, steps.protocol, steps.context_id,
    steps.remote_task_id, steps.reply, steps.input, steps.output, steps.error, steps.warnings, steps.waiting_for,
    steps.started_at, steps.finished_at, steps.call_details
"""
# Runs and steps in one statement, so from one snapshot: first rows with a run and no step, then rows with a step alone.
# The steps of a run are in the order in which they were begun.
_LOAD_SOME = f"""
    SELECT {RUN_COLUMNS}, steps.run_id::text, {_STEP_COLUMNS}
    FROM (VALUES (true), (false)) AS part(of_runs)
        LEFT JOIN runs ON part.of_runs AND runs.id = ANY($1::uuid[])
        LEFT JOIN steps ON NOT part.of_runs AND steps.run_id = ANY($1::uuid[]) AND {{}}
    ORDER BY part.of_runs DESC, steps.place
"""  # noqa: S608 - constants of this module
_LOAD = _LOAD_SOME.format("true")
# An item of a step is a row of its own, under a name with the item's index: `research[17]`.
_LOAD_WITHOUT_ITEMS = _LOAD_SOME.format("strpos(steps.name, '[') = 0")
_INDEX = r"substring(steps.name from '\[([0-9]+)\]$')::bigint"
_ITEMS = f"""
    SELECT {_STEP_COLUMNS} FROM steps
    WHERE run_id = $1 AND split_part(name, '[', 1) = $2 AND {_INDEX} > $3
        AND (cardinality($4::text[]) = 0 OR status = ANY($4::text[]))
    ORDER BY {_INDEX} LIMIT $5
"""  # noqa: S608 - as above
_COUNT_ITEMS = """
    SELECT split_part(name, '[', 1), status, count(*) FROM steps
    WHERE run_id = $1 AND strpos(name, '[') > 0 GROUP BY 1, 2
"""
_INSERT = """
    INSERT INTO runs(id, workflow_id, workflow_name, workflow_version, status, input, correlation_id,
        idempotency_key, request_digest, retry_of, created_at, traceparent, tracestate, parent_id, parent_step, depth,
        routes, started_by, trigger_name, message, contexts, labels, block,
        events_seen)
    SELECT id, workflow_id, workflow_name, workflow_version, 'PENDING', input, correlation_id,
        idempotency_key, request_digest, retry_of, created_at, traceparent, tracestate, parent_id, parent_step, depth,
        routes, started_by, trigger_name, message, contexts, labels, block,
        (SELECT coalesce(max(number), 0) FROM received_events)
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::int[], $5::bytea[], $6::text[], $7::text[], $8::bytea[],
        $9::uuid[], $10::bigint[], $11::text[], $12::text[], $13::uuid[], $14::text[], $15::int[], $16::bigint[],
        $17::text[], $18::text[], $19::bytea[], $20::bytea[], $21::bytea[], $22::text[])
        AS new(id, workflow_id, workflow_name, workflow_version, input, correlation_id, idempotency_key,
            request_digest, retry_of, created_at, traceparent, tracestate, parent_id, parent_step, depth, routes,
            started_by, trigger_name, message, contexts, labels, block)
    ON CONFLICT DO NOTHING
    RETURNING id::text
"""
# Changing labels begins with reading them, so the rows are locked here, in one
# order everywhere: two transactions do not wait for one another.
_LABELS = "SELECT id::text, labels FROM runs WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE"
_SET_LABELS = """
    UPDATE runs SET labels = new.labels FROM unnest($1::uuid[], $2::bytea[]) AS new(id, labels) WHERE runs.id = new.id
"""
_INSERT_LABELS = """
    INSERT INTO run_labels(run_id, key, value) SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[])
"""
_INSERT_TASKS = f"""
    INSERT INTO published_tasks({TASK_COLUMNS})
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
    ON CONFLICT DO NOTHING
"""  # noqa: S608 - as above
_SAME = "SELECT id::text FROM runs WHERE id = ANY($1::uuid[])"
_EXISTING = """
    SELECT runs.workflow_id::text, runs.idempotency_key, runs.id::text, runs.request_digest
    FROM unnest($1::uuid[], $2::text[]) AS asked(workflow_id, idempotency_key)
        JOIN runs ON runs.workflow_id = asked.workflow_id AND runs.idempotency_key = asked.idempotency_key
"""
# While the run that has begun it goes on, a run can be looked at from there. A trigger may still have to read its end.
_OLD = """
    SELECT id::text FROM runs WHERE finished_at < $1 AND NOT EXISTS (
        SELECT 1 FROM runs AS parent WHERE parent.id = runs.parent_id AND parent.finished_at IS NULL
    ) AND NOT EXISTS (SELECT 1 FROM trigger_occasions WHERE trigger_occasions.run_id = runs.id)
    ORDER BY finished_at LIMIT $2 FOR UPDATE OF runs SKIP LOCKED
"""
# A task's id begins with its run's id and a slash; '0' is the character after the slash.
_TASKS_OF = "USING unnest($1::uuid[]) AS old(id) WHERE task_id >= old.id || '/' AND task_id < old.id || '0'"
_DELETE = (
    f"DELETE FROM tasks {_TASKS_OF}",  # noqa: S608 - as above
    f"DELETE FROM dispatches {_TASKS_OF}",  # noqa: S608 - as above
    "DELETE FROM exchanges WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM timers WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM event_waits WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM inbox WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM events WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM steps WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM published_tasks WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM follow_ups WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM push_configs WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM listed_tasks WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM task_comments WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM kept_outputs WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM output_claims WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM run_labels WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM runs WHERE id = ANY($1::uuid[])",
)
_CHILDREN = """
    SELECT children.id::text FROM unnest($1::uuid[]) AS above(id)
        CROSS JOIN LATERAL (SELECT id FROM runs WHERE parent_id = above.id ORDER BY parent_id, id LIMIT $2) AS children
    LIMIT $2
"""
_DELETABLE = """
    SELECT runs.id::text FROM runs WHERE runs.id = ANY($1::uuid[]) AND runs.finished_at IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM runs AS child WHERE child.parent_id = runs.id)
        AND NOT EXISTS (SELECT 1 FROM trigger_occasions WHERE trigger_occasions.run_id = runs.id)
        AND NOT EXISTS (SELECT 1 FROM tasks WHERE task_id >= runs.id || '/' AND task_id < runs.id || '0'
            AND status IN ('queued', 'claimed', 'remote'))
        AND NOT EXISTS (SELECT 1 FROM dispatches WHERE task_id >= runs.id || '/' AND task_id < runs.id || '0')
    ORDER BY runs.id LIMIT $2 FOR UPDATE OF runs
"""
# An input was queued for a run while that was being deleted: nothing else would ever find it.
_DELETE_ORPHANS = """
    DELETE FROM inbox WHERE applied = 0 AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = inbox.run_id)
"""
_EVENTS = """
    SELECT seq, type, at, data FROM events WHERE run_id = $1 AND seq > $2
        AND ($3::bytea IS NULL OR substr(data, 1, length($3)) = $3) ORDER BY seq LIMIT $4
"""
_UNFINISHED_BEFORE = """
    SELECT count(*) FROM runs WHERE status IN ('PENDING', 'RUNNING', 'WAITING', 'PAUSED') AND routes < $1
"""
# A run that was retried more often than this counts as a root itself.
_ROOT = """
    WITH RECURSIVE chain (id, above, length) AS (
        SELECT id, COALESCE(parent_id, retry_of), 0 FROM runs WHERE id = $1
        UNION ALL
        SELECT runs.id, COALESCE(runs.parent_id, runs.retry_of), chain.length + 1
        FROM chain JOIN runs ON runs.id = chain.above WHERE chain.length < 1000
    )
    SELECT id::text FROM chain ORDER BY length DESC LIMIT 1
"""


class PostgresRunReads(PostgresReads):
    def __init__(self, pool: ConnectionPool, clock: TransactionClock, payloads: PostgresPayloadReads) -> None:
        super().__init__(pool, clock)
        self._payloads = payloads

    async def get(self, run_id: RunId) -> tuple[RunRecord, list[StepState]] | None:
        async with self._pool.reader() as db:
            found = await _loaded(db, _LOAD_WITHOUT_ITEMS, [run_id])
        if not found or not has_pieces(*found[0]):
            return found[0] if found else None
        return await restored_run(*found[0], self._payloads.read)

    async def page(
        self,
        *,
        limit: int,
        before: RunId | None = None,
        where: RunFilter = ANY_RUN,
        payloads: bool = True,
    ) -> list[RunRecord]:
        async with self._pool.reader() as db:
            found = await page_of_runs(db, limit=limit, before=before, where=where, payloads=payloads)
        if not any(has_pieces(record, ()) for record in found):
            return found
        return await restored_records(found, self._payloads.read)

    async def status(self, run_id: RunId) -> tuple[RunStatus, int] | None:
        row = await self._first("SELECT status, seq FROM runs WHERE id = $1", as_uuid(run_id))
        return None if row is None else (row[0], row[1])

    async def root(self, run_id: RunId) -> RunId | None:
        row = await self._first(_ROOT, as_uuid(run_id))
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
        found = await self._rows(_ITEMS, as_uuid(run_id), step, after, [*statuses], limit)
        return await restored_steps([step_state(restored_row(row)) for row in found], self._payloads.read)

    async def item_counts(self, run_id: RunId) -> dict[str, dict[StepStatus, int]]:
        counts: dict[str, dict[StepStatus, int]] = {}
        for step, status, number in await self._rows(_COUNT_ITEMS, as_uuid(run_id)):
            counts.setdefault(step, {})[status] = number
        return counts

    async def events(
        self, run_id: RunId, *, after: int, limit: int, step: str | None = None
    ) -> list[EventRecord]:
        of_step = None if step is None else step_event_prefix(step)
        page = await self._rows(_EVENTS, as_uuid(run_id), after, of_step, limit)
        return [EventRecord(*row) for row in page]

    async def waiting_steps(
        self,
        *,
        limit: int,
        after: WaitPosition | None = None,
        kind: WaitKind | None = None,
        workflow: str | None = None,
    ) -> list[WaitingStep]:
        async with self._pool.reader() as db:
            return await page_of_waiting_steps(db, limit=limit, after=after, kind=kind, workflow=workflow)

    async def unfinished_before(self, routes: int) -> int:
        row = await self._first(_UNFINISHED_BEFORE, routes)
        return 0 if row is None else row[0]


class PostgresRunWrites(PostgresWrites):
    __slots__ = ("_deferred", "_input_queue", "_payloads")

    def __init__(
        self,
        db: Session,
        now: Instant,
        input_queue: PostgresInputQueue,
        deferred: DeferredWrites,
        payloads: PostgresPayloads,
    ) -> None:
        super().__init__(db, now)
        self._payloads = payloads
        self._input_queue = input_queue
        self._deferred = deferred

    async def insert(self, new_runs: Sequence[NewRun]) -> list[ExistingRun | None]:
        if not new_runs:
            return []
        # In one order everywhere: two processes with the same keys do not wait for one another.
        ordered = sorted(new_runs, key=lambda run: (run.workflow_id, run.idempotency_key or ""))
        rows, pieces = await self._payloads.split([new_run_values(run) for run in ordered], (4,))
        inserted = {run_id for (run_id,) in await self._db.rows(_INSERT, *columns(rows, 22))}
        written = [(ordered[number].id, pieces[number]) for number in pieces]
        await self._payloads.put(each for each in written if each[0] in inserted)
        tasks = [
            values for run in ordered if run.id in inserted and (values := new_task_values(run)) is not None
        ]
        if tasks:
            await self._db.execute(_INSERT_TASKS, *columns(tasks, 6))
        labels = [
            row
            for run in ordered
            if run.labels and run.id in inserted
            for row in label_values(run.id, run.labels)
        ]
        if labels:
            await self._db.execute(_INSERT_LABELS, *columns(labels, 3))
        others = [run for run in new_runs if run.id not in inserted]
        if others:
            # Ids are never drawn twice: these come again because their commit had happened without a confirmation.
            inserted |= {run_id for (run_id,) in await self._db.rows(_SAME, [run.id for run in others])}
            others = [run for run in others if run.id not in inserted]
        existing = await self._existing_runs(others) if others else {}
        return [
            None if run.id in inserted else existing[run.workflow_id, run.idempotency_key] for run in new_runs
        ]

    async def _existing_runs(self, runs: Sequence[NewRun]) -> dict[tuple[str, str | None], ExistingRun]:
        asked = {(run.workflow_id, run.idempotency_key) for run in runs}
        found: dict[tuple[str, str | None], ExistingRun] = {
            (workflow_id, restored(key)): ExistingRun(RunId(run_id), digest)
            for workflow_id, key, run_id, digest in await self._db.rows(_EXISTING, *columns(sorted(asked), 2))
        }
        if asked - found.keys():
            raise Unavailable("A run with the same idempotency key was just deleted.", fix="Try again.")
        return found

    async def unknown(self, run_ids: Collection[RunId]) -> set[RunId]:
        possible = [run_id for run_id in run_ids if as_uuid(run_id)]
        known = await self._db.rows("SELECT id::text FROM runs WHERE id = ANY($1::uuid[])", possible)
        return set(run_ids) - {RunId(run_id) for (run_id,) in known}

    async def load(
        self, run_ids: Sequence[RunId], outputs_of: Collection[str] | None = ()
    ) -> list[tuple[RunRecord, list[StepState]]]:
        loaded: list[tuple[RunRecord, list[StepState]]] = []
        for found in await _loaded(self._db, _LOAD, run_ids):
            run: tuple[RunRecord, list[StepState]] | None = found
            if has_pieces(*found):
                run = await restored_run(*found, self._payloads.read, for_decision(outputs_of))
            if run is not None:
                loaded.append(run)
        return loaded

    async def labels(
        self, run_ids: Collection[RunId], *, skip_locked: bool = False
    ) -> dict[RunId, dict[str, str]]:
        asked = [run_id for run_id in run_ids if as_uuid(run_id)]
        sql = f"{_LABELS} SKIP LOCKED" if skip_locked else _LABELS
        found = await self._db.rows(sql, asked) if asked else []
        return {RunId(run_id): decode_labels(labels) for run_id, labels in found}

    async def set_labels(self, labels: Mapping[RunId, Mapping[str, str]]) -> None:
        texts = [(run_id, encode_labels(given)) for run_id, given in labels.items()]
        await self._db.execute(_SET_LABELS, *columns(texts, 2))
        await self._db.execute("DELETE FROM run_labels WHERE run_id = ANY($1::uuid[])", list(labels))
        rows = [row for run_id, given in labels.items() for row in label_values(run_id, given)]
        if rows:
            await self._db.execute(_INSERT_LABELS, *columns(rows, 3))

    async def write_transitions(self, transitions: Sequence[Transition]) -> set[RunId]:
        applied = self._input_queue.not_held(row for each in transitions for row in each.applied)
        changed_elsewhere = await write_transitions(self._db, transitions, applied, self._now, self._payloads)
        for each in transitions:
            if each.state.id not in changed_elsewhere:
                self._input_queue.apply(each.state.id, each.state.version, each.applied)
        return changed_elsewhere

    async def delete_finished(self, before: Instant, limit: int) -> int:
        await self._input_queue.write_held()
        await self._deferred.write()
        old = [run_id for (run_id,) in await self._db.rows(_OLD, before, limit)]
        await self._delete(old)
        await self._db.execute(_DELETE_ORPHANS)
        return len(old)

    async def delete_lowest(self, run_ids: Collection[RunId], limit: int) -> set[RunId]:
        await self._input_queue.write_held()
        await self._deferred.write()
        levels = [[run_id for run_id in run_ids if as_uuid(run_id)]]
        while levels[-1]:
            below = await self._db.rows(_CHILDREN, levels[-1], limit)
            levels.append([RunId(run_id) for (run_id,) in below])
        for level in reversed(levels[:-1]):
            old = [run_id for (run_id,) in await self._db.rows(_DELETABLE, level, limit)]
            if old:
                await self._delete(old)
                return {RunId(run_id) for run_id in old}
        return set()

    async def _delete(self, run_ids: list[str]) -> None:
        if run_ids:
            for statement in _DELETE:
                await self._db.execute(statement, run_ids)
            await self._payloads.delete(run_ids)


async def _loaded(
    db: Session, select: str, run_ids: Sequence[RunId]
) -> list[tuple[RunRecord, list[StepState]]]:
    records: list[RunRecord] = []
    steps: dict[str, list[StepState]] = {}
    for row in await db.rows(select, [run_id for run_id in run_ids if as_uuid(run_id)]):
        if row[0] is not None:
            records.append(run_record(restored_row(row[:_RUN_WIDTH])))
        elif row[_RUN_WIDTH] is not None:
            steps.setdefault(row[_RUN_WIDTH], []).append(step_state(restored_row(row[_RUN_WIDTH + 1 :])))
    return [(record, steps.get(record.id, [])) for record in records]
