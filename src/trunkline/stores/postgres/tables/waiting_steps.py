"""What people are waited for, oldest first."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.stores.base import WaitingStep, WaitKind, WaitPlace
from trunkline.stores.postgres.database.session import Row, Session, Value
from trunkline.stores.postgres.database.text_encoding import LOWEST_UUID, as_uuid, restored, restored_if_any
from trunkline.stores.postgres.tables.runs import waits

# In the words of the indexes of waiting steps. The status: a program of the revision before writes nothing else of it.
_SELECT = """
    SELECT steps.waiting_since, steps.run_id::text, steps.name, runs.workflow_id::text, runs.workflow_name,
        runs.workflow_version, steps.attempts, steps.replies, steps.protocol, steps.waiting_for
    FROM steps JOIN runs ON runs.id = steps.run_id
    WHERE steps.waiting_since IS NOT NULL AND steps.status IN ('WAITING', 'OUTCOME_UNKNOWN')
"""


async def waiting_steps(
    db: Session, *, limit: int, after: WaitPlace | None, kind: WaitKind | None, workflow: str | None
) -> list[WaitingStep]:
    since, run_id, step = after or (-1, LOWEST_UUID, "")
    first: list[tuple[str, str]] = []
    if workflow is not None:
        first.append(("steps.waiting_workflow", await _name_of(db, workflow)))
    if kind is not None:
        first.append(("steps.waiting_kind", kind))
    # From the place on to the end of its workflow and kind, in the order of the index that begins with those: told of
    # an equality, PostgreSQL may take the index of all that waits instead, and read it from end to end.
    columns = [*(column for column, _ in first), "steps.waiting_since", "steps.run_id", "steps.name"]
    values: list[Value] = [*(value for _, value in first), since, run_id, step]
    places = [f"${number}" for number in range(1, 1 + len(values))]
    conditions = f" AND {_row(columns)} > {_row(places)}"
    if first:
        conditions += f" AND {_row(columns[: len(first)])} <= {_row(places[: len(first)])}"
    order = f" ORDER BY {', '.join(columns)} LIMIT ${len(values) + 1}"
    return [_waiting_step(row) for row in await db.rows(f"{_SELECT}{conditions}{order}", *values, limit)]


def _row(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)})"


async def _name_of(db: Session, workflow: str) -> str:
    if as_uuid(workflow) is None:
        return workflow
    row = await db.first("SELECT name FROM workflows WHERE id = $1", workflow)
    return workflow if row is None else restored(row[0])


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
