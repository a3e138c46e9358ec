"""How the transitions of many runs are written in one statement."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.stores.payloads import MAX_IN_ROW_BYTES
from trunkline.stores.port.runs import Transition
from trunkline.stores.postgres.database.payloads import PostgresPayloads
from trunkline.stores.postgres.database.session import Session, StatementPart, columns, combined
from trunkline.stores.rows import Value
from trunkline.stores.rows.published_tasks import task_change_values
from trunkline.stores.rows.runs import step_values, transition_values

# If another transaction has changed a run meanwhile, PostgreSQL checks the condition again before it writes.
_UPDATE_RUNS = """
    UPDATE runs SET status = new.status, version = new.version, seq = new.seq, output = new.output,
        error = new.error, paused = new.paused, contexts = new.contexts,
        cancel_requested_at = new.cancel_requested_at, started_at = new.started_at, finished_at = new.finished_at,
        compensation = new.compensation
    FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[],
        $8::smallint[], $9::bytea[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bytea[])
        AS new(id, expected, status, version, seq, output, error, paused, contexts, cancel_requested_at, started_at,
            finished_at, compensation)
    WHERE runs.id = new.id AND runs.version = new.expected
    RETURNING runs.id
"""
# Everything else only for runs that this has changed. `IS TRUE` keeps it from being a join, or the choice of an index.
_OF_CHANGED_RUN = "run_id IN (SELECT id FROM part_1)) IS TRUE"
# `place` counts up as rows are inserted: a step keeps the one it began with.
_UPSERT_STEPS = f"""
    INSERT INTO steps(run_id, name, status, attempts, answered_failures, replies, protocol, context_id,
        remote_task_id, reply, input, output, error, warnings, waiting_for, started_at, finished_at,
        call_details, waiting_kind, waiting_since, waiting_workflow)
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::int[], $5::int[], $6::int[], $7::text[], $8::text[],
        $9::text[], $10::bytea[], $11::bytea[], $12::bytea[], $13::bytea[], $14::bytea[], $15::bytea[], $16::bigint[],
        $17::bigint[], $18::bytea[], $19::text[], $20::bigint[], $21::text[]) AS new(run_id)
    WHERE ({_OF_CHANGED_RUN}
    ON CONFLICT (run_id, name) DO UPDATE SET
        status = excluded.status, attempts = excluded.attempts, answered_failures = excluded.answered_failures,
        replies = excluded.replies, protocol = excluded.protocol, context_id = excluded.context_id,
        remote_task_id = excluded.remote_task_id, reply = excluded.reply, input = excluded.input,
        output = excluded.output, error = excluded.error, warnings = excluded.warnings,
        waiting_for = excluded.waiting_for, started_at = excluded.started_at, finished_at = excluded.finished_at,
        call_details = excluded.call_details, waiting_kind = excluded.waiting_kind,
        waiting_since = excluded.waiting_since, waiting_workflow = excluded.waiting_workflow
"""  # noqa: S608 - constants of this module
_INSERT_EVENTS = f"""
    INSERT INTO events(run_id, seq, type, at, data)
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::bytea[]) AS new(run_id)
    WHERE ({_OF_CHANGED_RUN}
"""  # noqa: S608 - as above
# The row stays, so that a duplicate finds it; what it said is in the state now.
_APPLY_INPUTS = f"""
    UPDATE inbox SET applied = 1, payload = '' WHERE id = ANY($1::bigint[]) AND ({_OF_CHANGED_RUN}
"""  # noqa: S608 - as above
_UPSERT_TIMERS = f"""
    INSERT INTO timers(run_id, key, due, payload)
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bytea[]) AS new(run_id) WHERE ({_OF_CHANGED_RUN}
    ON CONFLICT (run_id, key) DO UPDATE SET due = excluded.due, payload = excluded.payload
"""  # noqa: S608 - as above
# One that is firing in another transaction is left to it: two that wait for each other's timers would never end, and
# a timer that fires too late is ignored by its run.
_UPDATE_TASKS = f"""
    UPDATE published_tasks SET state = new.state, updated_at = new.updated_at
    FROM unnest($1::text[], $2::bigint[], $3::uuid[]) AS new(state, updated_at, run_id)
    WHERE published_tasks.run_id = new.run_id AND (new.{_OF_CHANGED_RUN}
"""  # noqa: S608 - as above
_DROP_TIMERS = f"""
    WITH dropped AS MATERIALIZED (
        SELECT timers.run_id, timers.key FROM unnest($1::uuid[], $2::text[]) AS old(run_id, key)
            JOIN timers ON timers.run_id = old.run_id AND timers.key = old.key
        FOR UPDATE OF timers SKIP LOCKED
    )
    DELETE FROM timers USING dropped
    WHERE timers.run_id = dropped.run_id AND timers.key = dropped.key AND (dropped.{_OF_CHANGED_RUN}
"""  # noqa: S608 - as above


async def write_transitions(
    db: Session,
    transitions: Sequence[Transition],
    applied: Sequence[int],
    now: Instant,
    payloads: PostgresPayloads,
) -> set[RunId]:
    """`applied`: the rows of the input queue that are still to be marked."""
    if not transitions:
        return set()
    # In one order everywhere: two processes that hold the same runs do not wait for one another.
    ordered = sorted(transitions, key=lambda transition: transition.state.id)
    runs, run_pieces = await payloads.split([transition_values(transition) for transition in ordered], (5,))
    steps, step_pieces = await payloads.split(
        [
            step_values(each.state.id, step, each.state.workflow.definition.name)
            for each in ordered
            for step in each.changed_steps
        ],
        (10, 11),
    )
    parts = [StatementPart(_UPDATE_RUNS, columns(runs, 13))]
    if applied:
        parts.append(StatementPart(_APPLY_INPUTS, [list(applied)]))
    sql, values = combined([*parts, *_parts(ordered, steps, now)], "SELECT id::text FROM part_1")
    written = {run_id for (run_id,) in await db.rows(sql, *values)}
    pieces = [(str(runs[number][0]), run_pieces[number]) for number in run_pieces]
    pieces += [(str(steps[number][0]), step_pieces[number]) for number in step_pieces]
    await payloads.put(each for each in pieces if each[0] in written)
    # A smaller run cannot have stored much.
    large: dict[str, int] = {
        each.state.id: each.state.size_bytes
        for each in ordered
        if each.state.size_bytes > MAX_IN_ROW_BYTES and each.state.id in written
    }
    if large:
        await payloads.trim(large)
    return {transition.state.id for transition in ordered if transition.state.id not in written}


def _parts(
    transitions: Sequence[Transition], steps: Sequence[tuple[Value, ...]], now: Instant
) -> list[StatementPart]:
    """What there is of each kind."""
    events = [
        (each.state.id, event.seq, event.type, event.at, event.data)
        for each in transitions
        for event in each.events
    ]
    dropped = {(each.state.id, key) for each in transitions for key in each.dropped_timers}
    timers = {
        (timer.run_id, timer.key): (timer.run_id, timer.key, timer.due, timer.payload)
        for each in transitions
        for timer in each.timers
        if (timer.run_id, timer.key) not in dropped
    }
    tasks = [values for each in transitions if (values := task_change_values(each.state, now)) is not None]
    kinds = (
        (_UPSERT_STEPS, steps, 21),
        (_INSERT_EVENTS, events, 5),
        (_UPSERT_TIMERS, list(timers.values()), 4),
        (_DROP_TIMERS, sorted(dropped), 2),
        (_UPDATE_TASKS, tasks, 3),
    )
    return [StatementPart(sql, columns(rows, count)) for sql, rows, count in kinds if rows]
