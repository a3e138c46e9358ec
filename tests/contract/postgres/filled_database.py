"""A PostgreSQL with the history of a busy system: finished runs, runs that wait, and the tasks of other bridges."""

from __future__ import annotations

from tests.contract.samples import NOW

from trunkline.stores.postgres.database.connection import connect

# Never due while a test runs.
_FAR = NOW + 10**13
_SECOND = 1_000_000
_ID = "('{}0000-0000-7000-8000-' || lpad(n::text, 12, '0'))"
_FINISHED = _ID.format("018c")
_WAITING = _ID.format("018d")
_RUN = "'018f0000-0000-7000-8000-000000000000'::uuid, 'w', 1"
# Statement by statement, as `connect` has it: no table is empty, and few rows of the large ones are of use.
_FILL = """
    INSERT INTO runs(id, workflow_id, workflow_name, workflow_version, status, input, output, correlation_id,
        created_at, started_at, finished_at)
    SELECT {finished}::uuid, {run}, 'COMPLETED', '{{}}', '{{}}', 'c-' || n, {now} - n, {now} - n, {now} - n
    FROM generate_series(1, {runs}) AS n;

    INSERT INTO runs(id, workflow_id, workflow_name, workflow_version, status, input, correlation_id, created_at,
        started_at)
    SELECT {waiting}::uuid, {run}, CASE n % 2 WHEN 0 THEN 'RUNNING' ELSE 'WAITING' END, '{{}}', 'c-' || n, {now},
        {now}
    FROM generate_series(1, {waiting_runs}) AS n;

    INSERT INTO steps(run_id, name, status, output, started_at, finished_at)
    SELECT {finished}::uuid, 'a', 'COMPLETED', '{{}}', {now} - n, {now} - n FROM generate_series(1, {runs}) AS n;

    INSERT INTO steps(run_id, name, status, waiting_for, started_at, waiting_kind, waiting_since, waiting_workflow)
    SELECT {waiting}::uuid, 'a', 'WAITING', convert_to('{{"kind":"input","text":"?"}}', 'UTF8'), {now}, 'input', {now},
        'w'
    FROM generate_series(1, {waiting_runs}) AS n WHERE n % 2 = 1;

    INSERT INTO events(run_id, seq, type, at, data)
    SELECT {finished}::uuid, seq, 'StepCompleted', {now} - n, '{{}}'
    FROM generate_series(1, {runs}) AS n, generate_series(1, 2) AS seq;

    INSERT INTO exchanges(run_id, step, attempt, record)
    SELECT {finished}::uuid, 'a', 1, '{{}}' FROM generate_series(1, {runs}) AS n;

    INSERT INTO inbox(run_id, key, payload, applied)
    SELECT {finished}::uuid, 'start', '', 1 FROM generate_series(1, {runs}) AS n;

    INSERT INTO tasks(task_id, attempt, run_id, agent, status, owner, epoch, payload, ended_at, outcome)
    SELECT {finished} || '/a/0', 1, {finished}::uuid, 'A', 'done', 'gone', 1, '{{}}', {now} - n, 'success'
    FROM generate_series(1, {runs}) AS n;

    -- What remote agents work on, for bridges of two pools.
    INSERT INTO tasks(task_id, attempt, run_id, agent, pool, status, owner, epoch, payload, poll_at, remote_task_id)
    SELECT {waiting} || '/a/0', 1, {waiting}::uuid, 'remote', CASE n % 4 WHEN 0 THEN 'apart' END, 'remote', 'gone', 1,
        '{{}}', {far} + n, 'r-' || n
    FROM generate_series(1, {waiting_runs}) AS n WHERE n % 2 = 0;

    -- What other bridges have in their hands, and what waits for an agent that has no slot.
    INSERT INTO leases(owner, until) SELECT 'bridge ' || n, {far} FROM generate_series(1, 4) AS n;
    INSERT INTO tasks(task_id, attempt, run_id, agent, status, owner, epoch, payload)
    SELECT {waiting} || '/b/0', 1, {waiting}::uuid, 'busy', 'claimed', 'bridge ' || (n % 4 + 1), 1, '{{}}'
    FROM generate_series(1, {waiting_runs} / 4) AS n;

    INSERT INTO dispatches(task_id, attempt, run_id, payload, pause, resend_at)
    SELECT {waiting} || '/a/0', 1, {waiting}::uuid, '{{}}', {second}, {far} + n
    FROM generate_series(1, {waiting_runs}) AS n;

    INSERT INTO timers(run_id, key, due, payload)
    SELECT {waiting}::uuid, 'a', {far} + n, '{{}}' FROM generate_series(1, {waiting_runs}) AS n;

    ANALYZE
"""
# Those in which it is a fault to read from one end to the other.
LARGE_TABLES = frozenset({"runs", "steps", "events", "exchanges", "inbox", "tasks", "dispatches", "timers"})


async def fill(url: str, *, runs: int, waiting_runs: int) -> None:
    """`runs` that have finished and `waiting_runs` that have not: half of them wait for agents, half for people."""
    text = _FILL.format(
        finished=_FINISHED,
        waiting=_WAITING,
        run=_RUN,
        now=int(NOW),
        far=_FAR,
        second=_SECOND,
        runs=runs,
        waiting_runs=waiting_runs,
    )
    db = await connect(url, {"statement_timeout": "600s"}, answer_seconds=600)
    try:
        for statement in text.split(";"):
            await db.command(statement)
    finally:
        await db.close()
