"""Counts for the metrics, in one statement: otherwise a run could be counted in two places."""

from __future__ import annotations

import msgspec

from trunkline.stores.agent_limits import breakers_of
from trunkline.stores.base import Backlog
from trunkline.stores.postgres.database.session import Session
from trunkline.stores.postgres.database.text_encoding import restored
from trunkline.stores.postgres.tables.task_claims import CANNOT_BE_CALLED

# Runs that are under way though nothing will ever wake them: no input, no timer, no task that is under way or
# will be sent again, no run that they have begun and that will tell them of its end. A task's id begins with its run's
# id and a slash; '0' is the character after the slash.
_COUNT = f"""
    SELECT
        (SELECT coalesce(json_object_agg(status, number), '{{}}') FROM
            (SELECT status, count(*) AS number FROM runs GROUP BY status) AS by_status)::text,
        (SELECT count(*) FROM tasks WHERE status = 'queued'),
        ARRAY(SELECT (agent, count(*)) FROM tasks WHERE status = 'queued' GROUP BY agent),
        ARRAY(SELECT (name, options, coalesce(breaker, 'closed'))
            FROM agents LEFT JOIN agent_states ON agent = name WHERE options IS NOT NULL),
        (SELECT count(*) FROM tasks WHERE status = 'claimed'),
        (SELECT count(*) FROM tasks WHERE status = 'remote'),
        (SELECT count(*) FROM inbox WHERE applied = 0),
        (SELECT count(*) FROM timers),
        (SELECT count(*) FROM outbox),
        (SELECT count(*) FROM dead_letters),
        (SELECT count(*) FROM tasks JOIN agents ON agents.name = tasks.agent
            WHERE tasks.status = 'queued' AND {CANNOT_BE_CALLED})
        + (SELECT count(*) FROM tasks JOIN agents ON agents.name = tasks.agent
            WHERE tasks.status = 'remote' AND {CANNOT_BE_CALLED}),
        (SELECT count(*) FROM runs WHERE status IN ('PENDING', 'RUNNING')
            AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.run_id = runs.id AND applied = 0)
            AND NOT EXISTS (SELECT 1 FROM timers WHERE timers.run_id = runs.id)
            AND NOT EXISTS (SELECT 1 FROM tasks WHERE status IN ('queued', 'claimed', 'remote')
                AND task_id >= runs.id || '/' AND task_id < runs.id || '0')
            AND NOT EXISTS (SELECT 1 FROM dispatches WHERE task_id >= runs.id || '/' AND task_id < runs.id || '0')
            AND NOT EXISTS (SELECT 1 FROM runs AS child WHERE child.parent_id = runs.id AND child.finished_at IS NULL))
"""  # noqa: S608 - constants only


async def count(db: Session) -> Backlog:
    row = await db.first(_COUNT)
    assert row is not None  # noqa: S101 - a SELECT of one row
    (
        statuses,
        queued,
        by_agent,
        breakers,
        claimed,
        remote,
        inbox,
        timers,
        outbox,
        dead_letters,
        without_secret,
        stuck,
    ) = row
    return Backlog(
        runs_by_status=msgspec.json.decode(statuses, type=dict[str, int]),
        queued_tasks=queued,
        claimed_tasks=claimed,
        remote_tasks=remote,
        inbox=inbox,
        timers=timers,
        # A row has all messages of one transaction: how many rows wait says as much.
        outbox=outbox,
        dead_letters=dead_letters,
        tasks_without_secret=without_secret,
        queued_by_agent={restored(agent): number for agent, number in by_agent},
        breakers=breakers_of(
            (restored(name), restored(options), status) for name, options, status in breakers
        ),
        without_wake_reason=stuck,
    )
