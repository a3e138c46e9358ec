"""What people are waited for, oldest first."""

from __future__ import annotations

from trunkline.stores.base import WaitingStep, WaitKind, WaitPlace
from trunkline.stores.postgres.driver import Row, Session, Value
from trunkline.stores.postgres.runs import waits
from trunkline.stores.postgres.texts import as_uuid, restored, restored_if_any

# In the words of the indexes of waiting steps. The status: a program of the revision before writes nothing else of it.
_SELECT = """
    SELECT steps.waiting_since, steps.run_id::text, steps.name, runs.workflow_id::text, runs.workflow_name,
        runs.workflow_version, steps.attempts, steps.replies, steps.protocol, steps.waiting_for
    FROM steps JOIN runs ON runs.id = steps.run_id
    WHERE steps.waiting_since IS NOT NULL AND steps.status IN ('WAITING', 'OUTCOME_UNKNOWN')
"""
_AFTER = "(steps.waiting_since, steps.run_id, steps.name) > ({0}, {1}::uuid, {2})"
_OF_WORKFLOW = "steps.waiting_workflow = coalesce((SELECT name FROM workflows WHERE id = {1}::uuid), {0})"


async def waiting_steps(
    db: Session, *, limit: int, after: WaitPlace | None, kind: WaitKind | None, workflow: str | None
) -> list[WaitingStep]:
    # Only the conditions that are asked for: a plan is made without regard to values.
    asked: list[tuple[str, tuple[Value, ...]]] = []
    if after is not None:
        asked.append((_AFTER, (after.since, after.run_id, after.step)))
    if kind is not None:
        asked.append(("steps.waiting_kind = {}", (kind,)))
    if workflow is not None:
        asked.append((_OF_WORKFLOW, (workflow, as_uuid(workflow))))
    conditions = ""
    values: list[Value] = []
    for condition, given in asked:
        places = (f"${len(values) + place}" for place in range(1, 1 + len(given)))
        conditions += f" AND {condition.format(*places)}"
        values += given
    order = f" ORDER BY steps.waiting_since, steps.run_id, steps.name LIMIT ${len(values) + 1}"
    return [_waiting_step(row) for row in await db.rows(f"{_SELECT}{conditions}{order}", *values, limit)]


def _waiting_step(row: Row) -> WaitingStep:
    since, run_id, step, workflow_id, name, version, attempts, replies, protocol, waiting_for = row
    return WaitingStep(
        place=WaitPlace(since, run_id, restored(step)),
        workflow_id=workflow_id,
        workflow_name=restored(name),
        workflow_version=version,
        attempts=attempts,
        replies=replies,
        protocol=restored_if_any(protocol),
        waiting_for=waits.decode(waiting_for),
    )
