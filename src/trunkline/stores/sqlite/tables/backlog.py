"""Counts for the metrics, on a connection of their own: they may take long."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw

from trunkline.stores.agent_limits import breakers_of
from trunkline.stores.base import Backlog
from trunkline.stores.sqlite.database.connection import connect, translated_errors
from trunkline.stores.sqlite.database.statements import execute, first, rows
from trunkline.stores.sqlite.tables.tasks import CAN_BE_CALLED

# Runs that are under way though nothing will ever wake them: no input, no timer, no task that is under way or
# will be sent again, no run that they have begun and that will tell them of its end.
_WITHOUT_WAKE_REASON = """
    SELECT count(*) FROM runs WHERE status IN ('PENDING', 'RUNNING')
        AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.run_id = runs.id AND applied = 0)
        AND NOT EXISTS (SELECT 1 FROM timers WHERE timers.run_id = runs.id)
        AND NOT EXISTS (SELECT 1 FROM tasks WHERE task_id >= runs.id || '/' AND task_id < runs.id || '0'
            AND status IN ('queued', 'claimed', 'remote'))
        AND NOT EXISTS (SELECT 1 FROM dispatches WHERE task_id >= runs.id || '/' AND task_id < runs.id || '0')
        AND NOT EXISTS (SELECT 1 FROM runs AS child WHERE child.parent_id = runs.id AND child.finished_at IS NULL)
"""
_BREAKERS = """
    SELECT name, options, coalesce(breaker, 'closed') FROM agents LEFT JOIN agent_states ON agent = name
    WHERE options IS NOT NULL
"""
_WITHOUT_SECRET = f"SELECT count(*) FROM tasks WHERE status IN ('queued', 'remote') AND NOT {CAN_BE_CALLED}"  # noqa: S608 - constants only


def count(path: Path) -> Backlog:
    with translated_errors(), closing(connect(path)) as db:
        # One snapshot, or a run could be counted in two places.
        execute(db, "BEGIN")
        tasks = {
            status: _number(db, f"SELECT count(*) FROM tasks WHERE status = '{status}'")  # noqa: S608 - constants
            for status in ("queued", "claimed", "remote")
        }
        by_agent = dict(rows(db, "SELECT agent, count(*) FROM tasks WHERE status = 'queued' GROUP BY agent"))
        return Backlog(
            runs_by_status=dict(rows(db, "SELECT status, count(*) FROM runs GROUP BY status")),
            queued_tasks=tasks["queued"],
            claimed_tasks=tasks["claimed"],
            remote_tasks=tasks["remote"],
            inbox=_number(db, "SELECT count(*) FROM inbox WHERE applied = 0"),
            timers=_number(db, "SELECT count(*) FROM timers"),
            # A row has all messages of one transaction: how many rows wait says as much.
            outbox=_number(db, "SELECT count(*) FROM outbox"),
            dead_letters=_number(db, "SELECT count(*) FROM dead_letters"),
            tasks_without_secret=_number(db, _WITHOUT_SECRET),
            queued_by_agent=by_agent,
            breakers=breakers_of(rows(db, _BREAKERS)),
            without_wake_reason=_number(db, _WITHOUT_WAKE_REASON),
        )


def _number(db: apsw.Connection, sql: str) -> int:
    row = first(db, sql)
    return 0 if row is None else row[0]
