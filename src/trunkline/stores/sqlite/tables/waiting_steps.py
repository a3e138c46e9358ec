"""What people are waited for, oldest first."""

from __future__ import annotations

import apsw

from trunkline.stores.base import WaitingStep, WaitKind, WaitPlace
from trunkline.stores.sqlite.database.statements import Row, Value, rows
from trunkline.stores.sqlite.tables.runs import waits

# In the words of the indexes of waiting steps. The status: a program of the revision before writes nothing else of it.
# CROSS JOIN keeps SQLite from beginning with the runs.
_SELECT = """
    SELECT steps.waiting_since, steps.run_id, steps.name, runs.workflow_id, runs.workflow_name, runs.workflow_version,
        steps.attempts, steps.replies, steps.protocol, steps.waiting_for
    FROM steps CROSS JOIN runs ON runs.id = steps.run_id
    WHERE steps.waiting_since IS NOT NULL AND steps.status IN ('WAITING', 'OUTCOME_UNKNOWN')
"""
_AFTER = "(steps.waiting_since, steps.run_id, steps.name) > (?, ?, ?)"
_OF_WORKFLOW = "steps.waiting_workflow = coalesce((SELECT name FROM workflows WHERE id = ?), ?)"


def waiting_steps(
    db: apsw.Connection, *, limit: int, after: WaitPlace | None, kind: WaitKind | None, workflow: str | None
) -> list[WaitingStep]:
    conditions: list[str] = []
    values: list[Value] = []
    if after is not None:
        conditions.append(_AFTER)
        values += [after.since, after.run_id, after.step]
    if kind is not None:
        conditions.append("steps.waiting_kind = ?")
        values.append(kind)
    if workflow is not None:
        conditions.append(_OF_WORKFLOW)
        values += [workflow, workflow]
    asked = "".join(f" AND {condition}" for condition in conditions)
    page = rows(
        db,
        f"{_SELECT}{asked} ORDER BY steps.waiting_since, steps.run_id, steps.name LIMIT ?",
        (*values, limit),
    )
    return [_waiting_step(row) for row in page]


def _waiting_step(row: Row) -> WaitingStep:
    since, run_id, step, workflow_id, name, version, attempts, replies, protocol, waiting_for = row
    return WaitingStep(
        place=WaitPlace(since, run_id, step),
        workflow_id=workflow_id,
        workflow_name=name,
        workflow_version=version,
        attempts=attempts,
        replies=replies,
        protocol=protocol,
        waiting_for=waits.decode(waiting_for),
    )
