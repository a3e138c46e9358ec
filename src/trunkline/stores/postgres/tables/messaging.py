"""What is taken of the outbox and of tasks that are sent again; how both are written is in `pending`."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from trunkline.clock import Instant
from trunkline.ids import RunId
from trunkline.messages import OutgoingMessage
from trunkline.stores.base import Dispatch, TaskKey
from trunkline.stores.postgres.database.session import Session
from trunkline.stores.postgres.tables.runs import FINAL
from trunkline.stores.postgres.tables.tasks import key_columns, key_of
from trunkline.stores.rows.messaging import unpack_messages

_MICROSECOND = timedelta(microseconds=1)
# A row has what one transaction had to say, from one message to some hundred.
_ROWS_AT_ONCE = 16

_TAKE_OUTBOX = """
    DELETE FROM outbox WHERE id = ANY(ARRAY(SELECT id FROM outbox ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING id, messages
"""
_TAKE_DUE = f"""
    WITH due AS MATERIALIZED (
        SELECT task_id, attempt,
            EXISTS (SELECT 1 FROM runs WHERE runs.id = dispatches.run_id AND status NOT IN {FINAL}) AS goes_on
        FROM dispatches WHERE resend_at <= $1 ORDER BY resend_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ), forgotten AS (
        DELETE FROM dispatches USING due
        WHERE dispatches.task_id = due.task_id AND dispatches.attempt = due.attempt AND NOT due.goes_on
    )
    UPDATE dispatches SET pause = least(2 * pause, $3), resend_at = $1 + least(2 * pause, $3) FROM due
    WHERE dispatches.task_id = due.task_id AND dispatches.attempt = due.attempt AND due.goes_on
    RETURNING dispatches.task_id, dispatches.attempt, dispatches.run_id::text, dispatches.payload
"""  # noqa: S608 - constants only
_DISPATCHED = """
    SELECT dispatches.task_id, dispatches.attempt, dispatches.payload
    FROM unnest($1::text[], $2::int[]) AS wanted(task_id, attempt) JOIN dispatches
        ON dispatches.task_id = wanted.task_id AND dispatches.attempt = wanted.attempt
"""


async def take_outbox(db: Session, limit: int) -> list[OutgoingMessage]:
    taken: list[OutgoingMessage] = []
    while len(taken) < limit:
        most = min(_ROWS_AT_ONCE, limit - len(taken))
        rows = await db.rows(_TAKE_OUTBOX, most)
        for _, packed in sorted(rows, key=lambda row: row[0]):
            taken += unpack_messages(packed)
        if len(rows) < most:
            break
    return taken


async def take_due_dispatches(db: Session, now: Instant, limit: int, longest: timedelta) -> list[Dispatch]:
    due = await db.rows(_TAKE_DUE, now, limit, longest // _MICROSECOND)
    return [Dispatch(key_of(row), RunId(row[2]), row[3]) for row in due]


async def dispatched(db: Session, keys: Collection[TaskKey]) -> dict[TaskKey, bytes]:
    if not keys:
        return {}
    return {key_of(row): row[2] for row in await db.rows(_DISPATCHED, *key_columns(keys))}
