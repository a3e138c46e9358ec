"""Runs and steps: how a state is written and read back."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import apsw
import msgspec

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.jsontypes import encode
from trunkline.machine.state import (
    FINAL_RUN_STATUSES,
    RUN_STATUSES,
    RunStatus,
    StepState,
    StepStatus,
    WaitingFor,
)
from trunkline.messages import StepError
from trunkline.stores.base import ExistingRun, NewRun, ParentStep, RunRecord, Transition
from trunkline.stores.rows.messaging import wait_of
from trunkline.stores.rows.runs import read_trace, written_trace
from trunkline.stores.sqlite.database.statements import (
    Row,
    Value,
    changes_of_many,
    execute_many,
    first,
    query_many,
    rows,
)

_errors: msgspec.json.Decoder[StepError] = msgspec.json.Decoder(StepError)
waits: msgspec.json.Decoder[WaitingFor] = msgspec.json.Decoder(WaitingFor)
_warnings: msgspec.json.Decoder[tuple[str, ...]] = msgspec.json.Decoder(tuple[str, ...])
_contexts: msgspec.json.Decoder[dict[str, str]] = msgspec.json.Decoder(dict[str, str])

RUN_COLUMNS = (
    "id, workflow_id, workflow_name, workflow_version, status, version, seq, input, correlation_id, created_at,"
    " output, error, paused, retry_of, cancel_requested_at, started_at, finished_at, contexts, traceparent, tracestate,"
    " parent_id, parent_step, depth, routes"
)
_STEP_COLUMNS = (
    "name, status, attempts, answered_failures, replies, protocol, context_id, remote_task_id, reply, input, output,"
    " error, warnings, waiting_for, started_at, finished_at"
)
# As SQL has it.
UNFINISHED = ", ".join(f"'{status}'" for status in RUN_STATUSES if status not in FINAL_RUN_STATUSES)

# A run and its steps in one statement, which sees them both as of one moment. The run comes first by its number, the
# steps in the order in which they were begun; not sorted here, since SQLite's own way to sort costs more than to read
# the few rows that there mostly are.
_SELECT_RUN_WITH_STEPS = f"""
    SELECT 0, {RUN_COLUMNS} FROM runs WHERE id = ?1
    UNION ALL SELECT rowid, {_STEP_COLUMNS}, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM steps WHERE run_id = ?1
"""  # noqa: S608 - as above
# An item of a step is a row of its own, under a name with the item's index: `research[17]`.
_SELECT_RUN_WITHOUT_ITEMS = f"{_SELECT_RUN_WITH_STEPS} AND instr(name, '[') = 0"
_SELECT_ITEMS = f"""
    SELECT rowid, {_STEP_COLUMNS}, CAST(substr(name, instr(name, '[') + 1) AS INTEGER) AS place FROM steps
    WHERE run_id = ?1 AND substr(name, 1, instr(name, '[')) = ?2 || '[' AND place > ?3
        AND (json_array_length(?4) = 0 OR status IN (SELECT value FROM json_each(?4)))
    ORDER BY place LIMIT ?5
"""  # noqa: S608 - as above
_COUNT_ITEMS = """
    SELECT substr(name, 1, instr(name, '[') - 1), status, count(*) FROM steps
    WHERE run_id = ? AND instr(name, '[') > 0 GROUP BY 1, 2
"""
_UPSERT_STEP = f"""
    INSERT INTO steps(run_id, {_STEP_COLUMNS}, waiting_kind, waiting_since, waiting_workflow)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT(run_id, name) DO UPDATE SET
        status = excluded.status, attempts = excluded.attempts, answered_failures = excluded.answered_failures,
        replies = excluded.replies, protocol = excluded.protocol, context_id = excluded.context_id,
        remote_task_id = excluded.remote_task_id, reply = excluded.reply, input = excluded.input,
        output = excluded.output, error = excluded.error, warnings = excluded.warnings,
        waiting_for = excluded.waiting_for, waiting_kind = excluded.waiting_kind,
        waiting_since = excluded.waiting_since, waiting_workflow = excluded.waiting_workflow,
        started_at = excluded.started_at, finished_at = excluded.finished_at
"""  # noqa: S608 - as above
_UPDATE_RUN = """
    UPDATE runs SET status = ?, version = ?, seq = ?, output = ?, error = ?, paused = ?, contexts = ?,
        cancel_requested_at = ?, started_at = ?, finished_at = ? WHERE id = ? AND version = ?
"""
# While the run that has begun it goes on, a run can be looked at from there.
_OLD = """
    SELECT id FROM runs WHERE finished_at < ? AND NOT EXISTS (
        SELECT 1 FROM runs AS parent WHERE parent.id = runs.parent_id AND parent.finished_at IS NULL
    ) ORDER BY finished_at LIMIT ?
"""
_DELETE_RUN = (
    # A task's id begins with its run's id and a slash; '0' is the character after the slash.
    "DELETE FROM tasks WHERE task_id >= ?1 || '/' AND task_id < ?1 || '0'",
    "DELETE FROM dispatches WHERE task_id >= ?1 || '/' AND task_id < ?1 || '0'",
    "DELETE FROM exchanges WHERE run_id = ?",
    "DELETE FROM timers WHERE run_id = ?",
    "DELETE FROM inbox WHERE run_id = ?",
    "DELETE FROM events WHERE run_id = ?",
    "DELETE FROM steps WHERE run_id = ?",
    "DELETE FROM runs WHERE id = ?",
)


def insert_runs(db: apsw.Connection, runs: Sequence[NewRun]) -> list[ExistingRun | None]:
    inserted = changes_of_many(
        db,
        "INSERT INTO runs(id, workflow_id, workflow_name, workflow_version, status, version, seq, input,"
        " correlation_id, idempotency_key, request_digest, retry_of, paused, created_at, traceparent,"
        " tracestate, parent_id, parent_step, depth, routes)"
        " VALUES (?, ?, ?, ?, 'PENDING', 0, 0, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT(workflow_id, idempotency_key) DO NOTHING",
        [
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
            for run in runs
        ],
    )
    return [None if new else _existing_run(db, run) for run, new in zip(runs, inserted, strict=True)]


def record_of(run: NewRun) -> RunRecord:
    """A run as `insert_runs` has written it."""
    return RunRecord(
        id=run.id,
        workflow_id=run.workflow_id,
        workflow_name=run.workflow_name,
        workflow_version=run.workflow_version,
        status="PENDING",
        version=0,
        seq=0,
        input=run.input,
        correlation_id=run.correlation_id,
        created_at=run.created_at,
        retry_of=run.retry_of,
        trace=run.trace,
        parent=run.parent,
        depth=run.depth,
        routing_version=run.routing_version,
    )


def _existing_run(db: apsw.Connection, run: NewRun) -> ExistingRun:
    ((run_id, digest),) = rows(
        db,
        "SELECT id, request_digest FROM runs WHERE workflow_id = ? AND idempotency_key = ?",
        (run.workflow_id, run.idempotency_key),
    )
    return ExistingRun(RunId(run_id), digest)


def write_transitions(db: apsw.Connection, transitions: Sequence[Transition]) -> set[RunId]:
    """All of them but the inbox rows that they have applied."""
    written = changes_of_many(db, _UPDATE_RUN, [_run_row(transition) for transition in transitions])
    moved: set[RunId] = set()
    steps: list[tuple[Value, ...]] = []
    events: list[tuple[Value, ...]] = []
    for transition, is_written in zip(transitions, written, strict=True):
        run_id = transition.state.id
        if not is_written:
            moved.add(run_id)
            continue
        workflow = transition.state.workflow.definition.name
        steps.extend(
            (*_step_row(run_id, step), *wait_of(step, workflow)) for step in transition.changed_steps
        )
        events.extend((run_id, event.seq, event.type, event.at, event.data) for event in transition.events)
        _write_timers(db, transition)
    execute_many(db, _UPSERT_STEP, steps)
    execute_many(db, "INSERT INTO events(run_id, seq, type, at, data) VALUES (?, ?, ?, ?, ?)", events)
    return moved


def _run_row(transition: Transition) -> tuple[Value, ...]:
    state = transition.state
    return (
        state.status,
        state.version,
        state.seq,
        state.output,
        _json(state.error),
        state.paused,
        encode(state.contexts) if state.contexts else None,
        state.cancel_requested_at,
        state.started_at,
        state.finished_at,
        state.id,
        transition.expected_version,
    )


def _write_timers(db: apsw.Connection, transition: Transition) -> None:
    if transition.timers:
        execute_many(
            db,
            "INSERT INTO timers(run_id, key, due, payload) VALUES (?, ?, ?, ?)"
            " ON CONFLICT(run_id, key) DO UPDATE SET due = excluded.due, payload = excluded.payload",
            ((timer.run_id, timer.key, timer.due, timer.payload) for timer in transition.timers),
        )
    if transition.dropped_timers:
        execute_many(
            db,
            "DELETE FROM timers WHERE run_id = ? AND key = ?",
            ((transition.state.id, key) for key in transition.dropped_timers),
        )


def _json(value: object) -> bytes | None:
    return None if value is None else encode(value)


def _step_row(run_id: RunId, step: StepState) -> tuple[Value, ...]:
    return (
        run_id,
        step.name,
        step.status,
        step.attempts,
        step.answered_failures,
        step.replies,
        step.protocol,
        step.context_id,
        step.remote_task_id,
        step.reply,
        step.input,
        step.output,
        _json(step.error),
        _json(step.warnings or None),
        _json(step.waiting_for),
        step.started_at,
        step.finished_at,
    )


def load_runs(db: apsw.Connection, run_ids: Sequence[RunId]) -> list[tuple[RunRecord, list[StepState]]]:
    loaded = (_loaded(db, _SELECT_RUN_WITH_STEPS, run_id) for run_id in run_ids)
    return [run for run in loaded if run is not None]


def load_run(db: apsw.Connection, run_id: RunId) -> tuple[RunRecord, list[StepState]] | None:
    """Without the items of its steps."""
    return _loaded(db, _SELECT_RUN_WITHOUT_ITEMS, run_id)


def _loaded(db: apsw.Connection, select: str, run_id: RunId) -> tuple[RunRecord, list[StepState]] | None:
    found = sorted(rows(db, select, (run_id,)))
    if not found:
        return None
    return run_record(found[0][1:]), [_step_state(step) for step in found[1:]]


def items(
    db: apsw.Connection,
    run_id: RunId,
    step: str,
    *,
    limit: int,
    after: int,
    statuses: Sequence[StepStatus],
) -> list[StepState]:
    asked = (run_id, step, after, encode(statuses).decode(), limit)
    return [_step_state(row) for row in rows(db, _SELECT_ITEMS, asked)]


def item_counts(db: apsw.Connection, run_id: RunId) -> dict[str, dict[StepStatus, int]]:
    counts: dict[str, dict[StepStatus, int]] = {}
    for step, status, number in rows(db, _COUNT_ITEMS, (run_id,)):
        counts.setdefault(step, {})[status] = number
    return counts


def run_status(db: apsw.Connection, run_id: RunId) -> tuple[RunStatus, int] | None:
    row = first(db, "SELECT status, seq FROM runs WHERE id = ?", (run_id,))
    return None if row is None else (row[0], row[1])


def known_runs(db: apsw.Connection, run_ids: Collection[RunId]) -> set[RunId]:
    """Those of them that exist."""
    found = query_many(db, "SELECT id FROM runs WHERE id = ?", [(run_id,) for run_id in run_ids])
    return {RunId(row[0]) for row in found}


def unfinished_runs(db: apsw.Connection, run_ids: Collection[RunId]) -> set[RunId]:
    """Those of them that exist and go on."""
    found = query_many(
        db,
        f"SELECT id FROM runs WHERE id = ? AND status IN ({UNFINISHED})",  # noqa: S608 - constants only
        [(run_id,) for run_id in run_ids],
    )
    return {RunId(row[0]) for row in found}


def delete_finished_runs(db: apsw.Connection, before: Instant, limit: int) -> int:
    old = list(rows(db, _OLD, (before, limit)))
    for statement in _DELETE_RUN:
        execute_many(db, statement, old)
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
        workflow_name=workflow_name,
        workflow_version=workflow_version,
        status=status,
        version=version,
        seq=seq,
        input=input_,
        correlation_id=correlation_id,
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
        parent=None if parent_id is None else ParentStep(parent_id, parent_step),
        depth=depth,
        routing_version=routes,
    )


def _step_state(row: Row) -> StepState:
    (
        _, name, status, attempts, answered_failures, replies, protocol, context_id, remote_task_id, reply, input_,
        output, error, warnings, waiting_for, started_at, finished_at, *_,
    ) = row  # fmt: skip
    return StepState(
        name=name,
        status=status,
        attempts=attempts,
        answered_failures=answered_failures,
        replies=replies,
        protocol=protocol,
        context_id=context_id,
        remote_task_id=remote_task_id,
        reply=reply,
        input=input_,
        output=output,
        error=None if error is None else _errors.decode(error),
        warnings=() if warnings is None else _warnings.decode(warnings),
        waiting_for=None if waiting_for is None else waits.decode(waiting_for),
        started_at=started_at,
        finished_at=finished_at,
    )
