"""Runs and steps: how they are begun, read back and deleted."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from trunkline.clock import Instant
from trunkline.errors import Unavailable
from trunkline.ids import RunId
from trunkline.machine.state import RunStatus, StepState, StepStatus, WaitingFor
from trunkline.messages import StepError
from trunkline.stores.base import ExistingRun, NewRun, ParentStep, RunRecord
from trunkline.stores.postgres.database.session import Row, Session, columns
from trunkline.stores.postgres.database.text_encoding import as_uuid, restored, restored_if_any
from trunkline.stores.rows.runs import read_trace, written_trace

_errors: msgspec.json.Decoder[StepError] = msgspec.json.Decoder(StepError)
waits: msgspec.json.Decoder[WaitingFor] = msgspec.json.Decoder(WaitingFor)
_warnings: msgspec.json.Decoder[tuple[str, ...]] = msgspec.json.Decoder(tuple[str, ...])
_contexts: msgspec.json.Decoder[dict[str, str]] = msgspec.json.Decoder(dict[str, str])

FINAL = "('COMPLETED', 'FAILED', 'CANCELLED')"

RUN_COLUMNS = """
    runs.id::text, runs.workflow_id::text, runs.workflow_name, runs.workflow_version, runs.status, runs.version,
    runs.seq, runs.input, runs.correlation_id, runs.created_at, runs.output, runs.error, runs.paused,
    runs.retry_of::text, runs.cancel_requested_at, runs.started_at, runs.finished_at, runs.contexts,
    runs.traceparent, runs.tracestate, runs.parent_id::text, runs.parent_step, runs.depth, runs.routes
"""
_RUN_WIDTH = 24
_STEP_COLUMNS = """
    steps.name, steps.status, steps.attempts, steps.answered_failures, steps.replies, steps.protocol, steps.context_id,
    steps.remote_task_id, steps.reply, steps.input, steps.output, steps.error, steps.warnings, steps.waiting_for,
    steps.started_at, steps.finished_at
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
        routes)
    SELECT id, workflow_id, workflow_name, workflow_version, 'PENDING', input, correlation_id,
        idempotency_key, request_digest, retry_of, created_at, traceparent, tracestate, parent_id, parent_step, depth,
        routes
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::int[], $5::bytea[], $6::text[], $7::text[], $8::bytea[],
        $9::uuid[], $10::bigint[], $11::text[], $12::text[], $13::uuid[], $14::text[], $15::int[], $16::bigint[])
        AS new(id, workflow_id, workflow_name, workflow_version, input, correlation_id, idempotency_key,
            request_digest, retry_of, created_at, traceparent, tracestate, parent_id, parent_step, depth, routes)
    ON CONFLICT DO NOTHING
    RETURNING id::text
"""
_SAME = "SELECT id::text FROM runs WHERE id = ANY($1::uuid[])"
_EXISTING = """
    SELECT runs.workflow_id::text, runs.idempotency_key, runs.id::text, runs.request_digest
    FROM unnest($1::uuid[], $2::text[]) AS asked(workflow_id, idempotency_key)
        JOIN runs ON runs.workflow_id = asked.workflow_id AND runs.idempotency_key = asked.idempotency_key
"""
# While the run that has begun it goes on, a run can be looked at from there.
_OLD = """
    SELECT id::text FROM runs WHERE finished_at < $1 AND NOT EXISTS (
        SELECT 1 FROM runs AS parent WHERE parent.id = runs.parent_id AND parent.finished_at IS NULL
    ) ORDER BY finished_at LIMIT $2 FOR UPDATE OF runs SKIP LOCKED
"""
# A task's id begins with its run's id and a slash; '0' is the character after the slash.
_TASKS_OF = "USING unnest($1::uuid[]) AS old(id) WHERE task_id >= old.id || '/' AND task_id < old.id || '0'"
_DELETE = (
    f"DELETE FROM tasks {_TASKS_OF}",  # noqa: S608 - as above
    f"DELETE FROM dispatches {_TASKS_OF}",  # noqa: S608 - as above
    "DELETE FROM exchanges WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM timers WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM inbox WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM events WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM steps WHERE run_id = ANY($1::uuid[])",
    "DELETE FROM runs WHERE id = ANY($1::uuid[])",
)
# Somebody had something for a run while that was being deleted: nothing else would ever find it.
_DELETE_ORPHANS = """
    DELETE FROM inbox WHERE applied = 0 AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = inbox.run_id)
"""


async def insert_runs(db: Session, runs: Sequence[NewRun]) -> list[ExistingRun | None]:
    if not runs:
        return []
    # In one order everywhere: two processes with the same keys do not wait for one another.
    ordered = sorted(runs, key=lambda run: (run.workflow_id, run.idempotency_key or ""))
    rows = [
        (
            run.id,
            run.workflow_id,
            run.workflow_name,
            run.workflow_version,
            run.input,
            run.correlation_id,
            run.idempotency_key,
            run.request_digest,
            run.retry_of,
            run.created_at,
            *written_trace(run.trace),
            *(run.parent or (None, None)),
            run.depth,
            run.routing_version,
        )
        for run in ordered
    ]
    inserted = {run_id for (run_id,) in await db.rows(_INSERT, *columns(rows, 16))}
    others = [run for run in runs if run.id not in inserted]
    if others:
        # Ids are never drawn twice: these come again because nobody knew that their commit had happened.
        inserted |= {run_id for (run_id,) in await db.rows(_SAME, [run.id for run in others])}
        others = [run for run in others if run.id not in inserted]
    existing = await _existing_runs(db, others) if others else {}
    return [None if run.id in inserted else existing[run.workflow_id, run.idempotency_key] for run in runs]


async def _existing_runs(db: Session, runs: Sequence[NewRun]) -> dict[tuple[str, str | None], ExistingRun]:
    asked = {(run.workflow_id, run.idempotency_key) for run in runs}
    found: dict[tuple[str, str | None], ExistingRun] = {
        (workflow_id, restored(key)): ExistingRun(RunId(run_id), digest)
        for workflow_id, key, run_id, digest in await db.rows(_EXISTING, *columns(sorted(asked), 2))
    }
    if asked - found.keys():
        raise Unavailable("A run with the same idempotency key was just deleted.", fix="Try again.")
    return found


async def unknown_runs(db: Session, run_ids: Collection[RunId]) -> set[RunId]:
    possible = [run_id for run_id in run_ids if as_uuid(run_id)]
    known = await db.rows("SELECT id::text FROM runs WHERE id = ANY($1::uuid[])", possible)
    return set(run_ids) - {RunId(run_id) for (run_id,) in known}


async def load_runs(db: Session, run_ids: Sequence[RunId]) -> list[tuple[RunRecord, list[StepState]]]:
    return await _loaded(db, _LOAD, run_ids)


async def load_run(db: Session, run_id: RunId) -> tuple[RunRecord, list[StepState]] | None:
    """Without the items of its steps."""
    found = await _loaded(db, _LOAD_WITHOUT_ITEMS, [run_id])
    return found[0] if found else None


async def items(
    db: Session, run_id: RunId, step: str, *, limit: int, after: int, statuses: Sequence[StepStatus]
) -> list[StepState]:
    found = await db.rows(_ITEMS, as_uuid(run_id), step, after, [*statuses], limit)
    return [_step_state(row) for row in found]


async def item_counts(db: Session, run_id: RunId) -> dict[str, dict[StepStatus, int]]:
    counts: dict[str, dict[StepStatus, int]] = {}
    for step, status, number in await db.rows(_COUNT_ITEMS, as_uuid(run_id)):
        counts.setdefault(step, {})[status] = number
    return counts


async def _loaded(
    db: Session, select: str, run_ids: Sequence[RunId]
) -> list[tuple[RunRecord, list[StepState]]]:
    records: list[RunRecord] = []
    steps: dict[str, list[StepState]] = {}
    for row in await db.rows(select, [run_id for run_id in run_ids if as_uuid(run_id)]):
        if row[0] is not None:
            records.append(run_record(row[:_RUN_WIDTH]))
        elif row[_RUN_WIDTH] is not None:
            steps.setdefault(row[_RUN_WIDTH], []).append(_step_state(row[_RUN_WIDTH + 1 :]))
    return [(record, steps.get(record.id, [])) for record in records]


async def run_status(db: Session, run_id: RunId) -> tuple[RunStatus, int] | None:
    row = await db.first("SELECT status, seq FROM runs WHERE id = $1", as_uuid(run_id))
    return None if row is None else (row[0], row[1])


async def delete_finished_runs(db: Session, before: Instant, limit: int) -> int:
    old = [run_id for (run_id,) in await db.rows(_OLD, before, limit)]
    if old:
        for statement in _DELETE:
            await db.execute(statement, old)
    await db.execute(_DELETE_ORPHANS)
    return len(old)


def run_record(row: Row) -> RunRecord:
    (
        run_id, workflow_id, workflow_name, workflow_version, status, version, seq, input_, correlation_id, created_at,
        output, error, paused, retry_of, cancel_requested_at, started_at, finished_at, contexts, traceparent,
        tracestate, parent_id, parent_step, depth, routes,
    ) = row  # fmt: skip
    return RunRecord(
        id=run_id,
        workflow_id=workflow_id,
        workflow_name=restored(workflow_name),
        workflow_version=workflow_version,
        status=status,
        version=version,
        seq=seq,
        input=input_,
        correlation_id=restored(correlation_id),
        created_at=created_at,
        output=output,
        error=None if error is None else _errors.decode(error),
        paused=bool(paused),
        retry_of=retry_of,
        cancel_requested_at=cancel_requested_at,
        started_at=started_at,
        finished_at=finished_at,
        contexts={} if contexts is None else _contexts.decode(contexts),
        trace=read_trace(traceparent, tracestate),
        parent=None if parent_id is None else ParentStep(parent_id, restored(parent_step)),
        depth=depth,
        routing_version=routes,
    )


def _step_state(row: Row) -> StepState:
    (
        name, status, attempts, answered_failures, replies, protocol, context_id, remote_task_id, reply, input_,
        output, error, warnings, waiting_for, started_at, finished_at,
    ) = row  # fmt: skip
    return StepState(
        name=restored(name),
        status=status,
        attempts=attempts,
        answered_failures=answered_failures,
        replies=replies,
        protocol=restored_if_any(protocol),
        context_id=restored_if_any(context_id),
        remote_task_id=restored_if_any(remote_task_id),
        reply=reply,
        input=input_,
        output=output,
        error=None if error is None else _errors.decode(error),
        warnings=() if warnings is None else _warnings.decode(warnings),
        waiting_for=None if waiting_for is None else waits.decode(waiting_for),
        started_at=started_at,
        finished_at=finished_at,
    )
